"""Names that the frameworks take no longer, or under another name, with what to write instead."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from msgspec import Struct

from traces.settings.knobs import Release, by_dest, by_flag, by_path, knobs, release
from traces.settings.names import bridge_paths, harness_flags, lm_flags, nearest
from traces.settings.settings import ProblemEffect
from traces.settings.values import Raw
from traces.toml_tables import read_table

AS_WRITTEN: Final = "said"
"""In a row's `sets`: the knob takes the value that was written."""


@dataclass(frozen=True, slots=True)
class Correction:
    """What a name means. `sets`: knob and value, AS_WRITTEN for the file's; `text`, `instead`: the problem.

    `text` is empty where nothing is wrong with it. `since`: it is wrong from that release on; before, it is
    its own knob. `effect`: what the framework makes of the name.
    """

    sets: tuple[tuple[str, Raw], ...]
    text: str = ""
    instead: str = ""
    since: Release | None = None
    effect: ProblemEffect = "unread"


class _Spelling(Struct, frozen=True, forbid_unknown_fields=True):
    wrong: tuple[str, ...]
    right: str
    source: str
    sets: dict[str, Any] = {}
    since: str | None = None
    gone: bool = False
    text: str = ""

    @property
    def is_older(self) -> bool:
        """Whether it is a name from before a release, which takes it still."""
        return self.since is not None and not self.gone

    @property
    def problem(self) -> str:
        if not self.is_older:
            return self.text
        text = f"older name of {self.right} since Megatron-Core {self.since}"
        return f"{text}; {self.text}" if self.text else text


class _Alias(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    sets: dict[str, Any]
    source: str
    when: str = ""


class _Table(Struct, frozen=True, forbid_unknown_fields=True):
    spelling: tuple[_Spelling, ...]
    alias: tuple[_Alias, ...]


@cache
def _table() -> _Table:
    return read_table("traces.settings", "older_names.toml", _Table)


@cache
def spellings() -> Mapping[str, Correction]:
    """Flags and paths that are no longer right, each with its correction."""
    return {
        name: Correction(
            tuple(row.sets.items()),
            row.problem,
            row.right,
            release(row.since),
            "older_name" if row.is_older else "stops" if name.startswith("--") else "unread",
        )
        for row in _table().spelling
        for name in row.wrong
    }


@cache
def _aliases() -> Mapping[str, tuple[tuple[str, Correction], ...]]:
    found: dict[str, list[tuple[str, Correction]]] = {}
    for row in _table().alias:
        found.setdefault(row.name, []).append((row.when, Correction(tuple(row.sets.items()))))
    return {name: tuple(rows) for name, rows in found.items()}


def alias(name: str, said: str) -> Correction | None:
    """What a flag that says several knobs sets; None where it is none, or not with this word."""
    rows = _aliases().get(name, ())
    word = said.strip().lower()
    return next((found for when, found in rows if not when or word in when.split()), None)


def is_alias(name: str) -> bool:
    """Whether a flag or path says several knobs."""
    return name in _aliases()


def corrected_flag(flag: str) -> Correction | None:
    """What an unknown flag of Megatron-LM certainly means: underscores for dashes, or a field's name."""
    right = dashed(flag)
    if right != flag and right in lm_flags():
        sets = tuple((knob.id, False if is_off else AS_WRITTEN) for knob, is_off in by_flag().get(right, ()))
        return Correction(sets, "flags of Megatron-LM have dashes, no underscores", right, effect="stops")
    if (knob := knobs().get(flag[2:].replace("-", "_"))) is not None and knob.flag:
        return Correction(
            ((knob.id, AS_WRITTEN),), "Megatron-LM has it under another name", knob.flag, effect="stops"
        )
    return None


def corrected_harness_flag(flag: str) -> str:
    """A flag of Bridge's performance scripts with the underscores it has; empty where none is meant."""
    right = "--" + flag[2:].replace("-", "_")
    return right if right != flag and (right in harness_flags() or is_alias(right)) else ""


def corrected_path(path: str) -> Correction | None:
    """What an unknown path of a Bridge configuration certainly means: Megatron-LM's name of a field."""
    group, _, name = path.rpartition(".")
    if "-" in name and f"{group}.{name.replace('-', '_')}" in by_path():
        knob = by_path()[f"{group}.{name.replace('-', '_')}"]
        return Correction(((knob.id, AS_WRITTEN),), "fields have underscores, no dashes", knob.bridge)
    found = [knob for knob in by_dest().get(name, ()) if knob.bridge and not knob.dest_is_opposite]
    if len(found) == 1:
        text = "Megatron-Bridge has it under another name"
        return Correction(((found[0].id, AS_WRITTEN),), text, found[0].bridge)
    return None


def dashed(flag: str) -> str:
    """A flag with dashes for underscores."""
    return "--" + flag[2:].replace("_", "-")


def nearest_flag(flag: str) -> str:
    """The flag of Megatron-LM nearest to an unknown one; empty where none is near."""
    return nearest(flag, lm_flags())


def nearest_path(path: str) -> str:
    """The path of a Bridge configuration nearest to an unknown one; empty where none is near.

    A name that is right in another group comes first.
    """
    name = path.rpartition(".")[2]
    elsewhere = sorted(known for known in bridge_paths() if known.rpartition(".")[2] == name)
    return elsewhere[0] if elsewhere else nearest(path, bridge_paths())

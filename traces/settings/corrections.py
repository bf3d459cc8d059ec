"""Names that the frameworks take no longer, or under another name, with what to write instead."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from msgspec import Struct

from traces.frozen import frozen
from traces.settings.knobs import Release, by_dest, knobs, release
from traces.settings.settings import ProblemEffect
from traces.settings.values import Raw
from traces.toml_tables import TableRow, read_table

AS_WRITTEN: Final = "said"
"""In a row's `sets`: the knob takes the value that was written."""


@frozen
class Correction:
    """What a name means. `sets`: knob and value, AS_WRITTEN for the file's; `text`, `instead`: the
    problem.

    `text` is empty where nothing is wrong with it. `since`: it is wrong from that release on;
    before, it is its own knob. `effect`: what the framework makes of the name.
    """

    sets: tuple[tuple[str, Raw], ...]
    text: str = ""
    instead: str = ""
    since: Release | None = None
    effect: ProblemEffect = "unread"
    refused_beside_newer: bool = False


class _Spelling(Struct, frozen=True, forbid_unknown_fields=True):
    right: dict[str, str]
    source: str
    sets: dict[str, Any] = {}
    since: str | None = None
    gone: bool = False
    refused_beside_newer: bool = False
    text: str = ""


class _Alias(Struct, frozen=True, forbid_unknown_fields=True):
    source: str
    sets: dict[str, Any] | None = None
    by_word: dict[str, dict[str, Any]] = {}


class _Table(TableRow):
    spelling: tuple[_Spelling, ...]
    alias: dict[str, _Alias]


@cache
def _table() -> _Table:
    return read_table("traces.settings", "older_names.toml", _Table)


@cache
def spellings() -> Mapping[str, Correction]:
    """Flags and paths that are no longer right, each with its correction."""
    corrections = {}
    for row in _table().spelling:
        for name, right in row.right.items():
            corrections[name] = _correction(row, name, right)
    return corrections


def _correction(row: _Spelling, name: str, right: str) -> Correction:
    sets, since = tuple(row.sets.items()), release(row.since)
    if since is not None and not row.gone:
        text = f"older name of {right} since Megatron-Core {row.since}"
        text = f"{text}; {row.text}" if row.text else text
        return Correction(sets, text, right, since, "older_name", row.refused_beside_newer)
    return Correction(sets, row.text, right, since, "stops" if name.startswith("--") else "unread")


def alias(name: str, said: str) -> Correction | None:
    """What a flag that says several knobs sets; None where it is none with this word."""
    row = _table().alias[name]
    word, sets = said.strip().lower(), row.sets
    for words, of_words in row.by_word.items():
        if word in words.split():
            sets = of_words
    if sets is None:
        return None
    return Correction(tuple(sets.items()))


def is_alias(name: str) -> bool:
    """Whether a flag or path says several knobs."""
    return name in _table().alias


def corrected_flag(flag: str) -> Correction | None:
    """What an unknown flag of Megatron-LM certainly means: a field by its own name."""
    if not (knob := knobs().get(flag[2:].replace("-", "_"))) or not knob.flag:
        return None
    text = "Megatron-LM has it under another name"
    return Correction(((knob.id, AS_WRITTEN),), text, knob.flag, effect="stops")


def corrected_path(path: str) -> Correction | None:
    """What an unknown path of a Bridge configuration certainly means: Megatron-LM's name of a
    field.
    """
    name = path.rpartition(".")[2].replace("-", "_")
    named = [knob for knob in by_dest().get(name, ()) if knob.bridge and not knob.dest_is_opposite]
    if len(named) != 1:
        return None
    (knob,) = named
    return Correction(
        ((knob.id, AS_WRITTEN),), "Megatron-Bridge has it under another name", knob.bridge
    )

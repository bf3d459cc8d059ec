"""What differs between two configurations as the frameworks have them, and which of it does
anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from msgspec import Struct

from heuristics.comparison.difference.changed import PACKAGES, is_off
from heuristics.comparison.difference.subject import differing
from heuristics.comparison.files.side import FileSide
from heuristics.comparison.suspects.view import matches
from heuristics.config.about import OPTIONS
from heuristics.config.view import Config
from heuristics.result.compared_files import EffectiveChange
from heuristics.rules.condition import CONFIGURED, Condition
from heuristics.words import say
from traces.settings.knobs import knobs
from traces.settings.settings import Setting, Value
from traces.texts import Texts
from traces.toml_tables import read_table

_OVERLAP: Final = "comm_overlap."
_FOLLOWS: Final = (
    "data_parallel_size",
    "variable_seq_lengths",
    "activation_func",
    "params_dtype",
    "pipeline_dtype",
)
"""What other settings tell already."""
_UNSAID: Final = Setting(None, "unknown")


class _InEffect(Struct, frozen=True, forbid_unknown_fields=True):
    knobs: Texts
    when: Condition
    because: str


class _Table(Struct, frozen=True, forbid_unknown_fields=True):
    rows: tuple[_InEffect, ...]
    aside: Texts


@cache
def _table() -> _Table:
    return read_table("heuristics.comparison.files", "in_effect.toml", _Table, CONFIGURED.readers)


def differences(base: FileSide, new: FileSide) -> tuple[EffectiveChange, ...]:
    """Settings that differ, then versions, then what was given. Swapped sides give the mirrored
    list.
    """
    found = [*_versions(base, new)]
    if base.has_configuration and new.has_configuration:
        found = [*_settings(base, new), *found]
    return tuple(found)


def _settings(base: FileSide, new: FileSide) -> Iterator[EffectiveChange]:
    one, other = base.against(new), new.against(base)
    said, said_new = one.settings.by_knob, other.settings.by_knob
    named = {*said, *said_new}
    for knob in sorted(named):
        if _same(said.get(knob), said_new.get(knob)) or _told_elsewhere(knob, named):
            continue
        before, after = said.get(knob, _UNSAID), said_new.get(knob, _UNSAID)
        shown, shown_new = base.shown(knob, before.value), new.shown(knob, after.value)
        because = _idle(knob, one, other)
        yield EffectiveChange(
            what=knob,
            base=_listed(shown),
            new=_listed(shown_new),
            base_said=before.said,
            new_said=after.said,
            source="configuration",
            withheld=_hides(shown, before.value) or _hides(shown_new, after.value),
            effect="none" if because else "may",
            because=because,
        )


def _same(one: Setting | None, other: Setting | None) -> bool:
    """Whether a setting is the same on both, in whatever order a list names it; what is off is off.

    What only one side tells differs only where it is on: a default that is not known is most often
    off.
    """
    if one is None or other is None:
        alone = one or other
        return alone is None or is_off(alone.value)
    pair = _plain(one.value), _plain(other.value)
    return pair[0] == pair[1] or all(value is None or value is False for value in pair)


def _plain(value: Value) -> Any:
    if isinstance(value, tuple):
        return frozenset(value)
    return value


def _told_elsewhere(knob: str, named: set[str]) -> bool:
    """Whether another setting tells the same: Bridge's section that is written over the model's,
    sizes.
    """
    twin = knob.removeprefix(_OVERLAP)
    return knob in _FOLLOWS or (knob != twin and twin in named) or knob not in knobs()


def _idle(knob: str, *sides: Config) -> str:
    """Why a setting does nothing on either side; empty where it may."""
    if matches(knob, _table().aside):
        return say("files.aside")
    for row in _table().rows:
        if matches(knob, row.knobs) and all(row.when.holds(side) is False for side in sides):
            return say("files.inert", because=row.because)
    return ""


def _listed(shown: Any) -> Any:
    if isinstance(shown, tuple):
        return list(shown)
    return shown


def _hides(shown: Any, value: Value) -> bool:
    """Whether a text of the value is left out."""
    return (shown is None and value is not None) or (
        isinstance(shown, list | tuple) and None in shown
    )


def _versions(base: FileSide, new: FileSide) -> Iterator[EffectiveChange]:
    one, other = versions_of(base), versions_of(new)
    for package in PACKAGES:
        if pair := differing(one.get(package), other.get(package)):
            yield EffectiveChange(
                f"version.{package}", *pair, "log", False, base.name, new.name, "may"
            )
    if gpus := differing(base.run.gpu, new.run.gpu):
        yield EffectiveChange("gpu", *gpus, "configuration", False, base.name, new.name, "may")


def versions_of(side: FileSide) -> Mapping[str, str]:
    """Versions of packages: as given, else by its files, else by its log."""
    found: dict[str, str | None] = {**side.versions}
    if side.log:
        found = {**side.log.versions, **found}
    for package in ("core", "bridge", "te", "torch", "nccl"):
        found[package] = side.run.config.version_text(package)
    if container := side.given.container or found.get("container"):
        found["container"] = side.shown("container", container)
    return {package: text for package, text in found.items() if text and package in PACKAGES}


def said_of(side: FileSide) -> Mapping[str, Any]:
    """What is configured of a run, by field of `Given` and by knob, as comparable.toml asks it."""
    config = side.run.config
    said: dict[str, Any] = {knob: one.value for knob, one in config.settings.by_knob.items()}
    fields = {name: getattr(config, name, None) for name, option in OPTIONS.items() if option.knobs}
    fields["container"] = versions_of(side).get("container")
    for name, value in fields.items():
        if value is not None:
            said[name] = value
    return said

"""What differs between two configurations as the frameworks have them, and which of it does
anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from heuristics.comparison.difference.changed import PACKAGES, is_off
from heuristics.comparison.difference.subject import differing
from heuristics.comparison.files.side import OVERLAP, FileSide
from heuristics.comparison.suspects.view import matches
from heuristics.config.about import OPTIONS
from heuristics.config.view import Config
from heuristics.result.compared_files import EffectiveChange
from heuristics.rules.condition import CONFIGURED, Condition
from heuristics.words import say
from traces.settings.knobs import knobs
from traces.settings.settings import Setting, Value
from traces.texts import Texts
from traces.toml_tables import TableRow, read_table

_FOLLOWS: Final = (
    "data_parallel_size",
    "variable_seq_lengths",
    "activation_func",
    "params_dtype",
    "pipeline_dtype",
)
"""What other settings tell already."""
_UNSAID: Final = Setting(None, "unknown")


class _InEffect(TableRow):
    knobs: Texts
    when: Condition
    because: str


class _Table(TableRow):
    rows: tuple[_InEffect, ...]
    aside: Texts


@cache
def _table() -> _Table:
    return read_table("heuristics.comparison.files", "in_effect.toml", _Table, CONFIGURED.readers)


def differences(base: FileSide, new: FileSide) -> tuple[EffectiveChange, ...]:
    """Settings that differ, then versions, then what was given. Swapped sides give the mirrored
    list.
    """
    changes = [*_versions(base, new)]
    if base.has_configuration and new.has_configuration:
        changes = [*_settings(base, new), *changes]
    return tuple(changes)


def _settings(base: FileSide, new: FileSide) -> Iterator[EffectiveChange]:
    base_filled, new_filled = base.against(new), new.against(base)
    base_settings, new_settings = base_filled.settings.by_knob, new_filled.settings.by_knob
    named = {*base_settings, *new_settings}
    for knob in sorted(named):
        if _same(base_settings.get(knob), new_settings.get(knob)) or _told_elsewhere(knob, named):
            continue
        before, after = base_settings.get(knob, _UNSAID), new_settings.get(knob, _UNSAID)
        shown, shown_new = base.shown(knob, before.value), new.shown(knob, after.value)
        because = _idle(knob, base_filled, new_filled)
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


def _same(base_setting: Setting | None, new_setting: Setting | None) -> bool:
    """Whether a setting is the same on both, in whatever order a list names it; what is off is off.

    What only one side tells differs only where it is on: a default that is not known is most often
    off.
    """
    if base_setting is None or new_setting is None:
        alone = base_setting or new_setting
        return alone is None or is_off(alone.value)
    pair = _plain(base_setting.value), _plain(new_setting.value)
    return pair[0] == pair[1] or all(value is None or value is False for value in pair)


def _plain(value: Value) -> Any:
    if isinstance(value, tuple):
        return frozenset(value)
    return value


def _told_elsewhere(knob: str, named: set[str]) -> bool:
    """Whether another setting tells the same: Bridge's section that is written over the model's,
    sizes.
    """
    twin = knob.removeprefix(OVERLAP)
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
    base_versions, new_versions = versions_of(base), versions_of(new)
    for package in PACKAGES:
        if pair := differing(base_versions.get(package), new_versions.get(package)):
            yield EffectiveChange(
                f"version.{package}", *pair, "log", False, base.name, new.name, "may"
            )
    if gpus := differing(base.run.gpu, new.run.gpu):
        yield EffectiveChange("gpu", *gpus, "configuration", False, base.name, new.name, "may")


def versions_of(side: FileSide) -> Mapping[str, str]:
    """Versions of packages: as given, else by its files, else by its log."""
    versions: dict[str, str | None] = {**side.versions}
    if side.log:
        versions = {**side.log.versions, **versions}
    for package in ("core", "bridge", "te", "torch", "nccl"):
        versions[package] = side.run.config.version_text(package)
    if container := side.given.container or versions.get("container"):
        versions["container"] = side.shown("container", container)
    return {package: text for package, text in versions.items() if text and package in PACKAGES}


def said_of(side: FileSide) -> Mapping[str, Any]:
    """What is configured of a run, by field of `Given` and by knob, as comparable.toml asks it."""
    config = side.run.config
    values: dict[str, Any] = {knob: row.value for knob, row in config.settings.by_knob.items()}
    fields = {name: getattr(config, name, None) for name, option in OPTIONS.items() if option.knobs}
    fields["container"] = versions_of(side).get("container")
    for name, value in fields.items():
        if value is not None:
            values[name] = value
    return values

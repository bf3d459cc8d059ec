"""What differs between two configurations as the frameworks have them, and which of it does anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, Literal

from msgspec import Struct

from heuristics.comparison.difference.changed import PACKAGES, is_off
from heuristics.comparison.files.side import FileSide
from heuristics.config.about import OPTIONS
from heuristics.config.view import Config
from heuristics.result.compared_files import EffectiveChange
from heuristics.rules.condition import CONFIGURED, Condition
from heuristics.words import say
from traces.patterns import starred
from traces.settings.knobs import knobs
from traces.settings.settings import Setting, Value
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


class _InEffect(Struct, frozen=True, forbid_unknown_fields=True):
    knobs: tuple[str, ...]
    when: Condition
    because: str


class _Table(Struct, frozen=True, forbid_unknown_fields=True):
    rows: tuple[_InEffect, ...]
    aside: tuple[str, ...]


@cache
def _table() -> _Table:
    return read_table("heuristics.comparison.files", "in_effect.toml", _Table, CONFIGURED.readers)


def differences(base: FileSide, new: FileSide) -> tuple[EffectiveChange, ...]:
    """Settings that differ, then versions, then what was given. Swapped sides give the mirrored list."""
    found = [*_settings(base, new)] if base.has_configuration and new.has_configuration else []
    return (*found, *_versions(base, new))


def is_aside(knob: str) -> bool:
    """Whether a setting bears on no step."""
    return any(starred(pattern).fullmatch(knob) for pattern in _table().aside)


def _settings(base: FileSide, new: FileSide) -> Iterator[EffectiveChange]:
    one, other = base.against(new), new.against(base)
    named = {*one.settings.by_knob, *other.settings.by_knob}
    for knob in sorted(named):
        sides = one.settings.by_knob.get(knob), other.settings.by_knob.get(knob)
        if _same(sides) or _told_elsewhere(knob, named):
            continue
        effect, because = _effect(knob, (one, other))
        shown = base.shown(knob, _value(sides[0])), new.shown(knob, _value(sides[1]))
        yield EffectiveChange(
            what=knob,
            base=_listed(shown[0]),
            new=_listed(shown[1]),
            base_said=_said(sides[0]),
            new_said=_said(sides[1]),
            source="configuration",
            withheld=any(map(_hides, shown, map(_value, sides))),
            effect=effect,
            because=because,
        )


def _same(sides: tuple[Setting | None, Setting | None]) -> bool:
    """Whether a setting is the same on both, in whatever order a list names it; what is off is off.

    What only one side tells differs only where it is on: a default that is not known is most often off.
    """
    values = [_plain(one.value) if one else None for one in sides]
    if None in sides:
        return all(is_off(value) for value in values)
    return values[0] == values[1] or all(value is None or value is False for value in values)


def _plain(value: Value) -> Any:
    return frozenset(value) if isinstance(value, tuple) else value


def _told_elsewhere(knob: str, named: set[str]) -> bool:
    """Whether another setting tells the same: Bridge's section that is written over the model's, sizes."""
    twin = knob.removeprefix(_OVERLAP)
    return knob in _FOLLOWS or (knob.startswith(_OVERLAP) and twin in named) or knob not in knobs()


def _effect(knob: str, sides: tuple[Config, Config]) -> tuple[Literal["may", "none"], str]:
    if is_aside(knob):
        return "none", say("files.aside")
    for row in _table().rows:
        names_it = any(starred(pattern).fullmatch(knob) for pattern in row.knobs)
        if names_it and all(row.when.holds(side) is False for side in sides):
            return "none", say("files.inert", because=row.because)
    return "may", ""


def _value(one: Setting | None) -> Value:
    return one.value if one else None


def _listed(shown: Any) -> Any:
    return list(shown) if isinstance(shown, tuple) else shown


def _hides(shown: Any, value: Value) -> bool:
    """Whether a text of the value is left out."""
    return (shown is None and value is not None) or (isinstance(shown, list | tuple) and None in shown)


def _said(one: Setting | None) -> str:
    return one.said if one else "unknown"


def _versions(base: FileSide, new: FileSide) -> Iterator[EffectiveChange]:
    sides = versions_of(base), versions_of(new)
    for package in PACKAGES:
        one, other = (side.get(package) for side in sides)
        if one and other and one != other:
            yield EffectiveChange(f"version.{package}", one, other, base.name, new.name, "log", False, "may")
    gpus = base.run.gpu, new.run.gpu
    if None not in gpus and gpus[0] != gpus[1]:
        yield EffectiveChange("gpu", *gpus, "configuration", False, base.name, new.name, "may")


def versions_of(side: FileSide) -> Mapping[str, str]:
    """Versions of packages: as given, else by its files, else by its log."""
    logged = side.log.versions if side.log else {}
    told = {
        package: side.run.config.version_text(package)
        for package in ("core", "bridge", "te", "torch", "nccl")
    }
    container = side.given.container or side.versions.get("container") or logged.get("container")
    found = {**logged, **side.versions, **told, "container": container and side.shown("container", container)}
    return {package: text for package, text in found.items() if text and package in PACKAGES}


def said_of(side: FileSide) -> Mapping[str, Any]:
    """What is configured of a run, by field of `Given` and by knob, as comparable.toml asks it."""
    config = side.run.config
    fields = {name: getattr(config, name, None) for name, option in OPTIONS.items() if option.knobs}
    written = {knob: one.value for knob, one in config.settings.by_knob.items()}
    container = versions_of(side).get("container")
    return {
        **written,
        **{name: value for name, value in fields.items() if value is not None},
        **({"container": container} if container else {}),
    }

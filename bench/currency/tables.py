"""What our tables know of a release, in the facts that a release is read as."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from bench.currency.found import Fact
from bench.currency.source import Source
from heuristics.config.versions import CORE_OF_BRIDGE
from heuristics.rules.rules import rules
from traces.settings.core_fields import core_fields
from traces.settings.corrections import is_alias, spellings
from traces.settings.knobs import FIRST, MAIN, Release, by_dest, by_flag, by_path, knobs, release
from traces.settings.names import bridge_paths, harness_flags, known_names, lm_flags, long_flag
from traces.settings.releases import stay_of_flag, stay_of_path

_PLACES: Final = (
    (r"Megatron-Core, ([\w/]+\.py)", "megatron/core/"),
    (r"Megatron-LM, (training/[\w/]+\.py)", "megatron/"),
    (r"Megatron-Bridge, ((?:training|models|utils|data)/[\w/]+\.py)", "megatron/bridge/"),
)
"""How rules name the places that refuse, and the folder of each."""


@cache
def read_in() -> tuple[str, ...]:
    """Modules in which a rule of ours says that something is refused."""
    found = {
        folder + path
        for rule in rules().values()
        for pattern, folder in _PLACES
        for path in re.findall(pattern, rule.source)
    }
    return tuple(sorted(found))


def core_of(source: Source) -> Release:
    """The release of Megatron-Core: its own, or the one that Bridge's has."""
    if source.package == "core":
        return source.release
    return release(CORE_OF_BRIDGE.get(source.release[:2])) or MAIN


def knows(fact: Fact, core: Release, is_core: bool) -> bool | None:
    """Whether the tables hold it so; None of what they do not speak of."""
    return _JUDGES[fact.kind](fact, core, is_core)


def _field(fact: Fact, core: Release, is_core: bool) -> bool | None:
    group, _, name = fact.place.partition(".")
    if group in known_names().open_groups:
        return None
    stay = stay_of_path(fact.place)
    if stay is not None and is_core:
        return stay.since <= core and (stay.until is None or core < stay.until)
    return fact.place in bridge_paths() or (group == "model" and name in core_fields())


def _flag(fact: Fact, core: Release, is_core: bool) -> bool | None:
    name = fact.place
    if not is_core:
        return name in harness_flags() or long_flag(name) != name or is_alias(name)
    stay = stay_of_flag(name)
    if stay is not None:
        return stay.since <= core and (stay.until is None or core < stay.until)
    return name in lm_flags() or name in spellings() or is_alias(name)


def _choice(fact: Fact, core: Release, is_core: bool) -> bool | None:
    path = by_path().get(fact.place) or knobs().get(fact.place)
    told = [knob for knob, _ in by_flag().get(fact.place, ())] or ([path] if path else [])
    told = [knob for knob in told if knob.choices]
    if not told:
        return None
    return any(
        fact.detail in knob.choices and not (is_core and core < knob.new_choices.get(fact.detail, FIRST))
        for knob in told
    )


def _default(fact: Fact, core: Release, is_core: bool) -> bool | None:
    told = [
        (knob, default[0]) for knob in by_dest().get(fact.place, ()) if (default := knob.default_in(core))
    ]
    if not is_core or not told:
        return None
    return any(_is_same(fact.detail, not value if knob.dest_is_opposite else value) for knob, value in told)


def _is_same(text: str, value: object) -> bool:
    """A list of one stands for the one."""
    plain = [*value] if isinstance(value, tuple) else value
    return text in (repr(plain), repr([plain]))


def _read(fact: Fact, core: Release, is_core: bool) -> bool | None:
    return None


_JUDGES: Final = {
    "field": _field,
    "flag": _flag,
    "choice": _choice,
    "default": _default,
    "refusal": _read,
    "preset": _read,
}

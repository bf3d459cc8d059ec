"""How far a setting of a fix goes in the new run, where that is not what the plan has a range for.

A plan's range is for the values that the plan names. Where the new run has others of the same setting, such
as CUDA graphs of other modules, the range is made again from what the replay of base says of each of them;
where it says nothing, the range is not held against the gain.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from msgspec import UNSET

from heuristics.comparison.difference.rows import Facts
from heuristics.comparison.difference.subject import Subject, Value
from heuristics.result.expected import ExpectedExtent
from traces.limits import MOST
from traces.missing import known
from traces.replay.changes.graphs import SCOPES
from traces.sections.rank import Rank

Gain = tuple[float | None, float]


@dataclass(frozen=True, slots=True)
class _Replays:
    """What the replay of base has for a setting: a change for each value it can hold, and all of them."""

    each: Mapping[str, str]
    every: str


_REPLAYS: Final[Mapping[str, _Replays]] = {
    "cuda_graph_modules": _Replays({name: f"graph_{name}" for name in SCOPES}, "graph_scopes")
}
_GRAPHS: Final = "cuda_graph_modules"
"""The one setting whose values a trace shows too."""


def extent_of(sets: Mapping[str, Value], facts: Facts) -> tuple[ExpectedExtent, Gain | None] | None:
    """The first setting of a fix of which the new run has other values than planned, and its own range.

    `sets`: what the fix sets. The range is in parts of base's step; None where the replay of base has none.
    """
    for what, planned in sets.items():
        now = _now(what, planned, facts)
        if now is not None and {*now} != {*_listed(planned)}:
            gain = _gain(what, now, facts.base.rank)
            return ExpectedExtent(what, _listed(planned), now, gain is not None), gain
    return None


def _listed(value: Value) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, tuple) else (str(value),)


def _now(what: str, planned: Value, facts: Facts) -> tuple[str, ...] | None:
    """What the new run has that base has not; None for settings that are on or off, and where it is unknown.

    By the configuration, else by the trace.
    """
    if isinstance(planned, bool | str | None):
        return None
    if (value := facts.new.values.get(what)) is not None:
        before = _listed(facts.base.values.get(what, ()))
        return tuple(one for one in _listed(value) if one not in before) or None
    if what != _GRAPHS:
        return None
    was, is_ = ({*_captured(side)} for side in (facts.base, facts.new))
    return tuple(name for name in SCOPES if name in is_ - was) or None


def _captured(side: Subject) -> Iterator[str]:
    found = side.rank.detected.graph_scopes_frac
    for name, frac in ({} if found is UNSET else found).items():
        if frac >= MOST.value:
            yield name


def _gain(what: str, now: tuple[str, ...], base: Rank) -> Gain | None:
    """At least what the best of the changes gives alone; at most their sum, and what all of them give."""
    replay, replays = known(base.replay), _REPLAYS.get(what)
    if replay is None or replays is None or replay.changes is UNSET or not base.budget_ns.window:
        return None
    found = {one.kind: one for one in replay.changes}
    several = [found.get(replays.each.get(name, "")) for name in now]
    told = [one for one in several if one is not None]
    if len(told) < len(several):
        return None
    lows = [one.saves_least_ns for one in told if one.saves_least_ns is not None]
    high_ns = sum(one.saves_most_ns for one in told)
    if replays.every in found:
        high_ns = min(high_ns, found[replays.every].saves_most_ns)
    window_ns = base.budget_ns.window
    return (min(max(lows), high_ns) / window_ns if lows else None), high_ns / window_ns

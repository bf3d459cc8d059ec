"""How far a setting of a fix goes in the new run, where that is not what the plan has a range for.

A plan's range is for the values that the plan names. Where the new run has others of the same
setting, such as CUDA graphs of other modules, the range is made again from what the replay of base
says of each of them; where it says nothing, the range is not held against the gain.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import UNSET

from heuristics.comparison.difference.rows import Facts
from heuristics.comparison.difference.subject import Subject, Value
from heuristics.result.expected import ExpectedExtent
from traces.frozen import frozen
from traces.limits import MOST
from traces.missing import known
from traces.replay.changes.graphs import SCOPES
from traces.sections.rank import Rank

Gain = tuple[float | None, float]


@frozen
class _Replays:
    """What the replay of base has for a setting: a change for each value it can hold, and all of
    them.
    """

    each: Mapping[str, str]
    every: str


_REPLAYS: Final[Mapping[str, _Replays]] = {
    "cuda_graph_modules": _Replays({name: f"graph_{name}" for name in SCOPES}, "graph_scopes")
}
_GRAPHS: Final = "cuda_graph_modules"
"""The one setting whose values a trace shows too."""


def extent_of(sets: Mapping[str, Value], facts: Facts) -> tuple[ExpectedExtent, Gain | None] | None:
    """The first setting of a fix of which the new run has other values than planned, and its own
    range.

    `sets`: what the fix sets. The range is in parts of base's step; None where the replay of base
    has none.
    """
    for what, planned in sets.items():
        now = _now(what, planned, facts)
        if now is not None and {*now} != {*_listed(planned)}:
            gain = _gain(what, now, facts.base.rank)
            return ExpectedExtent(what, _listed(planned), now, gain is not None), gain
    return None


def _listed(value: Value) -> tuple[str, ...]:
    if isinstance(value, tuple):
        return tuple(map(str, value))
    return (str(value),)


def _now(what: str, planned: Value, facts: Facts) -> tuple[str, ...] | None:
    """What the new run has that base has not; None for settings that are on or off, and where it is
    unknown.

    By the configuration, else by the trace.
    """
    if isinstance(planned, bool | str | None):
        return None
    if (value := facts.new.values.get(what)) is not None:
        before = _listed(facts.base.values.get(what, ()))
        return tuple(one for one in _listed(value) if one not in before) or None
    if what != _GRAPHS:
        return None
    ran = _captured(facts.base)
    return tuple(name for name in _captured(facts.new) if name not in ran) or None


def _captured(side: Subject) -> list[str]:
    """Modules that run in graphs, in the order of `SCOPES`."""
    parts = side.rank.detected.graph_scopes_frac
    if parts is UNSET:
        return []
    return [name for name in SCOPES if parts.get(name, 0.0) >= MOST.value]


def _gain(what: str, now: tuple[str, ...], base: Rank) -> Gain | None:
    """At least what the best of the changes gives alone; at most their sum, and what all of them
    give.
    """
    replay, replays, window_ns = known(base.replay), _REPLAYS.get(what), base.budget_ns.window
    if replay is None or replays is None or replay.changes is UNSET or not window_ns:
        return None
    found = {one.kind: one for one in replay.changes}
    kinds = [replays.each.get(name, "") for name in now]
    if not found.keys() >= {*kinds}:
        return None
    high_ns = sum(found[kind].saves_most_ns for kind in kinds)
    if replays.every in found:
        high_ns = min(high_ns, found[replays.every].saves_most_ns)
    least = (found[kind].saves_least_ns for kind in kinds)
    low_ns = max((ns for ns in least if ns is not None), default=None)
    if low_ns is None:
        return None, high_ns / window_ns
    return min(low_ns, high_ns) / window_ns, high_ns / window_ns

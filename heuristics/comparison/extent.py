"""How far a setting of a fix goes in the new run, where that is not what the plan has a range for.

A plan's range is for the values that the plan names. Where the new run has others of the same
setting, such as CUDA graphs of other modules, the range is made again from what the replay of base
says of each of them; where it says nothing, the range is not held against the gain.
"""

from typing import Final

from msgspec import UNSET

from heuristics.comparison.difference.rows import Facts
from heuristics.comparison.difference.subject import Subject, Value, Values
from heuristics.result.expected import ExpectedExtent
from traces.limits import MOST
from traces.missing import known
from traces.replay.changes.graphs import SCOPES
from traces.sections.rank import Rank
from traces.texts import Texts

Gain = tuple[float | None, float]


_GRAPHS: Final = "cuda_graph_modules"
"""The one setting whose values a trace shows too, and whose values the replay of base has: a change
for each, and one for all of them."""


def extent_of(sets: Values, facts: Facts) -> tuple[ExpectedExtent, Gain | None] | None:
    """The first setting of a fix of which the new run has other values than planned, and its own
    range.

    `sets`: what the fix sets. The range is in parts of base's step; None where the replay of base
    has none.
    """
    for what, planned in sets.items():
        now = _now(what, planned, facts)
        if now is not None and {*now} != {*_listed(planned)}:
            gain = _gain(now, facts.base.rank) if what == _GRAPHS else None
            return ExpectedExtent(what, _listed(planned), now, gain is not None), gain
    return None


def _listed(value: Value) -> Texts:
    if isinstance(value, tuple):
        return tuple(map(str, value))
    return (str(value),)


def _now(what: str, planned: Value, facts: Facts) -> Texts | None:
    """What the new run has that base has not; None for settings that are on or off, and where it is
    unknown.

    By the configuration, else by the trace.
    """
    if isinstance(planned, bool | str | None):
        return None
    if (value := facts.new.values.get(what)) is not None:
        now, before = _listed(value), _listed(facts.base.values.get(what, ()))
    elif what == _GRAPHS:
        now, before = _captured(facts.new), _captured(facts.base)
    else:
        return None
    return tuple(name for name in now if name not in before) or None


def _captured(side: Subject) -> Texts:
    """Modules that run in graphs, in the order of `SCOPES`."""
    parts = side.rank.detected.graph_scopes_frac
    if parts is UNSET:
        return ()
    return tuple(name for name in SCOPES if parts.get(name, 0.0) >= MOST.value)


def _gain(modules: Texts, base: Rank) -> Gain | None:
    """At least what the best of the changes gives alone; at most their sum, and what all of them
    give.
    """
    replay, window_ns = known(base.replay), base.budget_ns.window
    if replay is None or replay.changes is UNSET or not window_ns:
        return None
    by_kind = {replayed.kind: replayed for replayed in replay.changes}
    high_ns, lows_ns = 0, []
    for name in modules:
        change = by_kind.get(f"graph_{name}")
        if change is None:
            return None
        high_ns += change.saves_most_ns
        if change.saves_least_ns is not None:
            lows_ns.append(change.saves_least_ns)
    if "graph_scopes" in by_kind:
        high_ns = min(high_ns, by_kind["graph_scopes"].saves_most_ns)
    if not lows_ns:
        return None, high_ns / window_ns
    return min(max(lows_ns), high_ns) / window_ns, high_ns / window_ns

"""What each change would give one rank, by replay of its edits, where its costs are large enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from traces.limits import Limit
from traces.replay.borders import Borders
from traces.replay.changes.change import Change, Draft, Recorded
from traces.replay.changes.collection import collection_drafts
from traces.replay.changes.dispatcher import dispatcher_drafts
from traces.replay.changes.fusion import fusion_drafts
from traces.replay.changes.graphs import graph_drafts
from traces.replay.changes.grouped import grouped_drafts
from traces.replay.changes.memory import memory_drafts
from traces.replay.changes.overlap import overlap_drafts
from traces.replay.changes.syncs import sync_drafts
from traces.replay.cost import Cost
from traces.replay.edits import Subject
from traces.replay.graph import Graph, Timing
from traces.replay.run import replay

SURE: Final = Limit(
    0.9,
    "of what a pessimistic replay saves",
    "ours: replays of simulated runs saved up to a tenth more than the runs with the change did",
)
_FINDERS: Final[tuple[Callable[[Recorded], Iterator[Draft]], ...]] = (
    graph_drafts,
    fusion_drafts,
    collection_drafts,
    sync_drafts,
    overlap_drafts,
    dispatcher_drafts,
    memory_drafts,
    grouped_drafts,
)


Base = tuple[Timing, int]
"""A timing without the change, and how long its steps last, in ns."""


def measure_changes(
    subject: Subject,
    graph: Graph,
    bases: Sequence[Base],
    borders: Borders,
    costs: Mapping[str, Cost],
    worth_ns: int,
) -> tuple[Change, ...]:
    """The changes found in a recording whose kinds cost at least `worth_ns`, each with what it would give.

    `bases`: first the graph's timing without unexplained waits, from which the `costs` of the walls, by name,
    were measured; then, where there are any, with them. `borders` are those of the stretches whose lengths
    count. A pessimistic replay is run on each base; the smallest saving counts, less what replays are off.
    """
    worth_ns = max(worth_ns, 1)
    if sum(cost.ns for cost in costs.values()) < worth_ns:
        return ()
    gains = _Gains(graph, bases, borders)
    found = []
    for draft in _drafts(Recorded(subject, graph)):
        most_ns = sum(
            costs[wall].of_kinds_ns(kinds) for wall, kinds in draft.acts_on.items() if wall in costs
        )
        if most_ns >= worth_ns:
            found.append(gains.of(draft, most_ns if len(draft.acts_on) == 1 else None))
    return tuple(found)


def _drafts(recorded: Recorded) -> Iterator[Draft]:
    for finder in _FINDERS:
        yield from finder(recorded)


class _Gains:
    """Savings against a replay of the same timing without the change."""

    def __init__(self, graph: Graph, bases: Sequence[Base], borders: Borders) -> None:
        self._graph, self._bases, self._borders = graph, bases, borders

    def of(self, draft: Draft, most_ns: int | None) -> Change:
        """What a change gives, at most `most_ns` where that is a bound."""
        timing, length_ns = self._bases[0]
        high_ns = length_ns if most_ns is None else most_ns
        if draft.high is not None:
            high_ns = max(0, min(high_ns, length_ns - self._length_ns(draft.high(timing))))
        if isinstance(draft.low, str):
            return Change(draft.kind, draft.acts_on, None, high_ns, draft.low)
        low = draft.low
        low_ns = min(length_ns - self._length_ns(low(timing)) for timing, length_ns in self._bases)
        sure_ns = int(low_ns * SURE.value) if low_ns > 0 else low_ns
        return Change(draft.kind, draft.acts_on, min(sure_ns, high_ns), high_ns, None)

    def _length_ns(self, timing: Timing) -> int:
        return int(self._borders.lengths_ns(replay(self._graph, timing)).sum())

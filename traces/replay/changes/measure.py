"""What each change would give one rank, by replay of its edits, where its costs are large enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

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


@dataclass(frozen=True, slots=True)
class Priced:
    """What a wall costs, and each of its kinds alone, in ns."""

    ns: int
    by_kind_ns: Mapping[str, int]


def measure_changes(
    subject: Subject,
    graph: Graph,
    explained: Timing,
    borders: Borders,
    costs: Mapping[str, Priced],
    worth_ns: int,
) -> tuple[Change, ...]:
    """The changes found in a recording whose kinds cost at least `worth_ns`, each with what it would give.

    `explained` is the graph's timing without unexplained waits, from which the `costs` of the walls, by name,
    were measured; `borders` are those of the stretches whose lengths count. A pessimistic replay
    is run with those waits as well, and the smaller saving counts, less what replays are off.
    """
    gains = _Gains(graph, explained, borders)
    found = []
    for draft in _drafts(Recorded(subject, graph)):
        most_ns = sum(_cost_ns(costs[wall], kinds) for wall, kinds in draft.acts_on.items() if wall in costs)
        if most_ns >= max(worth_ns, 1):
            found.append(gains.of(draft, most_ns if len(draft.acts_on) == 1 else None))
    return tuple(found)


def _drafts(recorded: Recorded) -> Iterator[Draft]:
    for finder in _FINDERS:
        yield from finder(recorded)


def _cost_ns(cost: Priced, kinds: tuple[str, ...]) -> int:
    """What some kinds cost together; all of it where it was not split."""
    if not cost.by_kind_ns:
        return cost.ns
    return min(cost.ns, sum(ns for kind, ns in cost.by_kind_ns.items() if kind in kinds))


class _Gains:
    """Savings against a replay of the same timing without the change."""

    def __init__(self, graph: Graph, explained: Timing, borders: Borders) -> None:
        self._graph, self._borders = graph, borders
        kept = graph.timing
        self._bases = [(explained, self._length_ns(explained))]
        if not np.array_equal(kept.residual_ns, explained.residual_ns):
            self._bases.append((kept, self._length_ns(kept)))

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

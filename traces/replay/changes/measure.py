"""What each change would give one rank, by replay of its edits, where its costs are large
enough.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from traces.frozen import frozen
from traces.missing import Missing
from traces.replay.changes.change import (
    MOST_EVENTS,
    Base,
    Change,
    ChangesTogether,
    DraftChange,
    Recorded,
    Savings,
)
from traces.replay.changes.dispatcher import dispatcher_drafts, sync_drafts
from traces.replay.changes.graphs import graph_drafts
from traces.replay.changes.host import collection_drafts, loading_drafts
from traces.replay.changes.launches import fusion_drafts, grouped_drafts
from traces.replay.changes.memory import memory_drafts
from traces.replay.changes.overlap import overlap_drafts
from traces.replay.edits import Subject
from traces.replay.graph import Graph
from traces.replay.proofs import Cost
from traces.replay.run import ReplayBorders

_FINDERS: Final[tuple[Callable[[Recorded], Iterator[DraftChange]], ...]] = (
    memory_drafts,  # first, so that the others see what is left of the work
    grouped_drafts,
    fusion_drafts,
    graph_drafts,  # after the fusion, whose first kernel a graph may hold
    collection_drafts,
    loading_drafts,
    sync_drafts,
    overlap_drafts,
    dispatcher_drafts,
)
"""In the order in which changes that are made together are applied."""


@frozen
class MeasuredChanges:
    """The changes found in a rank; `together` replays several of them at once.

    It is None where there are no two of them, Missing where the recording is too large to keep for
    it.
    """

    changes: tuple[Change, ...] = ()
    together: ChangesTogether | Missing | None = None


def measure_changes(
    subject: Subject,
    graph: Graph,
    bases: Sequence[Base],
    borders: ReplayBorders,
    costs: Mapping[str, Cost],
    worth_ns: int,
) -> MeasuredChanges:
    """The changes found in a recording whose kinds cost at least `worth_ns`, each with what it
    would give.

    `bases`: first the graph's timing without unexplained waits, from which the `costs` of the
    walls, by name, were measured; then, where there are any, with them. `borders` are those of the
    stretches whose lengths count. A pessimistic replay is run on each base; the smallest saving
    counts, less what replays are off.
    """
    worth_ns = max(worth_ns, 1)
    if sum(cost.ns for cost in costs.values()) < worth_ns:
        return MeasuredChanges()
    savings, changes, drafts = Savings(graph, bases, borders), [], []
    recorded = Recorded(subject, graph)
    for draft in chain.from_iterable(find(recorded) for find in _FINDERS):
        most_ns = sum(
            costs[wall].of_kinds_ns(kinds) for wall, kinds in draft.acts_on.items() if wall in costs
        )
        if most_ns >= worth_ns:
            changes.append(_change(savings, draft, most_ns if len(draft.acts_on) == 1 else None))
            drafts.append(draft)
    return MeasuredChanges(tuple(changes), _together(graph, savings, drafts))


def _together(
    graph: Graph, savings: Savings, drafts: Sequence[DraftChange]
) -> ChangesTogether | Missing | None:
    if len(drafts) < 2:
        return None
    if len(graph.events) <= MOST_EVENTS.value:
        return ChangesTogether(savings, drafts)
    reason = f"a rank has {len(graph.events):,} events, too many to replay changes of it together"
    return Missing("replay", reason, "give fewer steps: --steps A:B")


def _change(savings: Savings, draft: DraftChange, most_ns: int | None) -> Change:
    """What a change gives, at most `most_ns` where that is a bound."""
    high_ns = savings.whole_ns if most_ns is None else most_ns
    if draft.high is not None:
        high_ns = min(high_ns, savings.most_ns([draft.high]))
    if isinstance(draft.low, str):
        return Change(draft.kind, draft.acts_on, None, high_ns, draft.low)
    return Change(
        draft.kind, draft.acts_on, min(savings.sure_ns([draft.low]), high_ns), high_ns, None
    )

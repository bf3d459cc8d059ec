"""Less to pay for memory: recompute dropped or narrowed, allocator calls gone."""

from collections.abc import Iterator
from functools import partial
from typing import Final

import numpy as np

from traces.arrays import BoolArray
from traces.replay.changes.change import DraftChange, Recorded
from traces.replay.edits import steady_allocator_calls
from traces.replay.graph import Timing
from traces.replay.without import without_activities, without_allocator

CHEAP: Final = ("norm", "activation", "quantize")
"""Classes of what selective recompute runs again at little cost: norms and activations."""


def memory_drafts(recorded: Recorded) -> Iterator[DraftChange]:
    """`recompute_dropped`: none at all; `recompute_narrowed`: all but norms and activations.
    `no_retries`.
    """
    subject = recorded.subject
    again = subject.mask(subject.recomputed)
    if again.any():
        cheap = recorded.rank.of_class(*CHEAP)
        narrow = again & ~cheap
        yield _without("recompute_dropped", recorded, again, again)
        if narrow.any() and (again & cheap).any():
            yield _without("recompute_narrowed", recorded, narrow, again)
    retried = steady_allocator_calls(subject, recorded.graph)
    if retried.any():
        gone = partial(without_allocator, calls=retried)
        yield DraftChange("no_retries", {"memory": ("allocator",)}, gone)


def _without(kind: str, recorded: Recorded, least: BoolArray, most: BoolArray) -> DraftChange:
    """At least and at most what goes; it takes its launches, collectives and synchronisations
    along.
    """
    graph = recorded.graph

    def low(timing: Timing) -> Timing:
        gone = without_activities(graph, timing, least)
        goes = (gone.own_ns == 0) & (timing.own_ns > 0)
        first = goes & ~goes[np.maximum(graph.calls.before, 0)]  # the call before it stays
        gone.pause_ns[first] = timing.pause_ns[first]
        return gone

    gone_whole = partial(without_activities, graph, which=most)
    return DraftChange(kind, {"memory": ("recompute",)}, low, gone_whole)

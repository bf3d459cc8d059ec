"""Changes to the host: garbage collection moved to the edges of steps, batches that are there in
time.

At an edge of a step the host is not needed at once.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from traces.account.calls import NONE
from traces.arrays import NOWHERE, IntArray, distinct, ints, last_at
from traces.replay.changes.change import DraftChange, Recorded
from traces.replay.graph import Timing


def collection_drafts(recorded: Recorded) -> Iterator[DraftChange]:
    """`collection_at_edges`: each step that collected does so once, as it begins, for the longest
    time seen.

    The other end: no collection at all. Without ranges that name collections there are only long
    pauses, and the ceiling is what they cost.
    """
    gc_ns = recorded.graph.pauses.named_ns["gc"]
    if not recorded.subject.steps.used:
        return
    if not gc_ns.any():
        why = "no range names a collection; long pauses without a call could be something else"
        yield DraftChange("collection_at_edges", {"host_overhead": ("long_python_pauses",)}, why)
        return
    at_edges_ns = np.zeros_like(gc_ns)
    at_edges_ns[_edges(recorded, gc_ns)] = gc_ns.max()

    def collecting(timing: Timing, again_ns: IntArray | int) -> Timing:
        return replace(timing, pause_ns=np.maximum(timing.pause_ns - gc_ns, 0) + again_ns)

    yield DraftChange(
        "collection_at_edges",
        {"host_overhead": ("gc",)},
        lambda timing: collecting(timing, at_edges_ns),
        lambda timing: collecting(timing, 0),
    )


def _edges(recorded: Recorded, gc_ns: IntArray) -> IntArray:
    """The first call of each step that collected, by the launches of the step's work."""
    rows, calls = recorded.rows, recorded.graph.calls
    by = recorded.graph.launched_by
    launched = (by != NONE) & rows.is_launched
    launched &= calls.before[by] != NONE  # the pause before the first call of all is not known
    firsts = []
    for step in recorded.subject.steps.used:
        mine = launched & (rows.start_ns >= step.start_ns) & (rows.start_ns < step.end_ns)
        if mine.any():
            firsts.append(int(by[mine].min()))
    if not firsts:
        return NOWHERE
    collected = last_at(np.array(firsts), np.flatnonzero(gc_ns))
    edges = distinct(ints(firsts)[np.maximum(collected, 0)])
    return edges[edges < len(calls)]


QUARTER: Final = 4


def loading_drafts(recorded: Recorded) -> Iterator[DraftChange]:
    """`batches_in_time`: a quarter of each wait for a batch goes; the ceiling is no wait at all."""
    data_ns = recorded.graph.pauses.named_ns["data"]
    if not data_ns.any():
        return

    def waiting(timing: Timing, part_ns: int) -> Timing:
        return replace(timing, pause_ns=(timing.pause_ns - data_ns // part_ns).clip(min=0))

    yield DraftChange(
        "batches_in_time",
        {"host_overhead": ("data",)},
        lambda timing: waiting(timing, QUARTER),
        lambda timing: waiting(timing, 1),
    )

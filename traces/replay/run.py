"""Run a graph with a timing: when everything would happen, and how long the steps of a recording
then last.

A step lasts from border to border, by the work done until each.
"""

from collections.abc import Sequence
from itertools import pairwise, starmap
from typing import Final

import numpy as np

from traces.account.calls import NONE
from traces.arrays import IntArray, ints, last_at, order_of
from traces.columns import NULL
from traces.frozen import frozen
from traces.launchers import helper_work
from traces.limits import Limit
from traces.loops import loop
from traces.replay.graph import BEGIN, WORK, Graph, Timing
from traces.timeline import Activities

REPLAYS: Final = Limit(
    6,
    "replays",
    "ours: at least: two without an edit, one as proof, and one for each of three walls",
)


@frozen
class ReplayedTimes:
    """When each activity started and ended, shape (n,), in ns."""

    start_ns: IntArray
    end_ns: IntArray


def replay(graph: Graph, timing: Timing) -> ReplayedTimes:
    """Everything as early as its constraints allow. The graph's own timing gives back the
    recording.
    """
    rows, calls, waits, polled = graph.rows, graph.calls, timing.waits, timing.polled
    start_ns, end_ns = rows.start_ns.copy(), rows.end_ns.copy()
    happen.over(len(graph.events), REPLAYS.whole)(
        graph.events,
        start_ns,
        end_ns,
        calls.start_ns.copy(),
        calls.end_ns.copy(),
        np.full(len(rows), NULL),
        graph.anchor,
        graph.launched_by,
        graph.within_ns,
        graph.producers.ravel(),
        graph.producers.shape[1],
        graph.room,
        timing.engine,
        timing.duration_ns,
        timing.gap_ns,
        timing.arrival_ns,
        timing.residual_ns,
        calls.before,
        calls.own_before,
        timing.pause_ns,
        timing.own_ns,
        waits.first_of(len(calls)),
        waits.work,
        waits.after_ns,
        polled.first_of(len(calls)),
        polled.work,
        polled.after_ns,
    )
    return ReplayedTimes(start_ns, end_ns)


@loop("start", "end")
def happen(
    events: IntArray, start: IntArray, end: IntArray, begun: IntArray, back: IntArray,
    launched: IntArray, anchor: int, launched_by: IntArray, within: IntArray, producers: IntArray,
    width: int, room: IntArray, engine: IntArray, duration: IntArray, gap: IntArray,
    arrival: IntArray, residual: IntArray, before: IntArray, own_before: IntArray, pause: IntArray,
    own: IntArray, wait_from: IntArray, wait_work: IntArray, wait_after: IntArray,
    poll_from: IntArray, poll_work: IntArray, poll_after: IntArray,
) -> None:  # fmt: skip
    """Every event in its order; shapes as in `Graph`, `Timing` and `Waits`, `width` producers each.

    Comparisons stand in place of `max`, which would take most of the time where this is
    interpreted.
    """
    first = NULL if anchor == NONE else start[anchor]
    for code in events:
        place, event = code // 3, code % 3
        if event == WORK:
            at = free = NULL
            call = launched_by[place]
            if call != NONE:
                inside = within[place]
                free = back[call] if inside < 0 else begun[call] + min(inside, own[call])
                at = free + arrival[place]
            launched[place] = free
            for slot in range(place * width, place * width + width):
                producer = producers[slot]
                if producer == NONE:
                    continue
                ended = end[producer]
                if ended > free:
                    free = ended
                if ended + gap[place] > at:
                    at = ended + gap[place]
            holder = room[place]
            if holder != NONE and launched[holder] <= free:
                at = max(at, end[holder] + gap[place])
            if engine[place] != NONE:
                at = max(at, end[engine[place]] + gap[place])
            if at == NULL:  # neither launch nor producer is known
                at = start[place]
            at = max(at, first)  # on no stream does anything begin before the recording did
            at = start[place] if place == anchor else at + residual[place]
            start[place] = at
            end[place] = at + duration[place]
        elif event == BEGIN:
            if before[place] == NONE:
                continue
            at = back[before[place]] + pause[place]
            own_previous = own_before[place]
            if own_previous != NONE:
                at = max(at, back[own_previous])
            for poll in range(poll_from[place], poll_from[place + 1]):
                at = max(at, end[poll_work[poll]] + poll_after[poll])
            begun[place] = at
        else:
            at = begun[place] + own[place]
            for wait in range(wait_from[place], wait_from[place + 1]):
                at = max(at, end[wait_work[wait]] + wait_after[wait])
            back[place] = at


class ReplayBorders:
    """The borders of a recording's steps, or windows, shape (k, 2), and its work as recorded.

    A replay has reached a border when all work is done that had ended by then, and of the work that
    ran across it as much as had been done; where none had begun, when the first work starts. Work
    of helper threads, whose pace is their own, makes no border. Stretches with the instants
    `apart_ns` between them are replayed apart: none holds up the next, and what came before a later
    one stays. Each step counts for so long as `stand_for_ns` says, shape (k,); None: for itself.
    """

    def __init__(
        self,
        rows: Activities,
        pairs_ns: Sequence[tuple[int, int]],
        stand_for_ns: Sequence[int] | None = None,
        apart_ns: Sequence[int] = (),
    ) -> None:
        pairs = ints(pairs_ns).reshape(-1, 2)
        at_ns, lengths_ns = pairs.ravel(), pairs[:, 1] - pairs[:, 0]
        self._times = (
            np.ones(len(pairs)) if stand_for_ns is None else np.array(stand_for_ns) / lengths_ns
        )
        own = ~helper_work(rows)
        self._by_end = order_of(rows.end_ns)
        self._by_end = self._by_end[own[self._by_end]]
        ends = rows.end_ns[self._by_end]
        self._ended = last_at(ends, at_ns)
        parts = (0, *np.searchsorted(ends, apart_ns).tolist(), len(ends))
        self._parts = [*starmap(slice, pairwise(parts))]
        self._at_ns, self._part = at_ns, np.searchsorted(apart_ns, at_ns)
        self._begun = self._ended >= np.array(parts)[self._part]
        self._across = [
            np.flatnonzero(own & (rows.start_ns < at) & (rows.end_ns > at)) for at in at_ns.tolist()
        ]
        self._rows = rows

    def lengths_ns(self, done: ReplayedTimes) -> IntArray:
        """From the first to the second border of each pair, shape (k,), for all that it stands
        for.
        """
        ends = done.end_ns[self._by_end]
        latest = np.concatenate([np.maximum.accumulate(ends[part]) for part in self._parts])
        before = np.where(self._part > 0, self._at_ns, done.start_ns[self._by_end].min())
        reached = np.where(self._begun, latest[np.maximum(self._ended, 0)], before)
        for place, work in enumerate(self._across):
            done_ns = self._at_ns[place] - self._rows.start_ns[work]
            lasts_ns = done.end_ns[work] - done.start_ns[work]
            part_ns = lasts_ns * done_ns // self._rows.take(work).length_ns
            reached[place] = (done.start_ns[work] + part_ns).max(initial=reached[place])
        pairs = reached.reshape(-1, 2)
        return ints((pairs[:, 1] - pairs[:, 0]) * self._times)

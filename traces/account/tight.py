"""Producers that one occurrence gives away: work that starts as other work, on another stream, ends.

Some waits come once a step (gradients before the optimizer, a batch before the first layer), too seldom for
repetition to show. Where nothing known explains why work had to wait, its stream waited for an
event, and it starts within a moment after other work has ended, that work is taken for its producer: marked
as inferred, like all that is not recorded.
"""

from typing import Final

import numpy as np

from traces.columns import NULL, PLACE, BoolArray, Columns, IntArray
from traces.limits import Limit
from traces.loops import loop
from traces.timeline import Activities, Source

UNEXPLAINED: Final = Limit(2_000, "ns", "ours: longer than any gap between dependent kernels")
TIGHT: Final = Limit(
    5_000, "ns", "measured on real recordings: gaps between dependent kernels are 0.5 to 4.2 us"
)
HIP_TIGHT: Final = Limit(
    30_000,
    "ns",
    "measured on an MI300X: 10 to 26 us from the end of a collective to what a stream's wait held",
)


def tight_ns(columns: Columns) -> int:
    """Within what time dependent work of another stream begins: on AMD's GPUs a signal takes longer."""
    hip = any(name.startswith("hip") for name in columns.call_names)
    return int((HIP_TIGHT if hip else TIGHT).value)


def tight_producers(
    rows: Activities, ended_ns: IntArray, awaited: IntArray | None, tight: int
) -> tuple[IntArray, IntArray]:
    """(consumer, producer) pairs; `ended_ns`, shape (n,): when all known producers of each had ended.

    `awaited`, shape (n,): for how many events each waited, None where no such call was recorded. `tight`: see
    `tight_ns`.
    """
    waits = np.ones(len(rows), dtype=np.bool_) if awaited is None else awaited > 0
    return last_to_end(rows, ended_ns, waits, rows.launch_ns, np.zeros(len(rows), dtype=PLACE), -1, tight)


def last_to_end(
    rows: Activities,
    ended_ns: IntArray,
    which: BoolArray,
    turn_ns: IntArray,
    taken: IntArray,
    room: int,
    tight: int,
) -> tuple[IntArray, IntArray]:
    """(consumer, producer) pairs: the work of another stream that fits and ended last as each one began.

    Of the consumers, a mask of shape (n,), only those count whose launch was recorded and that waited,
    unexplained, for over 2 us; `ended_ns`, shape (n,): when all known producers of each had ended. A producer
    fits whose turn, `turn_ns` of shape (n,), comes first, and that leaves too little room: both take `taken`,
    shape (n,), of it, which is below 0 where it cannot be one.
    """
    # a copy may be waited for within its own call, which then returns after it
    within = (rows.source == Source.COPY) & (rows.launch_end_ns >= rows.start_ns)
    since_ns = np.minimum(rows.launch_end_ns, rows.start_ns)
    since_ns[within] = rows.launch_ns[within]
    np.maximum(since_ns, ended_ns, out=since_ns)
    which = which & (rows.launch_ns != NULL) & (rows.start_ns - since_ns > UNEXPLAINED.value)
    consumer = np.flatnonzero(which).astype(PLACE)
    starts = rows.start_ns[consumer]
    moments = np.maximum(since_ns[consumer], starts - tight), starts
    by_end = np.argsort(rows.end_ns, kind="stable").astype(PLACE)
    low, high = np.searchsorted(rows.end_ns[by_end], moments, side="right")
    producer = np.full(len(consumer), -1, dtype=PLACE)
    find_last.over(max(len(rows), int((high - low).sum())))(
        producer, consumer, low, high, by_end, rows.stream_id, turn_ns, taken, room
    )
    found = producer >= 0
    return consumer[found], producer[found]


@loop("producer")
def find_last(
    producer: IntArray,
    consumer: IntArray,
    low: IntArray,
    high: IntArray,
    by_end: IntArray,
    stream: IntArray,
    turn_ns: IntArray,
    taken: IntArray,
    room: int,
) -> None:
    """Of `by_end[low:high]` of each consumer the last that fits, as `last_to_end` says, else -1."""
    for index in range(len(consumer)):
        place = consumer[index]
        for at in range(high[index] - 1, low[index] - 1, -1):
            other = by_end[at]
            fits = taken[other] >= 0 and taken[other] + taken[place] > room
            if fits and stream[other] != stream[place] and turn_ns[other] < turn_ns[place]:
                producer[index] = other
                break

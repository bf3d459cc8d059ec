"""Producers that one occurrence gives away: work that starts as other work, on another stream, ends.

Some waits come once a step (gradients before the optimizer, a batch before the first layer), too seldom for
repetition to show. Where nothing known explains why work had to wait, its stream was told to wait for an
event, and it starts within a moment after other work has ended, that work is taken for its producer: marked
as inferred, like all that is not recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from traces.columns import NULL, BoolArray, IntArray
from traces.limits import Limit
from traces.timeline import Activities, Source

UNEXPLAINED: Final = Limit(2_000, "ns", "ours: longer than any gap between dependent kernels")
TIGHT: Final = Limit(
    5_000, "ns", "measured on real recordings: gaps between dependent kernels are 0.5 to 4.2 us"
)


Fits = Callable[[int, IntArray], BoolArray]
"""Of the places of some work, shape (k,), those that can have held up the work at a place."""


def tight_producers(rows: Activities, ended_ns: IntArray, told: IntArray | None) -> tuple[IntArray, IntArray]:
    """(consumer, producer) pairs; `ended_ns`, shape (n,): when all known producers of each had ended.

    `told`, shape (n,): for how many events each was told to wait, None where no such call was recorded.
    """
    waits = np.ones(len(rows), dtype=np.bool_) if told is None else told > 0
    return last_to_end(
        rows, ended_ns, waits, lambda place, others: rows.launch_ns[others] < rows.launch_ns[place]
    )


def last_to_end(
    rows: Activities, ended_ns: IntArray, which: BoolArray, fits: Fits
) -> tuple[IntArray, IntArray]:
    """(consumer, producer) pairs: the work of another stream that fits and ended last as each one began.

    Of the consumers, a mask of shape (n,), only those count whose launch was recorded and that waited,
    unexplained, for over 2 us; `ended_ns`, shape (n,): when all known producers of each had ended.
    """
    # a copy may be waited for within its own call, which then returns after it
    within = (rows.source == Source.COPY) & (rows.launch_end_ns >= rows.start_ns)
    launched = np.where(within, rows.launch_ns, np.minimum(rows.launch_end_ns, rows.start_ns))
    since_ns = np.maximum(ended_ns, launched)
    which = which & (rows.launch_ns != NULL) & (rows.start_ns - since_ns > UNEXPLAINED.value)
    by_end = np.argsort(rows.end_ns, kind="stable")
    moments = np.maximum(since_ns, rows.start_ns - int(TIGHT.value)), rows.start_ns
    low, high = np.searchsorted(rows.end_ns[by_end], moments, side="right")
    pairs = []
    for place in np.flatnonzero(which & (high > low)).tolist():
        ended = by_end[low[place] : high[place]]
        ended = ended[(rows.stream_id[ended] != rows.stream_id[place]) & fits(place, ended)]
        if len(ended):
            pairs.append((place, int(ended[-1])))
    consumer, producer = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return consumer, producer

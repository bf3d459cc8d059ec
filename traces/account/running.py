"""Of some work, which runs at each instant of a stretch: the one that ends last, where several do."""

from collections.abc import Iterator

import numpy as np

from traces.columns import IntArray
from traces.timeline import Activities


def last_to_end(
    rows: Activities, work: IntArray, start_ns: int, end_ns: int
) -> Iterator[tuple[int, int, int | None]]:
    """Cut [start, end) into (from, until, place): place of the work that runs and ends last, or None.

    `work`: places in `rows`, in any order.
    """
    starts, ends, at = rows.start_ns[work], rows.end_ns[work], start_ns
    while at < end_ns:
        running = work[(starts <= at) & (ends > at)]
        # where the next begins, another may be the one that ends last
        until = int(starts[starts > at].min(initial=end_ns))
        if not len(running):
            yield at, until, None
        else:
            last = int(running[np.argmax(rows.end_ns[running])])
            until = min(until, int(rows.end_ns[last]))
            yield at, until, last
        at = until

"""How long a loader kept back the very first work of a recording, before which nothing tells of the GPU."""

from typing import Final

import numpy as np

from traces.account.host import ranges_of_cause
from traces.columns import NULL, IntArray, distinct
from traces.limits import Limit
from traces.ranks.summary import UNKNOWN
from traces.steps.found import Steps
from traces.timeline import Bucket, RankTimeline

AT_ONCE: Final = Limit(
    100_000, "ns", "ours: an idle GPU begins some microseconds after a launch, some tens where it slept"
)
AGAIN: Final = Limit(
    0.5, "of what the first step loads", "ours: a first batch alone is slow where a loader starts its workers"
)


def loading_ns(rank: RankTimeline, steps: Steps) -> int:
    """Ranges of a loader before the very first work, where a later step loads about as long again.

    That work is to be of a used step, and to begin when it was launched: work that begins later waited for
    earlier work, which was launched before the recording.
    """
    rows = rank.activities
    launched = np.flatnonzero(rows.launch_ns != NULL)
    if not (len(launched) and steps.used and steps.recorded[0].dropped is None):
        return 0
    first = launched[rows.start_ns[launched].argmin()]
    late_ns = rows.start_ns[first] - rows.launch_end_ns[first]
    by_step = _by_step(rank, steps, launched[rows.bucket[launched] == Bucket.COMPUTE])
    again = by_step[0] * AGAIN.value <= by_step[1:].max(initial=0)
    return int(by_step[0]) if again and late_ns <= AT_ONCE.value else 0


def _by_step(rank: RankTimeline, steps: Steps, launched: IntArray) -> IntArray:
    """Time of ranges of a loader before each used step's work, shape (k,), by the next launch of the thread.

    `launched` is compute: copies and gathers of a step may come before it, on the GPU's time.
    """
    rows, ranges = rank.activities, ranges_of_cause(rank.columns, "data")
    result = np.zeros(len(steps.used), dtype=np.int64)
    thread = rows.launch_thread[launched]
    for one in distinct(ranges.thread_gid).tolist():
        mine = launched[thread == one]
        mine = mine[np.argsort(rows.launch_ns[mine], kind="stable")]
        held = ranges.take(ranges.thread_gid == one)
        after = np.searchsorted(rows.launch_ns[mine], held.end_ns)
        held, after = held.take(after < len(mine)), after[after < len(mine)]
        step = steps.used_at(rows.start_ns[mine[after]])
        lasts_ns = held.end_ns - held.start_ns
        np.add.at(result, step[step != UNKNOWN], lasts_ns[step != UNKNOWN])
    return result

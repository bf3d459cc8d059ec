"""The intervals without compute, and the kernel that ends each."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.columns import PLACE, IntArray
from traces.intervals import Spans, union
from traces.launchers import helper_work
from traces.timeline import Activities, Bucket

NO_KERNEL: Final = -1


@dataclass(frozen=True, slots=True)
class Gaps:
    """Maximal intervals without compute, in order, shape (m,), reaching no further than the windows' ends.

    `kernel` is the place in the activities of the compute kernel that ends the interval, `NO_KERNEL` after
    the last one; where a helper's kernel ends it, the next one of the rank's own. A border of a step cuts
    an interval's time, never its kernel.
    """

    start_ns: IntArray
    end_ns: IntArray
    kernel: IntArray

    def __len__(self) -> int:
        return len(self.start_ns)


def compute_gaps(activities: Activities, windows: Spans) -> Gaps:
    """Intervals without compute that touch the windows."""
    first, last = int(windows.start_ns[0]), int(windows.end_ns[-1])
    compute = np.flatnonzero(activities.bucket == Bucket.COMPUTE)
    compute = compute[activities.end_ns[compute] > activities.start_ns[compute]]
    busy = union(activities.start_ns[compute], activities.end_ns[compute])
    own = compute[~helper_work(activities)[compute]]
    after = np.searchsorted(activities.start_ns[own], busy.start_ns)
    ended_by = np.append(own, NO_KERNEL)[after]
    start = np.concatenate(([min(first, int(busy.start_ns[0])) if len(busy) else first], busy.end_ns))
    end = np.concatenate((busy.start_ns, [max(last, int(busy.end_ns[-1])) if len(busy) else last]))
    kernel = np.concatenate((ended_by, [NO_KERNEL]))
    touching = (end > start) & (end > first) & (start < last)
    return Gaps(start[touching], end[touching], kernel[touching].astype(PLACE))

"""Host intervals -> steps on the GPU's time.

The border before a step that begins on the host at h is the earlier of

- the start of the first compute kernel launched at h or later, and
- the end of the last GPU activity launched before h,

so the wait before a step's first kernel is part of that step. Where nothing was launched before h,
it is the start of the first activity launched from h on, so that nothing which a first step
launched, a receive or the batch's copy, lies before it. Activities whose launch was not recorded
count as launched when they start, or before all others where they run before any of those. What
helper threads launched makes no border.
"""

import numpy as np

from traces.arrays import (
    FOREVER,
    PLACE,
    BoolArray,
    IntArray,
    ints,
    order_of,
    row_by_row,
    sums_before,
)
from traces.columns import NULL
from traces.launchers import helper_work
from traces.steps.found import Found, Step
from traces.timeline import Activities


class HostOrder:
    """A rank's activities in order of launch: what was launched before a host time, and what after.

    `launch_ns`, shape (n,), rises; `places` says which activity each was. `counted_launch_ns` are
    the same times in the order of the activities.
    """

    def __init__(self, activities: Activities) -> None:
        launch = _launched_ns(activities)
        order = order_of(launch).astype(PLACE)
        own = ~helper_work(activities)[order]
        compute = own & activities.is_compute[order]
        starts = np.where(compute, activities.start_ns[order], FOREVER)
        communicates = activities.is_comm[order]
        lengths = np.where(compute, activities.length_ns[order], 0)
        self.places = order
        self.launch_ns = launch[order]
        self.counted_launch_ns = launch
        self.held_end_ns = np.where(own & ~communicates, activities.end_ns[order], NULL)
        self.comm_end_ns = np.where(own & communicates, activities.end_ns[order], NULL)
        self._compute_so_far = _counts_before(compute)
        self._compute_work_so_far = sums_before(lengths)
        self._kernels_so_far = _counts_before(~activities.is_transfer[order])
        self._latest_end = np.maximum.accumulate(
            np.append(NULL, np.where(own, activities.end_ns[order], NULL))
        )
        self._next_compute = _earliest_from(starts)
        self._next_own = _earliest_from(np.where(own, activities.start_ns[order], FOREVER))

    def borders_ns(self, host_ns: IntArray) -> IntArray:
        launched = self.launched_before(host_ns)
        before, after = self._latest_end[launched], self._next_compute[launched]
        return np.where(before == NULL, self._next_own[launched], np.minimum(before, after))

    def until_ns(self, ends_ns: IntArray, first_ns: IntArray, last_ns: IntArray) -> IntArray:
        """When what was launched in each host interval [first, last) had ended, by some ends."""
        between = zip(self.launched_before(first_ns), self.launched_before(last_ns), strict=True)
        return ints([ends_ns[slice(*pair)].max(initial=NULL) for pair in between])

    def goes_on_ns(self, host_ns: int) -> int:
        """When compute launched after a host time began."""
        return int(self._next_compute[np.searchsorted(self.launch_ns, host_ns)])

    @property
    def kernel_count(self) -> int:
        return int(self._kernels_so_far[-1])

    def launched_before(self, host_ns: IntArray) -> IntArray:
        return ints(np.searchsorted(self.launch_ns, host_ns))

    def kernels_between(self, first_ns: IntArray, last_ns: IntArray) -> IntArray:
        """How many kernels and graph replays were launched in each host interval [first, last)."""
        return self._between(self._kernels_so_far, first_ns, last_ns)

    def compute_between(self, first_ns: IntArray, last_ns: IntArray) -> IntArray:
        """How many activities of compute were launched in each host interval [first, last)."""
        return self._between(self._compute_so_far, first_ns, last_ns)

    def compute_work_ns(self, first: IntArray, last: IntArray) -> IntArray:
        """Summed length of the compute among the activities [first, last) of this order, shape
        (n,).
        """
        return self._compute_work_so_far[last] - self._compute_work_so_far[first]

    def chosen_between(self, chosen: BoolArray, first_ns: IntArray, last_ns: IntArray) -> IntArray:
        """How many of the chosen activities, a mask over the rank's, were launched in each host
        interval.
        """
        return self._between(_counts_before(chosen[self.places]), first_ns, last_ns)

    def _between(self, so_far: IntArray, first_ns: IntArray, last_ns: IntArray) -> IntArray:
        return so_far[self.launched_before(last_ns)] - so_far[self.launched_before(first_ns)]


def _launched_ns(activities: Activities) -> IntArray:
    """When each activity was launched, shape (n,).

    One without a launch counts as launched when it starts, but before all others where none of
    those runs yet: the host was ahead as the recording began.
    """
    unknown = ~activities.is_launched
    launch = activities.launched_ns
    if not unknown.all():
        first_ns = int(activities.launch_ns[~unknown].min())
        queued = unknown & (activities.start_ns < activities.start_ns[~unknown].min())
        launch[queued] = min(0, first_ns) - 1  # no recording begins earlier
    return launch


def _earliest_from(starts_ns: IntArray) -> IntArray:
    """The earliest start from each place on, shape (n + 1,)."""
    return np.minimum.accumulate(np.append(starts_ns, FOREVER)[::-1])[::-1]


def _counts_before(mask: BoolArray) -> IntArray:
    """How many places a mask holds before each, shape (n + 1,)."""
    return np.append(PLACE(0), np.cumsum(mask, dtype=PLACE))


def found_between(order: HostOrder, start_ns: IntArray, end_ns: IntArray, what: str) -> Found:
    """Host intervals of shape (n,), in order and disjoint, as steps on the GPU's time."""
    gpu_start_ns, gpu_end_ns = step_borders(order, start_ns, end_ns)
    gpu_end_ns = np.maximum(gpu_start_ns, gpu_end_ns)
    borders = enumerate(row_by_row(gpu_start_ns, gpu_end_ns))
    steps = [Step(index, start, end) for index, (start, end) in borders]
    return Found(what, start_ns, end_ns, steps, order.kernels_between(start_ns, end_ns).tolist())


def step_borders(
    order: HostOrder, start_ns: IntArray, end_ns: IntArray
) -> tuple[IntArray, IntArray]:
    """GPU start and end of each host range; ranges of shape (n,) in order and disjoint.

    A step lasts until the next one begins, so that no wait is lost between them, unless compute
    kernels were launched between the two ranges: that work is no part of a step, which then ends at
    its own end's border.
    """
    start = order.borders_ns(start_ns)
    own_end = order.borders_ns(end_ns)
    foreign = order.compute_between(end_ns[:-1], start_ns[1:]) > 0
    end = np.concatenate((np.where(foreign, own_end[:-1], start[1:]), own_end[-1:]))
    working = np.flatnonzero(order.compute_between(start_ns, end_ns))
    if len(start_ns) == 1:
        # no other step says where it ends: what was launched later runs beside it on another stream
        end = np.maximum(end, order.until_ns(order.held_end_ns, start_ns, end_ns))
    if len(working) > 1:
        end[working[-1]] = _last_end_ns(order, start_ns[working], end_ns[working], end[working])
    return start, end


def _last_end_ns(order: HostOrder, start_ns: IntArray, end_ns: IntArray, end: IntArray) -> int:
    """Where the last step ends: if most other steps hide their last collectives, its own are hidden
    as well.

    The next step's compute hides them there; so long as the others wait between their own work and
    that compute, the last one would have waited too.
    """
    hidden = np.flatnonzero(order.until_ns(order.comm_end_ns, start_ns, end_ns)[:-1] > end[:-1])
    if order.goes_on_ns(int(end_ns[-1])) < FOREVER or 2 * len(hidden) < len(end) - 1:
        return int(end[-1])
    held = order.until_ns(order.held_end_ns, start_ns, end_ns)
    return min(int(end[-1]), int(held[-1] + (end[hidden] - held[hidden]).max(initial=0)))

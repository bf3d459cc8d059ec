"""SMs that communication takes: its blocks, and how much longer compute kernels take beside it."""

from typing import Final

import numpy as np

from traces.columns import NULL, BoolArray, IntArray, distinct
from traces.cures import cure
from traces.groups import group_of, sorted_within
from traces.intervals import Spans, covered_ns, union
from traces.limits import Limit
from traces.missing import Missing, OrMissing, gap
from traces.sections.rank import Stretch
from traces.timeline import Activities, Bucket

STRETCH_KERNELS: Final = Limit(3, "kernels on each side", "a median of fewer is one launch's luck; ours")
ALIKE: Final = Limit(
    0.25,
    "of the median, 10th to 90th percentile",
    "ours: those that spread wider are of several sizes (simulated: a false stretch of -66 to -10 %)",
)
NEIGHBOURS: Final = Limit(
    2,
    "compute kernels on each side",
    "ours: with one, GEMMs of several sizes and one grid fall together; a third changed nothing",
)
BESIDE: Final = Limit(
    0.5, "of a kernel's time", "with less beside communication the figure is not reliable; ours"
)
STRETCH_SHORTEST: Final = Limit(5_000, "ns", "shorter kernels vary by more than they stretch; ours")


def measure_comm_blocks(
    kernels: Activities, grid_blocks: IntArray, windows: Spans, kind: str
) -> tuple[OrMissing[int], OrMissing[float]]:
    """Most and mean blocks of communication kernels at an instant at which any runs in the windows.

    A block of NCCL or DeepEP takes an SM nearly whole, so they count against the SM count. None without any.
    `grid_blocks` of each kernel, shape (n,), NULL where not recorded; `kind`: of the trace.
    """
    comm = kernels.bucket == Bucket.COMM
    if not comm.any():
        return None, None
    if (grid_blocks[comm] == NULL).any():
        unknown = gap("communication kernels without a recorded grid", cure("shapes", kind))
        return unknown, unknown
    times = np.concatenate((kernels.start_ns[comm], kernels.end_ns[comm]))
    change = np.concatenate((grid_blocks[comm], -grid_blocks[comm]))
    order = np.argsort(times, kind="stable")
    times, running = times[order], np.cumsum(change[order])[:-1]
    lasting_ns = covered_ns(times[:-1], times[1:], windows)
    some = (running > 0) & (lasting_ns > 0)
    running, lasting_ns = running[some], lasting_ns[some]
    return int(running.max()), float(np.average(running, weights=lasting_ns))


def stretch_by_sms(blocks_mean: float | None, sm_count: int | None) -> float | None:
    """How much longer compute that fills the GPU takes on the SMs that communication leaves; None if unknown.

    For where no kernel ran both beside communication and alone.
    """
    if blocks_mean is None or sm_count is None:
        return None
    left = sm_count - min(blocks_mean, sm_count - 1)
    return sm_count / left - 1


def measure_stretch(kernels: Activities, grid: IntArray, has_grid: BoolArray) -> Stretch | Missing | None:
    """Compute kernels beside communication kernels against alone; None where no communication ran.

    `frac`: what kernels took more than the median of the same (name, grid) alone, over what the part beside
    communication would have taken alone. The same is between the same compute kernels of its stream, since
    one grid may stand for many sizes; groups are left out whose lengths alone, or beside, differ, and such as
    ran faster beside communication: those are of two sizes. Where all ran faster, 0. `beside_count` kernels,
    `beside_ns` long. What ran besides communication is not told apart.
    `grid`: a number for that of each kernel, shape (n,); `has_grid`: where one was recorded.
    """
    comm = kernels.bucket == Bucket.COMM
    if not comm.any():
        return None
    duration_ns = kernels.end_ns - kernels.start_ns
    usable = (kernels.bucket == Bucket.COMPUTE) & (duration_ns >= STRETCH_SHORTEST.value)
    usable &= (kernels.name >= 0) & has_grid
    under_ns = covered_ns(
        kernels.start_ns, kernels.end_ns, union(kernels.start_ns[comm], kernels.end_ns[comm])
    )
    group = group_of(*(column[usable] for column in _contexts(kernels, group_of(kernels.name, grid))))
    duration_ns, under_ns = duration_ns[usable], under_ns[usable]
    beside = under_ns >= np.maximum(BESIDE.value * duration_ns, 1)
    usual_ns = _usual(group, duration_ns, under_ns == 0)
    compared = beside & ((usual_ns > 0) & (_usual(group, duration_ns, beside) > 0))[group]
    more_ns = np.where(compared, duration_ns - usual_ns[group], 0)
    slower = np.bincount(group, weights=more_ns) > 0
    counted = compared & slower[group] if (compared & slower[group]).any() else compared
    beside_ns, longer_ns = int(under_ns[counted].sum()), max(0, int(more_ns[counted].sum()))
    if beside_ns <= longer_ns:
        reason = f"no kernel ran {STRETCH_KERNELS.value:g} times both beside communication and alone, alike"
        return gap(reason, "record more steps")
    groups = len(distinct(group[counted]))
    return Stretch(longer_ns / (beside_ns - longer_ns), groups, int(counted.sum()), beside_ns)


def _contexts(kernels: Activities, kind: IntArray) -> list[IntArray]:
    """The kind of each kernel and of its neighbours in compute on its stream, shape (n,) each; -1: none."""
    compute = np.flatnonzero(kernels.bucket == Bucket.COMPUTE)
    order = compute[np.lexsort((kernels.start_ns[compute], kernels.stream_id[compute]))]
    columns = [kind]
    for distance in range(1, int(NEIGHBOURS.value) + 1):
        first, second = order[:-distance], order[distance:]
        same = kernels.stream_id[first] == kernels.stream_id[second]
        before, after = np.full((2, len(kernels)), -1, dtype=kind.dtype)
        before[second[same]] = kind[first[same]]
        after[first[same]] = kind[second[same]]
        columns += [before, after]
    return columns


def _usual(group: IntArray, values: IntArray, which: IntArray) -> IntArray:
    """Lower median of the chosen values in each group, shape (groups,); 0 where few or unlike each other."""
    total = int(group.max()) + 1 if len(group) else 0
    group, values = group[which], values[which]
    values = sorted_within(group, values)
    count = np.bincount(group, minlength=total)
    first, usual = np.cumsum(count) - count, np.zeros(total, dtype=np.int64)
    some = count >= STRETCH_KERNELS.value
    low, middle, high = (values[first[some] + ((count[some] - 1) * share // 10)] for share in (1, 5, 9))
    usual[some] = np.where(high - low <= ALIKE.value * middle, middle, 0)
    return usual

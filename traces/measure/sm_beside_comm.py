"""SMs that communication takes: its blocks, and how much longer compute kernels take beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.columns import NULL, IntArray
from traces.intervals import Spans, covered_ns, union
from traces.limits import Limit
from traces.missing import Missing
from traces.timeline import Activities, Bucket

STRETCH_KERNELS: Final = Limit(5, "kernels on each side", "a median of fewer is one launch's luck; ours")
BESIDE: Final = Limit(0.5, "of a kernel's time", "less beside communication says little about it; ours")
STRETCH_SHORTEST: Final = Limit(5_000, "ns", "shorter kernels vary by more than they stretch; ours")


@dataclass(frozen=True, slots=True)
class CommBlocks:
    """Blocks of communication kernels at an instant, while any ran in the windows (`running_ns`, wall time).

    A block of NCCL or DeepEP takes an SM nearly whole, so they count against the SM count.
    """

    mean_count: float
    max_count: int
    running_ns: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """How much longer compute kernels take beside communication than alone: 0.2 is a fifth longer.

    `frac` compares medians of the same (name, grid) between the same compute kernels of its stream, since
    persistent kernels have one grid for all sizes; each weighs the work it did beside communication:
    `beside_count` kernels, `beside_ns` at their medians. What ran besides communication is not told apart.
    """

    frac: float
    group_count: int
    beside_count: int
    beside_ns: int


def measure_comm_blocks(kernels: Activities, grid_blocks: IntArray, windows: Spans) -> CommBlocks | Missing:
    """Blocks of communication kernels. `grid_blocks` of each kernel, shape (n,), NULL where not recorded."""
    comm = kernels.bucket == Bucket.COMM
    if not comm.any():
        return Missing("sm.comm_blocks", "no communication kernel in the window", "nothing to do")
    if (grid_blocks[comm] == NULL).any():
        reason = "communication kernels without a recorded grid"
        return Missing("sm.comm_blocks", reason, "export the whole kernel table")
    times = np.concatenate((kernels.start_ns[comm], kernels.end_ns[comm]))
    change = np.concatenate((grid_blocks[comm], -grid_blocks[comm]))
    order = np.argsort(times, kind="stable")
    times, running = times[order], np.cumsum(change[order])[:-1]
    lasting_ns = covered_ns(times[:-1], times[1:], windows)
    some = (running > 0) & (lasting_ns > 0)
    running, lasting_ns = running[some], lasting_ns[some]
    return CommBlocks(
        float(np.average(running, weights=lasting_ns)), int(running.max()), int(lasting_ns.sum())
    )


def measure_stretch(kernels: Activities, grid: IntArray) -> Stretch | Missing:
    """Compute kernels beside communication kernels against alone. `grid` of each kernel, shape (n, 3)."""
    comm = kernels.bucket == Bucket.COMM
    if not comm.any():
        return Missing("sm.stretch", "no communication kernel in the window", "nothing to do")
    duration_ns = kernels.end_ns - kernels.start_ns
    usable = (kernels.bucket == Bucket.COMPUTE) & (duration_ns >= STRETCH_SHORTEST.value)
    usable &= (kernels.name >= 0) & (grid != NULL).all(axis=1)
    before, after = _neighbours(kernels)
    compute, duration_ns, grid = kernels.take(usable), duration_ns[usable], grid[usable]
    under_ns = covered_ns(
        compute.start_ns, compute.end_ns, union(kernels.start_ns[comm], kernels.end_ns[comm])
    )
    group = _groups(compute.name, *grid.T, before[usable], after[usable])
    beside = _medians(group, duration_ns, under_ns >= BESIDE.value * duration_ns)
    alone = _medians(group, duration_ns, under_ns == 0)
    both = (beside[1] >= STRETCH_KERNELS.value) & (alone[1] >= STRETCH_KERNELS.value)
    if not both.any():
        reason = f"no kernel ran {STRETCH_KERNELS.value:g} times both beside communication and alone"
        return Missing("sm.stretch", reason, "record more steps")
    count = beside[1][both]
    beside_ns, alone_ns = (count * beside[0][both]).sum(), (count * alone[0][both]).sum()
    frac = float(beside_ns / alone_ns - 1)
    return Stretch(frac, int(both.sum()), int(count.sum()), int(beside_ns))


def _neighbours(kernels: Activities) -> tuple[IntArray, IntArray]:
    """Name of the compute kernel before and after each on its stream, shape (n,), -1 where there is none."""
    compute = np.flatnonzero(kernels.bucket == Bucket.COMPUTE)
    order = compute[np.lexsort((kernels.start_ns[compute], kernels.stream_id[compute]))]
    before, after = np.full((2, len(kernels)), -1, dtype=np.int64)
    same = kernels.stream_id[order[1:]] == kernels.stream_id[order[:-1]]
    before[order[1:][same]] = kernels.name[order[:-1][same]]
    after[order[:-1][same]] = kernels.name[order[1:][same]]
    return before, after


def _groups(*columns: IntArray) -> IntArray:
    """A number for each row, from 0, the same where all columns are the same."""
    order = np.lexsort(columns)
    new = np.zeros(len(order), dtype=np.bool_)
    for column in columns:
        new[1:] |= column[order][1:] != column[order][:-1]
    group = np.empty(len(order), dtype=np.int64)
    group[order] = np.cumsum(new)
    return group


def _medians(group: IntArray, values: IntArray, which: IntArray) -> tuple[IntArray, IntArray]:
    """Lower median of the chosen values in each group (0 where none), and how many there are."""
    total = int(group.max()) + 1 if len(group) else 0
    group, values = group[which], values[which]
    values = values[np.lexsort((values, group))]
    count = np.bincount(group, minlength=total)
    middle = np.cumsum(count) - count + np.maximum(count - 1, 0) // 2
    medians = np.zeros(total, dtype=np.int64)
    medians[count > 0] = values[middle[count > 0]]
    return medians, count

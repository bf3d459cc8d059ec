"""How a rank uses the SMs of its GPU: by its launches, beside communication, and by hardware
counters.

Communication takes SMs by its blocks, and compute kernels take longer beside it. Samples of
counters are of the whole GPU.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from traces.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    count_from_0,
    distinct,
    ints,
    none_of,
    order_of,
    summed,
    zeros,
)
from traces.columns import NULL, Gpu, GpuSamples
from traces.cures import cure
from traces.frozen import frozen
from traces.groups import group_of, in_order, sorted_within
from traces.intervals import Spans, covered_ns, instants_in, instants_of, ns_in
from traces.launches import grid_numbers
from traces.limits import FEWEST, LATENCY, MOST, Limit
from traces.measure.sm_launches import NONE_SEEN, ComputeLaunches, measure_launches
from traces.missing import Missing, OrMissing, gap
from traces.names.gpus import capability_at_least
from traces.sections.rank import LaunchUse, Measured, Sm, Stretch
from traces.sections.section import copied
from traces.timeline import Activities, RankTimeline

ALIKE: Final = Limit(
    0.25,
    "of the median, 10th to 90th percentile",
    "measured on recordings of others: of 4,106 kernels of one launch between the same ones 95 % "
    "spread less (bench/limits.py); those that spread wider are of several sizes",
)
NEIGHBOURS: Final = Limit(
    2,
    "compute kernels on each side",
    "ours: with one, GEMMs of several sizes and one grid fall together; a third changed nothing",
)


def measure_comm_blocks(
    kernels: Activities, grid_blocks: IntArray, windows: Spans, kind: str
) -> tuple[OrMissing[int], OrMissing[float]]:
    """Most and mean blocks of communication kernels at an instant at which any runs in the windows.

    A block of NCCL or DeepEP takes an SM nearly whole, so they count against the SM count. None
    without any. `grid_blocks` of each kernel, shape (n,), NULL where not recorded; `kind`: of the
    trace.
    """
    comm = kernels.is_comm
    if not comm.any():
        return None, None
    if (grid_blocks[comm] == NULL).any():
        unknown = gap("communication kernels without a recorded grid", cure("shapes", kind))
        return unknown, unknown
    times = np.concatenate((kernels.start_ns[comm], kernels.end_ns[comm]))
    change = np.concatenate((grid_blocks[comm], -grid_blocks[comm]))
    order = order_of(times)
    times, running = times[order], np.cumsum(change[order])[:-1]
    lasting_ns = covered_ns(times[:-1], times[1:], windows)
    during = (running > 0) & (lasting_ns > 0)
    running, lasting_ns = running[during], lasting_ns[during]
    return int(running.max()), float(np.average(running, weights=lasting_ns))


def stretch_by_sms(blocks_mean: float | None, sm_count: int | None) -> float | None:
    """How much longer compute that fills the GPU takes on the SMs that communication leaves; None
    if unknown.

    For where no kernel ran both beside communication and alone.
    """
    if blocks_mean is None or sm_count is None:
        return None
    left = sm_count - min(blocks_mean, sm_count - 1)
    return sm_count / left - 1


def measure_stretch(
    kernels: Activities, grid: IntArray, has_grid: BoolArray
) -> Stretch | Missing | None:
    """Compute kernels beside communication kernels against alone; None where no communication ran.

    `frac`: what kernels took more than the median of the same (name, grid) alone, over what the
    part beside communication would have taken alone. The same is between the same compute kernels
    of its stream, since one grid may stand for many sizes; groups are left out whose lengths alone,
    or beside, differ, and such as ran faster beside communication: those are of two sizes. Where
    all ran faster, 0. `beside_count` kernels, `beside_ns` long. What ran besides communication is
    not told apart. `grid`: a number for that of each kernel, shape (n,); `has_grid`: where one was
    recorded.
    """
    comm = kernels.is_comm
    if not comm.any():
        return None
    duration_ns = kernels.length_ns
    usable = kernels.is_compute & (duration_ns >= LATENCY.value)
    usable &= (kernels.name >= 0) & has_grid
    under_ns = ns_in(kernels, instants_of(kernels, comm))
    group = group_of(*_contexts(kernels, group_of(kernels.name, grid))[:, usable])
    duration_ns, under_ns = duration_ns[usable], under_ns[usable]
    beside = under_ns >= np.maximum(MOST.value * duration_ns, 1)
    usual_ns = _usual(group, duration_ns, under_ns == 0)
    compared = beside & ((usual_ns > 0) & (_usual(group, duration_ns, beside) > 0))[group]
    more_ns = np.where(compared, duration_ns - usual_ns[group], 0)
    slower = np.bincount(group, weights=more_ns) > 0
    counted = compared & slower[group] if (compared & slower[group]).any() else compared
    beside_ns, longer_ns = summed(under_ns[counted]), max(0, summed(more_ns[counted]))
    if beside_ns <= longer_ns:
        reason = f"no kernel ran {FEWEST.value:g} times both beside communication and alone, alike"
        return gap(reason, "record more steps")
    groups = len(distinct(group[counted]))
    return Stretch(longer_ns / (beside_ns - longer_ns), groups, summed(counted), beside_ns)


def _contexts(kernels: Activities, kind: IntArray) -> IntArray:
    """The kind of each kernel and of its neighbours in compute on its stream, shape (5, n); -1:
    none.
    """
    compute = np.flatnonzero(kernels.is_compute)
    order = in_order(compute, kernels.stream_id, kernels.start_ns)
    columns = [kind]
    for distance in range(1, NEIGHBOURS.whole + 1):
        first, second = order[:-distance], order[distance:]
        same = kernels.stream_id[first] == kernels.stream_id[second]
        before, after = np.full((2, len(kernels)), -1, dtype=kind.dtype)
        before[second[same]] = kind[first[same]]
        after[first[same]] = kind[second[same]]
        columns += [before, after]
    return np.stack(columns)


def _usual(group: IntArray, values: IntArray, which: IntArray) -> IntArray:
    """Lower median of the chosen values in each group, shape (groups,); 0 where few or unlike each
    other.
    """
    total = count_from_0(group)
    group, values = group[which], values[which]
    values = sorted_within(group, values)
    count = np.bincount(group, minlength=total)
    first, usual = np.cumsum(count) - count, zeros(total)
    enough = count >= FEWEST.value
    low, middle, high = values[first[enough] + (count[enough] - 1) * _TENTHS // 10]
    usual[enough] = np.where(high - low <= ALIKE.value * middle, middle, 0)
    return usual


_TENTHS: Final = ints([[1], [5], [9]])


def measure_samples(
    kernels: Activities, windows: Spans, gpu: Gpu | None, samples: tuple[GpuSamples, ...], kind: str
) -> Measured | Missing:
    """Means of the samples while any kernel ran in the windows, weighted by how long it ran in
    each.

    Issue and tensor are throughput; `sm_active_frac` is only residency. `pure_frac` is the share of
    the samples in which kernels of one class ran (communication is one): where it is low, the
    figures are of several classes together. `kind`: of the trace.
    """
    if not samples:
        return gap("GPU metrics were not recorded", cure("counters", kind))
    mine = next((sampled for sampled in samples if gpu and sampled.gpu_id == gpu.gpu_id), None)
    if mine is None:
        return gap("no GPU metrics of this GPU", cure("counters", kind))
    ran_ns = _ran_ns(kernels, ~none_of(len(kernels)), windows, mine)
    touched = ran_ns > 0
    if not touched.any():
        return gap("no sample while a kernel ran in the window", "sample more often")
    classes = zeros(len(mine))
    for which in _classes(kernels):
        classes += _ran_ns(kernels, which, windows, mine) > 0
    return Measured(
        _weighted(mine.sm_active_frac, ran_ns),
        _weighted(mine.sm_issue_frac, ran_ns),
        _weighted(mine.tensor_active_frac, ran_ns),
        float((classes == 1)[touched].mean()),
        summed(touched),
    )


def _classes(kernels: Activities) -> Iterator[BoolArray]:
    compute = kernels.is_compute
    for key in distinct(kernels.key[compute]):
        yield compute & (kernels.key == key)
    yield kernels.is_comm


def _ran_ns(kernels: Activities, which: BoolArray, windows: Spans, samples: GpuSamples) -> IntArray:
    """Of each sample, how long any of these kernels ran in it and in the windows."""
    return ns_in(samples, instants_in(windows, kernels, which))


def _weighted(values: FloatArray, ran_ns: IntArray) -> float | Missing:
    there = ~np.isnan(values) & (ran_ns > 0)
    if there.any():
        return float(np.average(values[there], weights=ran_ns[there]))
    return NONE_SEEN


@frozen
class SmUse:
    """The SMs of one rank in its windows; `work_ns` of compute kernels, None where launches do not
    tell.
    """

    sm: Sm
    work_ns: int | None


def measure_sm(
    rank: RankTimeline, windows: Spans, gpu: Gpu | None, samples: tuple[GpuSamples, ...] = ()
) -> SmUse:
    """Measure the SMs of one rank. `gpu` is the one it ran on, `samples` are those of every sampled
    GPU.

    `capability_at_least` is what kernel names speak of, told only where the trace does not tell the
    GPU's.
    """
    kernels = rank.activities.take(rank.activities.is_kernel)
    kernels = kernels.take(ns_in(kernels, windows) > 0)
    shapes, shape = rank.kernels.shapes, rank.kernels.shape[kernels.row]
    launches = measure_launches(rank, kernels, windows, gpu)
    missing = None
    if isinstance(launches, Missing):
        missing, use = launches, LaunchUse(**dict.fromkeys(LaunchUse.__struct_fields__, launches))
        launches = ComputeLaunches(use, {}, None)
    blocks, blocks_mean = measure_comm_blocks(
        kernels, shapes.blocks[shape], windows, rank.columns.info.kind
    )
    stretch = measure_stretch(
        kernels, grid_numbers(shapes)[shape], (shapes.grid != NULL).all(axis=1)[shape]
    )
    sm = copied(
        Sm,
        launches.use,
        launches,
        sm_count=missing if gpu is None or gpu.sm_count is None else gpu.sm_count,
        capability_at_least=None if gpu and gpu.capability else capability_spoken(rank, kernels),
        comm_blocks=blocks,
        comm_blocks_mean=blocks_mean,
        stretch_frac=stretch.frac if isinstance(stretch, Stretch) else stretch,
        stretch=stretch,
        measured=measure_samples(kernels, windows, gpu, samples, rank.columns.info.kind),
    )
    return SmUse(sm, launches.work_ns)


def capability_spoken(rank: RankTimeline, rows: Activities) -> str | None:
    """The least compute capability of which the names of some kernels speak."""
    names = rank.columns.kernel_names
    return capability_at_least(names[code] for code in distinct(rows.name) if code >= 0)

"""How compute kernels use the SMs by their launches: occupancy, fill, tails, persistent kernels.

Every `_ns` here is work: a sum over kernels of their part inside the windows, which can exceed wall
time where kernels overlap. Nothing here was measured while a kernel ran.

Theoretical occupancy is how many blocks of a launch fit one SM, and what stops one more. The
arithmetic is that of the CUDA occupancy calculator (cuda_occupancy.h 13.0) for what a recording
tells: partitioned global caching off, shared memory carved out as large as it goes, clusters not
counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from traces.arrays import BoolArray, FloatArray, IntArray, distinct, ints, summed
from traces.columns import NULL, Gpu, LaunchShapes
from traces.frozen import frozen
from traces.groups import passing
from traces.intervals import Spans, ns_in
from traces.limits import LATENCY, NEARLY_ALL, Limit
from traces.measure.budget import sums_by_name
from traces.missing import Missing, gap
from traces.names.gpus import REGISTER_UNIT, SUB_PARTITIONS, WARP_THREADS, SmCapacity, sm_capacity
from traces.names.kernels import may_be_persistent
from traces.sections.rank import LaunchUse
from traces.timeline import KEYS, Activities, Bucket, RankTimeline

LIMITERS: Final = ("warps", "registers", "shared_memory", "blocks")
"""What keeps one more block off an SM. Where several do, the earlier here is named."""


@frozen
class Occupancy:
    """Of each launch, arrays of shape (n,): blocks one SM holds, threads per block, and the
    limiter.

    `limiter` indexes `LIMITERS`. `resident_blocks` is 0 where the launch fits no such SM, so that
    the capacity must be another GPU's; `max_warps` is what one SM holds.
    """

    resident_blocks: IntArray
    block_threads: IntArray
    limiter: IntArray
    max_warps: int

    @property
    def theoretical_frac(self) -> FloatArray:
        """Resident warps over the most there can be, if the grid had blocks enough."""
        return self.resident_blocks * _warps(self.block_threads) / self.max_warps

    def launch_frac(self, grid_blocks: IntArray, sm_count: int) -> FloatArray:
        """Occupancy of the grid launched, spread over the SMs; Kineto prints this as achieved
        occupancy.

        It comes from the launch alone: nothing was measured while the kernel ran. As in Kineto, a
        block of 48 threads counts as a warp and a half. Kineto prints 0 for blocks with more than
        48 KiB of shared memory: it asks the calculator about a kernel that has not opted in to
        more.
        """
        spread = np.minimum(self.resident_blocks, grid_blocks / sm_count)
        return spread * self.block_threads / (WARP_THREADS * self.max_warps)


def theoretical_occupancy(
    capacity: SmCapacity, threads: IntArray, registers: IntArray, shared_bytes: IntArray
) -> Occupancy:
    """Occupancy of launches, arrays of shape (n,): threads per block, registers per thread, shared
    per block.

    `shared_bytes` is static and dynamic together, without the driver's reserve. Threads are at
    least 1.
    """
    warps = _warps(threads)
    warp_registers = _rounded_up(registers * WARP_THREADS, REGISTER_UNIT)
    warps_by_registers = SUB_PARTITIONS * _fit(capacity.registers // SUB_PARTITIONS, warp_registers)
    block_shared = _rounded_up(
        shared_bytes + capacity.reserved_shared_bytes, capacity.shared_unit_bytes
    )
    fits = np.stack(
        (
            capacity.warps // warps,
            warps_by_registers // warps,
            _fit(capacity.shared_bytes, block_shared),
            np.full(len(warps), capacity.blocks),
        )
    )
    return Occupancy(fits.min(axis=0), threads, fits.argmin(axis=0), capacity.warps)


def _warps(threads: IntArray) -> IntArray:
    return _rounded_up(threads, WARP_THREADS) // WARP_THREADS


def _rounded_up(amount: IntArray, unit: int) -> IntArray:
    return -(-amount // unit) * unit


def _fit(room: int, size: IntArray) -> IntArray:
    """How many pieces fit; of nothing so many that it is no limit."""
    return room // np.maximum(size, 1)


TAIL_WAVES: Final = Limit(4, "waves", "with more the uneven last wave is lost in the average; ours")


NONE_SEEN: Final = gap("no kernel in the window shows it", "choose a longer window")
"""Why a share is missing that other kernels have."""


@frozen
class ComputeLaunches:
    """Use of the SMs by all compute kernels, whose work is `work_ns` (None where launches do not
    tell), and by each class of them.
    """

    use: LaunchUse
    by_class: Mapping[str, LaunchUse]
    work_ns: int | None


def measure_launches(
    rank: RankTimeline, kernels: Activities, windows: Spans, gpu: Gpu | None
) -> ComputeLaunches | Missing:
    """All compute kernels and each class of them; or why nothing of them could be told.

    Fractions are weighted by work. Persistent kernels and those of no launch shape, or of one that
    fits no such SM, are not judged. Of the others the occupancies are means, and `limiter_ns` adds
    up to their work; those under 5 us are outside `fill_frac`, `tail_ns` and `under_filled_ns`
    (fewer blocks than SMs). `kernels` are those of the rank that run in the windows.
    """
    compute = kernels.is_compute
    if not compute.any():
        return rank.lacks("no single compute kernel in the window", "graphs")
    shape, shapes = rank.kernels.shape[kernels.row], _known(rank.kernels.shapes)
    if not (shapes[shape] & compute).any():
        return rank.lacks("no launch shapes were recorded", "shapes")
    sms = _sms(rank, gpu)
    if isinstance(sms, Missing):
        return sms
    judged = _judge(rank, kernels, shape, windows, *sms)
    use = judged.use(compute, _nothing_judged(rank), _nothing_judged(rank, " or under 5 us"))
    no_occupancy, no_fill = map(_reason, (use.occupancy_frac, use.fill_frac))
    by_class = {
        KEYS[Bucket.COMPUTE][key]: judged.use(compute & (kernels.key == key), no_occupancy, no_fill)
        for key in distinct(kernels.key[compute])
    }
    return ComputeLaunches(use, by_class, summed(judged.work_ns[compute]))


def _reason(share: float | Missing | None) -> Missing:
    if isinstance(share, Missing):
        return share
    return NONE_SEEN


def _nothing_judged(rank: RankTimeline, also: str = "") -> Missing:
    return rank.lacks(f"every compute kernel is persistent, of unknown shape{also}", "counters")


def _sms(rank: RankTimeline, gpu: Gpu | None) -> tuple[int, SmCapacity] | Missing:
    """SM count and what one holds, or why they are not known. Kernel names give neither."""
    if gpu is None:
        return rank.lacks("the trace does not record which GPU this is", "gpu_limits")
    if gpu.sm_count is None:
        return rank.lacks("the trace does not record the number of SMs of the GPU", "gpu_limits")
    if gpu.capability is None:
        return rank.lacks("the trace does not record the GPU's compute capability", "gpu_limits")
    capacity = sm_capacity(gpu)
    if capacity is None:
        reason = f"what an SM of compute capability {gpu.capability} holds is not known here"
        return gap(reason, "use a newer moe-diag")
    return gpu.sm_count, capacity


@frozen
class _Judged:
    """Every kernel of the windows, arrays of shape (n,), and what its shape says, of shape (k,)."""

    work_ns: IntArray
    persistent: BoolArray
    small: BoolArray
    shape: IntArray
    known: BoolArray
    under_filled: BoolArray
    limiter: IntArray
    occupancy: FloatArray
    launch_occupancy: FloatArray
    fill: FloatArray
    tail: FloatArray

    def use(self, which: BoolArray, no_occupancy: Missing, no_fill: Missing) -> LaunchUse:
        """What the kernels chosen make of the SMs; why there is no mean where it has no kernel."""
        judged = which & self.known[self.shape] & ~self.persistent
        large = judged & ~self.small
        return LaunchUse(
            persistent_ns=self._sum(which & self.persistent),
            occupancy_frac=self._mean(self.occupancy, judged, no_occupancy),
            launch_occupancy_frac=self._mean(self.launch_occupancy, judged, no_occupancy),
            fill_frac=self._mean(self.fill, large, no_fill),
            tail_ns=round(float((self.tail[self.shape[large]] * self.work_ns[large]).sum())),
            under_filled_ns=self._sum(large & self.under_filled[self.shape]),
            limiter_ns=sums_by_name(
                self.work_ns[judged], self.limiter[self.shape[judged]], LIMITERS
            ),
        )

    def _sum(self, which: BoolArray) -> int:
        return summed(self.work_ns[which])

    def _mean(self, values: FloatArray, which: BoolArray, none: Missing) -> float | Missing:
        if not which.any():
            return none
        return float(np.average(values[self.shape[which]], weights=self.work_ns[which]))


def _judge(
    rank: RankTimeline,
    kernels: Activities,
    shape: IntArray,
    windows: Spans,
    sm_count: int,
    capacity: SmCapacity,
) -> _Judged:
    shapes, grid_blocks = rank.kernels.shapes, rank.kernels.shapes.blocks
    known = _known(shapes)
    fits = _occupancy(capacity, shapes, known)
    known[known] = fits.resident_blocks > 0
    fits, blocks = _occupancy(capacity, shapes, known), grid_blocks[known]
    waves = blocks / (sm_count * fits.resident_blocks)
    last = np.ceil(waves)
    tail = np.where((last > 1) & (last <= TAIL_WAVES.value), (last - waves) / last, 0.0)
    # one block per SM, a few left to communication
    enough = grid_blocks >= NEARLY_ALL.value * sm_count
    written = passing(may_be_persistent, rank.columns.kernel_names)[kernels.name]
    written |= kernels.of(Bucket.COMPUTE, "grouped_gemm")
    return _Judged(
        work_ns=ns_in(kernels, windows),
        persistent=enough[shape] & kernels.is_compute & written,
        small=kernels.length_ns < LATENCY.value,
        shape=shape,
        known=known,
        under_filled=grid_blocks < sm_count,
        limiter=ints(_spread(known, fits.limiter.astype(np.float64))),
        occupancy=_spread(known, fits.theoretical_frac),
        launch_occupancy=_spread(known, fits.launch_frac(blocks, sm_count)),
        fill=_spread(known, np.minimum(waves, 1.0)),
        tail=_spread(known, tail),
    )


def _occupancy(capacity: SmCapacity, shapes: LaunchShapes, which: BoolArray) -> Occupancy:
    shared_bytes = shapes.static_shared_bytes[which] + shapes.dynamic_shared_bytes[which]
    threads, registers = shapes.block[which].prod(axis=1), shapes.registers[which]
    return theoretical_occupancy(capacity, threads, registers, shared_bytes)


def _known(shapes: LaunchShapes) -> BoolArray:
    """Where the trace has all of a shape, a mask of shape (k,)."""
    known: BoolArray = (shapes.blocks != NULL) & (shapes.block.min(axis=1) > 0)
    known &= (
        (shapes.registers >= 0)
        & (shapes.static_shared_bytes >= 0)
        & (shapes.dynamic_shared_bytes >= 0)
    )
    return known


def _spread(where: BoolArray, values: FloatArray) -> FloatArray:
    """Values back in their places among all shapes; zero elsewhere, where nothing reads them."""
    everywhere = np.zeros(len(where), dtype=np.float64)
    everywhere[where] = values
    return everywhere

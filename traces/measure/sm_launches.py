"""How compute kernels use the SMs by their launches: occupancy, fill, tails, persistent kernels.

Every `_ns` here is work: a sum over kernels of their part inside the windows, which can exceed wall time
where kernels overlap. Nothing here was measured while a kernel ran.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.columns import NULL, BoolArray, FloatArray, Gpu, IntArray, LaunchShapes, distinct
from traces.cures import cure
from traces.intervals import Spans, covered_ns
from traces.limits import Limit
from traces.measure.occupancy import LIMITERS, theoretical_occupancy
from traces.missing import Missing
from traces.names.gpus import SmCapacity, sm_capacity
from traces.names.kernels import may_be_persistent
from traces.timeline import KEYS, Activities, Bucket, RankTimeline

SMALL_KERNEL: Final = Limit(
    5_000, "ns", "shorter ones are a matter of launches and fusion, not of filling; ours"
)
PERSISTENT_GRID: Final = Limit(0.9, "of the SMs", "one block per SM, a few SMs left to communication; ours")
TAIL_WAVES: Final = Limit(4, "waves", "with more the uneven last wave is lost in the average; ours")


@dataclass(frozen=True, slots=True)
class LaunchUse:
    """How some compute kernels use the SMs, from their launches; fractions are weighted by work.

    `work_ns` is persistent_ns + shapeless_ns (no launch shape, or one that fits no such SM) + the kernels
    judged. Of those, `occupancy_frac` and `launch_occupancy_frac` are means, and `limiter_ns` adds up to
    their work. `small_ns` of it lies in kernels under 5 us, outside `fill_frac`, `tail_ns` and
    `under_filled_ns` (fewer blocks than SMs). A mean is None where it has no kernel.
    """

    work_ns: int
    persistent_ns: int
    shapeless_ns: int
    small_ns: int
    occupancy_frac: float | None
    launch_occupancy_frac: float | None
    fill_frac: float | None
    tail_ns: int
    under_filled_ns: int
    limiter_ns: Mapping[str, int]


def measure_launches(
    rank: RankTimeline, kernels: Activities, windows: Spans, gpu: Gpu | None
) -> tuple[LaunchUse, dict[str, LaunchUse], tuple[Missing, ...]] | Missing:
    """All compute kernels, each class of them, and what of it could not be told; or why nothing could.

    `kernels` are those of the rank that run in the windows.
    """
    compute, kind = kernels.bucket == Bucket.COMPUTE, rank.columns.info.kind
    if not compute.any():
        return Missing("sm.launches", "no single compute kernel in the window", cure("graphs", kind))
    shape, known = rank.columns.kernels.shape[kernels.row], _known(rank.columns.kernels.shapes)
    if not (known[shape] & compute).any():
        return Missing("sm.launches", "no launch shapes were recorded", cure("shapes", kind))
    sms = _sms(gpu, kind)
    if isinstance(sms, Missing):
        return sms
    judged = _judge(rank, kernels, shape, windows, *sms)
    use = judged.use(compute)
    by_class = {
        KEYS[Bucket.COMPUTE][key]: judged.use(compute & (kernels.key == key))
        for key in distinct(kernels.key[compute])
    }
    gaps = []
    if use.occupancy_frac is None:
        gaps = [_nothing_judged(field, kind) for field in ("occupancy_frac", "launch_occupancy_frac")]
    if use.fill_frac is None:
        gaps.append(_nothing_judged("fill_frac", kind, " or under 5 us"))
    return use, by_class, tuple(gaps)


def _nothing_judged(field: str, kind: str, also: str = "") -> Missing:
    reason = f"every compute kernel is persistent, of unknown shape{also}"
    return Missing(f"sm.launches.{field}", reason, cure("counters", kind))


def _sms(gpu: Gpu | None, kind: str) -> tuple[int, SmCapacity] | Missing:
    """SM count and what one holds, or why they are not known. Kernel names give neither."""
    how = cure("gpu_limits", kind)
    if gpu is None:
        return Missing("sm.launches", "the trace does not record which GPU this is", how)
    if gpu.sm_count is None:
        return Missing("sm.launches", "the trace does not record the number of SMs of the GPU", how)
    if gpu.capability is None:
        return Missing("sm.launches", "the trace does not record the GPU's compute capability", how)
    capacity = sm_capacity(gpu)
    if capacity is None:
        reason = f"what an SM of compute capability {gpu.capability} holds is not known here"
        return Missing("sm.launches", reason, "use a newer moe-diag")
    return gpu.sm_count, capacity


@dataclass(frozen=True, slots=True)
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

    def use(self, which: BoolArray) -> LaunchUse:
        """What the kernels chosen make of the SMs."""
        known = self.known[self.shape]
        judged = which & known & ~self.persistent
        large = judged & ~self.small
        limiter_ns = np.zeros(len(LIMITERS), dtype=np.int64)
        np.add.at(limiter_ns, self.limiter[self.shape[judged]], self.work_ns[judged])
        return LaunchUse(
            work_ns=self._sum(which),
            persistent_ns=self._sum(which & self.persistent),
            shapeless_ns=self._sum(which & ~known & ~self.persistent),
            small_ns=self._sum(judged & self.small),
            occupancy_frac=self._mean(self.occupancy, judged),
            launch_occupancy_frac=self._mean(self.launch_occupancy, judged),
            fill_frac=self._mean(self.fill, large),
            tail_ns=round(float((self.tail[self.shape[large]] * self.work_ns[large]).sum())),
            under_filled_ns=self._sum(large & self.under_filled[self.shape]),
            limiter_ns={LIMITERS[place]: int(limiter_ns[place]) for place in np.flatnonzero(limiter_ns)},
        )

    def _sum(self, which: BoolArray) -> int:
        return int(self.work_ns[which].sum())

    def _mean(self, values: FloatArray, which: BoolArray) -> float | None:
        if not which.any():
            return None
        return float(np.average(values[self.shape[which]], weights=self.work_ns[which]))


def _judge(
    rank: RankTimeline,
    kernels: Activities,
    shape: IntArray,
    windows: Spans,
    sm_count: int,
    capacity: SmCapacity,
) -> _Judged:
    shapes, grid_blocks = rank.columns.kernels.shapes, rank.columns.kernels.shapes.blocks
    known = _known(shapes)
    shared_bytes = shapes.static_shared_bytes[known] + shapes.dynamic_shared_bytes[known]
    threads, registers = shapes.block[known].prod(axis=1), shapes.registers[known]
    fits = theoretical_occupancy(capacity, threads, registers, shared_bytes)
    known[known] = fits.resident_blocks > 0
    fits = fits.take(fits.resident_blocks > 0)
    blocks = grid_blocks[known]
    waves = blocks / (sm_count * fits.resident_blocks)
    last = np.ceil(waves)
    tail = np.where((waves > 1) & (waves < TAIL_WAVES.value), (last - waves) / last, 0.0)
    enough = grid_blocks >= PERSISTENT_GRID.value * sm_count
    return _Judged(
        work_ns=covered_ns(kernels.start_ns, kernels.end_ns, windows),
        persistent=enough[shape] & _written_persistent(rank, kernels),
        small=kernels.end_ns - kernels.start_ns < SMALL_KERNEL.value,
        shape=shape,
        known=known,
        under_filled=grid_blocks < sm_count,
        limiter=_spread(known, fits.limiter.astype(np.float64)).astype(np.int64),
        occupancy=_spread(known, fits.theoretical_frac),
        launch_occupancy=_spread(known, fits.launch_frac(blocks, sm_count)),
        fill=_spread(known, np.minimum(waves, 1.0)),
        tail=_spread(known, tail),
    )


def _known(shapes: LaunchShapes) -> BoolArray:
    """Where the trace has all of a shape, a mask of shape (k,)."""
    known: BoolArray = (shapes.blocks != NULL) & (shapes.block.min(axis=1) > 0)
    known &= (shapes.registers >= 0) & (shapes.static_shared_bytes >= 0) & (shapes.dynamic_shared_bytes >= 0)
    return known


def _spread(where: BoolArray, values: FloatArray) -> FloatArray:
    """Values back in their places among all shapes; zero elsewhere, where nothing reads them."""
    everywhere = np.zeros(len(where), dtype=np.float64)
    everywhere[where] = values
    return everywhere


def _written_persistent(rank: RankTimeline, kernels: Activities) -> BoolArray:
    """Which compute kernels are of a family that may be persistent; -1, no name, picks the last: no."""
    by_name = [may_be_persistent(name) for name in rank.columns.kernel_names]
    grouped = kernels.key == KEYS[Bucket.COMPUTE].index("grouped_gemm")
    named = np.array([*by_name, False], dtype=np.bool_)[kernels.name]
    result: BoolArray = (kernels.bucket == Bucket.COMPUTE) & (named | grouped)
    return result

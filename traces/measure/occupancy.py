"""Theoretical occupancy of a launch: how many of its blocks fit one SM, and what stops one more.

The arithmetic is that of the CUDA occupancy calculator (cuda_occupancy.h 13.0) for what a recording tells:
partitioned global caching off, shared memory carved out as large as it goes, clusters not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.columns import BoolArray, FloatArray, IntArray
from traces.names.gpus import REGISTER_UNIT, SUB_PARTITIONS, WARP_THREADS, SmCapacity

LIMITERS: Final = ("warps", "registers", "shared_memory", "blocks")
"""What keeps one more block off an SM. Where several do, the earlier here is named."""

_NO_LIMIT: Final = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Of each launch, arrays of shape (n,): blocks one SM holds, threads per block, and the limiter.

    `limiter` indexes `LIMITERS`. `resident_blocks` is 0 where the launch fits no such SM, so that the
    capacity must be another GPU's; `max_warps` is what one SM holds.
    """

    resident_blocks: IntArray
    block_threads: IntArray
    limiter: IntArray
    max_warps: int

    def take(self, which: BoolArray) -> Occupancy:
        """Some of the launches."""
        return Occupancy(
            self.resident_blocks[which], self.block_threads[which], self.limiter[which], self.max_warps
        )

    @property
    def theoretical_frac(self) -> FloatArray:
        """Resident warps over the most there can be, if the grid had blocks enough."""
        return self.resident_blocks * _warps(self.block_threads) / self.max_warps

    def launch_frac(self, grid_blocks: IntArray, sm_count: int) -> FloatArray:
        """The same for the grid launched, spread over the SMs; Kineto prints this as achieved occupancy.

        It comes from the launch alone: nothing was measured while the kernel ran. As in Kineto, a block of 48
        threads counts as a warp and a half. Kineto prints 0 for blocks with more than 48 KiB of shared
        memory: it asks the calculator about a kernel that has not opted in to more.
        """
        spread = np.minimum(self.resident_blocks, grid_blocks / sm_count)
        result: FloatArray = spread * self.block_threads / (WARP_THREADS * self.max_warps)
        return result


def theoretical_occupancy(
    capacity: SmCapacity, threads: IntArray, registers: IntArray, shared_bytes: IntArray
) -> Occupancy:
    """Occupancy of launches, arrays of shape (n,): threads per block, registers per thread, shared per block.

    `shared_bytes` is static and dynamic together, without the driver's reserve. Threads are at least 1.
    """
    warps = _warps(threads)
    warp_registers = _rounded_up(registers * WARP_THREADS, REGISTER_UNIT)
    warps_by_registers = SUB_PARTITIONS * _fit(capacity.registers // SUB_PARTITIONS, warp_registers)
    block_shared = _rounded_up(shared_bytes + capacity.reserved_shared_bytes, capacity.shared_unit_bytes)
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
    result: IntArray = -(-amount // unit) * unit
    return result


def _fit(room: int, each: IntArray) -> IntArray:
    """How many pieces fit; a piece of nothing is no limit."""
    result: IntArray = np.where(each > 0, room // np.maximum(each, 1), _NO_LIMIT // SUB_PARTITIONS)
    return result

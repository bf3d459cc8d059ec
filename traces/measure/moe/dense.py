"""Dense GEMMs around the exchanges: the expert that every token visits, and the router's gate.

Their names say nothing. The shared expert is told by its activation outside of the experts: it may run beside
an exchange, before the router, or after the combine; or its first linear layer runs beside dispatch and its
second beside combine (Megatron-Core's moe_shared_expert_overlap), in backward the other way round.
"""

from dataclasses import dataclass

import numpy as np

from traces.columns import BoolArray, IntArray
from traces.measure.moe.lanes import Lanes, Part
from traces.measure.moe.passes import Kind, Passes
from traces.measure.moe.reach import next_at, nth_next, nth_previous, previous_at, within
from traces.measure.moe.zones import Zone, Zones
from traces.resolve.resolution import UNTOLD


@dataclass(frozen=True, slots=True)
class Dense:
    """Masks over a lane order, shape (n,)."""

    shared: BoolArray
    gate: BoolArray


def dense_of(lanes: Lanes, passes: Passes, zones: Zones) -> Dense:
    """Find the shared expert's kernels and the gate's GEMMs."""
    around = _Around(lanes, passes, zones)
    shared = around.shared()
    return Dense(shared, around.gate(shared))


class _Around:
    """The zones around the experts of all passes; arrays of shape (p,) unless said otherwise."""

    def __init__(self, lanes: Lanes, passes: Passes, zones: Zones) -> None:
        self._part, self._passes, self._zones = lanes.part, passes, zones
        self._gemm, self._activation = lanes.part == Part.GEMM, lanes.part == Part.ACTIVATION
        self._next_gemm, self._previous_gemm = next_at(self._gemm), previous_at(self._gemm)
        self._back = passes.kind == Kind.BACKWARD
        self._gemms = np.where(self._back, 2, 1)  # of one linear layer: both gradients, in backward
        self._returned = passes.from_last + 1

    def shared(self) -> BoolArray:
        """Kernels of the shared expert, shape (n,)."""
        zones, passes = self._zones, self._passes
        beside = np.isin(zones.zone, (Zone.LEAVE, Zone.ENTRY, Zone.EXIT, Zone.RETURN))
        worked = np.zeros(len(passes) + 1, dtype=np.bool_)
        worked[zones.of[beside & self._gemm]] = True
        found = beside & worked[zones.of]
        found |= self._whole(zones.begin, passes.to_first) | self._whole(self._returned, zones.end)
        found |= self._second_half() | self._first_half_backward()
        return found & np.isin(self._part, (Part.GEMM, Part.ACTIVATION, Part.CAST))

    def _whole(self, low: IntArray, high: IntArray) -> BoolArray:
        """In the stretches [low, high), from the linear layer before an activation to the one after it."""
        first, last = next_at(self._activation)[low], previous_at(self._activation)[high]
        begin = np.maximum(nth_previous(self._previous_gemm, first, self._gemms), low)
        begin = np.maximum(previous_at(self._part != Part.CAST)[begin] + 1, low)
        end = np.minimum(nth_next(self._next_gemm, last, self._gemms) + 1, high)
        return self._where((first < high) & (self._previous_gemm[first] >= low), begin, end)

    def _second_half(self) -> BoolArray:
        """Forward: the linear layer beside combine, where only the first one ran beside dispatch."""
        low, high = self._passes.to_first, self._zones.entered
        last = previous_at(self._activation)[high]
        begun = ~self._back & (last >= low) & (self._next_gemm[np.maximum(last, 0)] >= high)
        end = np.minimum(self._next_gemm[self._returned] + 1, self._zones.end)
        return self._where(begun, self._returned, end)

    def _first_half_backward(self) -> BoolArray:
        """Backward: the same expert, its second linear layer beside combine, the rest beside dispatch."""
        low, routed = self._returned, next_at(self._part == Part.ROUTER)[self._returned]
        high = np.minimum(self._zones.end, routed)
        first = next_at(self._activation)[low]
        split = self._back & (first < high) & (self._previous_gemm[first] < low)
        end = np.minimum(nth_next(self._next_gemm, first, self._gemms) + 1, high)
        before = nth_previous(self._previous_gemm, self._passes.to_first, self._gemms)
        before = np.maximum(before, self._zones.begin)
        return self._where(split, low, end) | self._where(split, before, self._passes.to_first)

    def _where(self, which: BoolArray, begin: IntArray, end: IntArray) -> BoolArray:
        """Mask of the stretches [begin, end) of some passes, shape (n,)."""
        return within(np.where(which, begin, 0), np.where(which, end, 0), len(self._part))

    def gate(self, shared: BoolArray) -> BoolArray:
        """The router's own GEMMs, (n,): forward the last before its kernels, backward those after them."""
        zones, router = self._zones, self._part == Part.ROUTER
        free = self._gemm & ~shared & (zones.of != UNTOLD)
        first = next_at(router)[zones.begin]
        routed = ~self._back & (first < self._passes.to_first)
        at = previous_at(free)[np.where(routed, first, 0)]
        routed &= at >= zones.begin
        begin = np.minimum(next_at(router)[self._returned], zones.end)
        result: BoolArray = free & (
            self._where(routed, at, at + 1) | self._where(self._back, begin, zones.end)
        )
        return result

"""The communication activities of a rank, with what their names alone say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.columns import BoolArray, IntArray
from traces.names.kernels import UNNAMED, KernelClass, classify_kernel
from traces.resolve.resolution import OPERATIONS, PHASES, UNTOLD
from traces.timeline import Activities, Bucket, RankTimeline, Source

_OPERATION: Final = {
    "ep_dispatch": "dispatch",
    "ep_combine": "combine",
    "ep_a2a": "a2a",
    "ep_notify": "notify",
    "ep_sync": "sync",
    "ep_layout": "layout",
    "ep_fused": "fused",
    "pp_p2p": "p2p",
    "cp_a2a": "a2a",
    "all_gather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "all_reduce": "all_reduce",
    "broadcast": "broadcast",
    "reduce": "reduce",
}
_BOOL: Final = r"(?:\(bool\))?(true|false|[01])"
_CACHED_DISPATCH: Final = re.compile(
    rf"internode\w*::dispatch<(?:\(bool\))?(?:true|false|[01]), ?(?:\(int\))?\d+, ?{_BOOL}\b"
)
"""DeepEP internode dispatch: low latency, RDMA ranks, cached; a cached layout is the backward of combine."""
_HYBRID: Final = re.compile(rf"hybrid_ep(?:::\w+)*::(dispatch|combine)_kernel<(?:.*[, ])?{_BOOL}>(?:\(|$)")
"""HybridEP: the last template argument is FORWARD_DISPATCH of dispatch, BACKWARD_COMBINE of combine."""


@dataclass(frozen=True, slots=True)
class Communication:
    """Communication activities of one rank, in order: `index` into the rank's `Activities`, shape (m,)."""

    rank: RankTimeline
    index: IntArray
    rows: Activities
    classes: tuple[KernelClass, ...]
    """Of each kernel name of the columns; the last is for activities without a name."""

    def __len__(self) -> int:
        return len(self.index)

    def of_subclass(self, *subclasses: str) -> BoolArray:
        """Mask of the kernels whose name has one of these subclasses; shape (m,)."""
        wanted = np.array([kernel.subclass in subclasses for kernel in self.classes], dtype=np.bool_)
        mask: BoolArray = wanted[self.rows.name] & (self.rows.source == Source.KERNEL)
        return mask

    def operation_by_name(self) -> IntArray:
        """Operation that the name gives, shape (m,)."""
        codes = [
            OPERATIONS.index(_OPERATION[c.subclass]) if c.subclass in _OPERATION else UNTOLD
            for c in self.classes
        ]
        return self._by_name(codes)

    def phase_by_name(self) -> IntArray:
        """Phase that the name gives, shape (m,): of DeepEP's notify and dispatch, by HybridEP's last bool."""
        names = (*self.rank.columns.kernel_names, "")
        return self._by_name([_phase(name, c) for name, c in zip(names, self.classes, strict=True)])

    def _by_name(self, codes: list[int]) -> IntArray:
        by_name = np.array(codes, dtype=np.int64)[self.rows.name]
        return np.where(self.rows.source == Source.KERNEL, by_name, UNTOLD)


def communication_of(rank: RankTimeline) -> Communication:
    """The communication activities of a rank."""
    index = np.flatnonzero(rank.activities.bucket == Bucket.COMM)
    classes = tuple(classify_kernel(name) for name in rank.columns.kernel_names)
    return Communication(rank, index, rank.activities.take(index), (*classes, UNNAMED))


def _phase(name: str, kernel: KernelClass) -> int:
    if kernel.class_ != "comm":
        return UNTOLD
    if kernel.phase in PHASES:
        return PHASES.index(kernel.phase)
    if cached := _CACHED_DISPATCH.search(name):
        return PHASES.index("bwd" if cached[1] in ("true", "1") else "fwd")
    if hybrid := _HYBRID.search(name):
        forward = (hybrid[2] in ("true", "1")) == (hybrid[1] == "dispatch")
        return PHASES.index("fwd" if forward else "bwd")
    return UNTOLD

"""The result: what each communication activity is for, on what evidence, and how sure that is."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from traces.arrays import BoolArray, IntArray, ints
from traces.columns import PURPOSES
from traces.frozen import frozen
from traces.names.kernels import COMM_KINDS
from traces.timeline import RankTimeline

OPERATIONS: Final = (
    "dispatch",  # tokens to experts; also the backward of combine
    "combine",  # experts to tokens; also the backward of dispatch
    "a2a",  # all-to-all, direction unknown
    "notify",
    "sync",
    "layout",
    "fused",  # dispatch, expert GEMMs and combine in one kernel
    "p2p",
    "all_gather",
    "reduce_scatter",
    "all_reduce",
    "broadcast",
    "reduce",
)
PHASES: Final = ("fwd", "bwd")
EVIDENCE: Final = (
    "name",
    "process_group",
    "nccl_groups",
    "nvtx_range",
    "communicator",
    "stream",
    "neighbours",
    "configuration",
)
CONFIDENCES: Final = ("low", "medium", "high")
UNTOLD: Final = -1
"""Stands for None in the coded columns of `Resolution`."""

PAYLOAD_KINDS: Final = ("ep_dispatch", "ep_combine", "ep_a2a")
CONTROL_KIND: Final = "ep_control"


def place_of(names: Sequence[str], name: str | None) -> int:
    """The place of a name among names; `UNTOLD` where there is none."""
    return UNTOLD if name is None else names.index(name)


def kind_codes(*kinds: str) -> IntArray:
    """Places of kinds in `COMM_KINDS`."""
    return ints([*map(COMM_KINDS.index, kinds)])


def of_purpose(purpose: IntArray, *purposes: str) -> BoolArray:
    """Which of some purposes, places in `PURPOSES`, is one of those named."""
    return np.isin(purpose, [*map(PURPOSES.index, purposes)])


@frozen
class Unresolved:
    """SendRecv, or gathers and scatters, of one stream whose purpose could not be told.

    `kind` is the one that they keep: `sendrecv_unresolved`, or `other_comm` for gathers and
    scatters. `work_ns` is the sum of their durations; `cure` is what would settle it.
    """

    kind: str
    stream_id: int
    kernel_count: int
    work_ns: int
    reason: str
    cure: str


@frozen
class Resolution:
    """Of each communication activity of a rank, arrays of shape (m,), what it is for.

    `index` is its place in the rank's `Activities`, ascending. `kind` indexes `COMM_KINDS`,
    `operation` `OPERATIONS`, `phase` `PHASES` (recomputed forward is `fwd`), `evidence` `EVIDENCE`,
    `confidence` `CONFIDENCES`; `UNTOLD` where there is none. `moe_kernels` says whether a router,
    permute or grouped-GEMM kernel ran at all.
    """

    index: IntArray
    kind: IntArray
    operation: IntArray
    phase: IntArray
    evidence: IntArray
    confidence: IntArray
    moe_kernels: bool
    unresolved: tuple[Unresolved, ...]

    def __len__(self) -> int:
        return len(self.index)

    def of_kind(self, *kinds: str) -> BoolArray:
        return np.isin(self.kind, kind_codes(*kinds))


def with_kinds(rank: RankTimeline, resolution: Resolution) -> RankTimeline:
    """The rank with the resolved kinds as keys of its communication activities, all else as it
    is.
    """
    key = rank.activities.key.copy()
    key[resolution.index] = resolution.kind
    return replace(rank, activities=replace(rank.activities, key=key))


@frozen
class Draft:
    """Of each communication activity the purpose settled so far, shape (m,), `UNTOLD` where
    none.
    """

    purpose: IntArray
    evidence: IntArray
    confidence: IntArray

    @property
    def open(self) -> BoolArray:
        return np.equal(self.purpose, UNTOLD)

    def settle(self, which: BoolArray, purpose: str, evidence: str, confidence: str) -> None:
        now = which & self.open
        self.purpose[now] = PURPOSES.index(purpose)
        self.evidence[now] = EVIDENCE.index(evidence)
        self.confidence[now] = CONFIDENCES.index(confidence)

    def settle_each(self, purpose: IntArray, evidence: str, confidence: str) -> None:
        """Settle what is still open, each with its own purpose (negative: stays open)."""
        for name in PURPOSES:
            self.settle(of_purpose(purpose, name), name, evidence, confidence)

    def of(self, *purposes: str) -> BoolArray:
        return of_purpose(self.purpose, *purposes)

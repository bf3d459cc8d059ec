"""NCCL's SendRecv: expert all-to-all, pipeline exchange, or context parallelism.

One name serves all of them, so the purpose comes from evidence, in order: NCCL's own calls per group, the
ranges around the launch, the stream, the kernels beside it. How durations vary decides nothing by itself: one
rank's kernel time is waiting as well as moving.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from traces.columns import NULL, BoolArray, IntArray
from traces.limits import Limit
from traces.resolve.communication import Communication
from traces.resolve.draft import Draft
from traces.resolve.nccl_groups import ALL_TO_ALL, EITHER, POINT_TO_POINT, UNKNOWN, Groups
from traces.resolve.neighbours import MOE_ROLES, Neighbours, Role
from traces.resolve.ranges import Enclosing
from traces.resolve.resolution import UNTOLD
from traces.resolve.streams import Streams

PER_PERMUTE: Final = Limit(
    3.0,
    "SendRecv kernels per permute",
    "Megatron-Core's all-to-all dispatcher moves tokens, probabilities and results once per layer pass",
)
PER_PERMUTE_SLACK: Final = Limit(
    0.5, "SendRecv kernels per permute", "ours: halfway to the next whole number"
)


def settle_sendrecv(
    draft: Draft,
    comm: Communication,
    which: BoolArray,
    groups: Groups,
    ranges: Enclosing,
    near: Neighbours,
    streams: Streams,
) -> None:
    """Settle the purpose of the SendRecv in `which`, a mask of shape (m,), as far as evidence goes."""
    bracketed = which & (near.dispatch_like() | near.combine_like())
    shape = _agreed_shape(groups.shape(), which, bracketed, ranges, streams)
    for purpose, excluded in (("cp", UNKNOWN), ("ep", POINT_TO_POINT), ("pp", ALL_TO_ALL)):
        fits = (shape == UNKNOWN) | (shape != excluded)
        draft.settle(which & fits & ranges.of_purpose(purpose), purpose, "nvtx_range", "high")
    _settle_by_shape(draft, which, shape, near, "nccl_groups", "high")
    said = np.where(shape == UNKNOWN, ranges.shape, UNKNOWN)
    _settle_by_shape(draft, which, said, near, "nvtx_range", "medium")
    draft.settle_each(streams.agreed(draft.purpose, which), "stream", "medium")
    _settle_launched_before(draft, which, comm, streams)
    confidence = "medium" if _three_to_one(bracketed, near) else "low"
    draft.settle(bracketed, "ep", "neighbours", confidence)
    draft.settle_each(streams.agreed(draft.purpose, which), "stream", "low")


def _settle_launched_before(draft: Draft, which: BoolArray, comm: Communication, streams: Streams) -> None:
    """A launch from before the recording cannot be asked: the others of its stream answer for it."""
    unasked = which & (comm.rows.launch_ns == NULL)
    agreed = streams.agreed(draft.purpose, which, shared=True)
    draft.settle_each(np.where(unasked, agreed, UNTOLD), "stream", "low")


def _agreed_shape(
    own: IntArray, which: BoolArray, bracketed: BoolArray, ranges: Enclosing, streams: Streams
) -> IntArray:
    """Shape of each exchange by its group, once its stream and ranges had their say.

    PyTorch leaves out peers that get no token, so a group of an all-to-all can be small. A pipeline exchanges
    in both directions in its steady state only.
    """
    shape = np.where(which, own, UNKNOWN)
    small = (shape == POINT_TO_POINT) | (shape == EITHER)
    shape[small & streams.any_of(shape == ALL_TO_ALL)] = ALL_TO_ALL
    expert_stream = 2 * streams.share(bracketed, which) >= streams.share(which, which)
    shape[(shape == POINT_TO_POINT) & expert_stream & streams.any_of(shape == EITHER)] = EITHER
    shape[(shape == EITHER) & streams.any_of(shape == POINT_TO_POINT)] = POINT_TO_POINT
    return np.where((shape == EITHER) & (ranges.shape != UNKNOWN), ranges.shape, shape)


def _settle_by_shape(
    draft: Draft, which: BoolArray, shape: IntArray, near: Neighbours, evidence: str, confidence: str
) -> None:
    """Purpose of an exchange of known shape, by what it stands beside.

    An all-to-all is expert traffic only where expert work runs at all; beside attention it redistributes
    heads (Ulysses), and one with neighbours is a ring.
    """
    attention = which & near.beside(Role.ATTENTION) & ~near.beside(*MOE_ROLES)
    all_to_all, neighbourly = which & (shape == ALL_TO_ALL), which & (shape == POINT_TO_POINT)
    draft.settle(attention & (shape != UNKNOWN), "cp", evidence, "medium")
    if near.moe_kernels:
        draft.settle(all_to_all, "ep", evidence, confidence)
    draft.settle(neighbourly, "pp", evidence, confidence)


def _three_to_one(bracketed: BoolArray, near: Neighbours) -> bool:
    """Whether there are as many SendRecv per permute as Megatron-Core's dispatcher makes."""
    if not near.permute_count:
        return False
    return bool(abs(bracketed.sum() / near.permute_count - PER_PERMUTE.value) <= PER_PERMUTE_SLACK.value)

"""NCCL's SendRecv: expert all-to-all, pipeline exchange, or context parallelism.

One name serves all of them, so the purpose comes from evidence, in order: the described process group, NCCL's
own calls per group, the ranges around the launch, the communicator, the stream, the kernels beside it. How
durations vary decides nothing by itself: one rank's kernel time is waiting as well as moving.
"""

from typing import Final

import numpy as np

from traces.columns import NULL, BoolArray, IntArray
from traces.limits import Limit
from traces.resolve.communication import Communication
from traces.resolve.draft import Draft
from traces.resolve.evidence import Evidence, settle_by_communicator
from traces.resolve.nccl_groups import ALL_TO_ALL, EITHER, POINT_TO_POINT, UNKNOWN
from traces.resolve.neighbours import MOE_ROLES, Neighbours, Role
from traces.resolve.parts import Parts
from traces.resolve.resolution import UNTOLD

PER_PERMUTE: Final = Limit(
    3.0,
    "SendRecv kernels per permute",
    "Megatron-Core's all-to-all dispatcher moves tokens, probabilities and results once per layer pass",
)
PER_PERMUTE_SLACK: Final = Limit(
    0.5, "SendRecv kernels per permute", "ours: halfway to the next whole number"
)


def settle_sendrecv(draft: Draft, found: Evidence) -> None:
    """Settle the purpose of the SendRecv, as far as evidence goes."""
    which, ranges, near, streams = found.sendrecv, found.ranges, found.near, found.streams
    bracketed = which & (near.dispatch_like() | near.combine_like())
    told = which & (found.processes.shape != UNKNOWN)
    draft.settle_each(np.where(told, found.fitting(found.processes.purpose), UNTOLD), "process_group", "high")
    shape = _agreed_shape(found, bracketed)
    for purpose, excluded in (("cp", UNKNOWN), ("ep", POINT_TO_POINT), ("pp", ALL_TO_ALL)):
        fits = (shape == UNKNOWN) | (shape != excluded)
        draft.settle(which & fits & ranges.of_purpose(purpose), purpose, "nvtx_range", "high")
    undescribed = which & (found.processes.purpose == UNTOLD)
    _settle_by_shape(draft, undescribed & told, shape, near, "process_group", "medium")
    _settle_by_shape(draft, undescribed & ~told, shape, near, "nccl_groups", "high")
    said = np.where(shape == UNKNOWN, ranges.shape, UNKNOWN)
    _settle_by_shape(draft, undescribed, said, near, "nvtx_range", "medium")
    settle_by_communicator(draft, found, which)
    draft.settle_each(streams.agreed(draft.purpose, which), "stream", "medium")
    _settle_launched_before(draft, which, found.comm, streams)
    confidence = "medium" if _three_to_one(bracketed, near) else "low"
    draft.settle(bracketed, "ep", "neighbours", confidence)
    _settle_amid_experts(draft, which, near, streams)
    draft.settle_each(found.communicators.agreed(draft.purpose, which), "communicator", "low")
    draft.settle_each(streams.agreed(draft.purpose, which), "stream", "low")


def _settle_launched_before(draft: Draft, which: BoolArray, comm: Communication, streams: Parts) -> None:
    """A launch from before the recording cannot be asked: the others of its stream answer for it."""
    unasked = which & (comm.rows.launch_ns == NULL)
    agreed = streams.agreed(draft.purpose, which, shared=True)
    draft.settle_each(np.where(unasked, agreed, UNTOLD), "stream", "low")


def _settle_amid_experts(draft: Draft, which: BoolArray, near: Neighbours, streams: Parts) -> None:
    """Exchanges of a stream that carries tokens, all of it, though few have expert work on both sides.

    Where two microbatches take turns, what was launched beside an exchange may be the other one's: attention
    after a dispatch, experts before and after the next. Still each stands after a permute or before an
    unpermute, or beside experts; those of a pipeline or of attention do not.
    """
    other = streams.any_of(which & ~draft.open & ~draft.of("ep"))
    tokens = streams.any_of(which & draft.of("ep")) & ~other
    amid = streams.nearly_all(near.amid_experts(), which)
    draft.settle(which & tokens & amid, "ep", "neighbours", "low")


def _agreed_shape(found: Evidence, bracketed: BoolArray) -> IntArray:
    """Shape of each exchange, once its communicator, its stream and its ranges had their say.

    The name of a collective is exact. By its calls a group of an all-to-all can be small, since PyTorch
    leaves out peers that get no token; and a pipeline exchanges both ways in its steady state only.
    """
    which, named = found.sendrecv, found.processes.shape
    shape = np.where(which, np.where(named == UNKNOWN, found.groups.shape(), named), UNKNOWN)
    for parts in (found.communicators, found.streams):
        small = (shape == POINT_TO_POINT) | (shape == EITHER)
        shape[small & (named == UNKNOWN) & parts.any_of(shape == ALL_TO_ALL)] = ALL_TO_ALL
        expert_part = 2 * parts.share(bracketed, which) >= parts.share(which, which)
        expert_part &= (named == UNKNOWN) & parts.any_of(shape == EITHER)
        shape[(shape == POINT_TO_POINT) & expert_part] = EITHER
        shape[(shape == EITHER) & parts.any_of(shape == POINT_TO_POINT)] = POINT_TO_POINT
    return np.where((shape == EITHER) & (found.ranges.shape != UNKNOWN), found.ranges.shape, shape)


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

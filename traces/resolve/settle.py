"""Purposes settled by NCCL's operation: SendRecv, AllGather, ReduceScatter, AllReduce; what is
asked first.

A SendRecv is an expert all-to-all, a pipeline's exchange, or context parallelism; the others are
data parallelism, expert traffic, or tensor parallelism.
"""

from typing import Final

import numpy as np

from traces.arrays import BoolArray, IntArray, summed
from traces.frozen import frozen
from traces.limits import Limit
from traces.resolve.communication import Communication
from traces.resolve.communicators import (
    Parts,
    ProcessGroups,
    communicators_of,
    process_groups_of,
    streams_of,
)
from traces.resolve.nccl_calls import ALL_TO_ALL, EITHER, POINT_TO_POINT, UNKNOWN, Groups, groups_of
from traces.resolve.neighbours import MOE_ROLES, Neighbours, Role, neighbours_of
from traces.resolve.ranges import Enclosing, enclosing_ranges
from traces.resolve.resolution import PAYLOAD_KINDS, PHASES, UNTOLD, Draft, of_purpose
from traces.timeline import Source


@frozen
class PurposeEvidence:
    """All evidence on the communication activities of a rank.

    `sendrecv` masks the exchanges, `all_to_all` those whose name says that they are one, shape (m,)
    each.
    """

    comm: Communication
    sendrecv: BoolArray
    all_to_all: BoolArray
    processes: ProcessGroups
    groups: Groups
    ranges: Enclosing
    communicators: Parts
    streams: Parts
    near: Neighbours

    @property
    def named_shape(self) -> IntArray:
        """How each exchanges by the name of its kernel or of its collective, `UNKNOWN` where none
        says.
        """
        return np.where(self.all_to_all, ALL_TO_ALL, self.processes.shape)

    def fitting(self, purpose: IntArray) -> IntArray:
        """The purposes that the operation can have, `UNTOLD` for the others, shape (m,).

        A group of data parallelism may gather, scatter and reduce, but what it exchanges is not
        gradients.
        """
        gather = self.comm.of_subclass("all_gather", "reduce_scatter")
        result = np.full(len(purpose), UNTOLD)
        for which, purposes in (
            (gather, ("ep", "dp", "cp", "tp")),
            (self.sendrecv, ("ep", "pp", "cp", "tp")),
            (self.comm.of_subclass("all_reduce"), ("tp",)),
        ):
            fits = which & of_purpose(purpose, *purposes)
            result[fits] = purpose[fits]
        return result


def evidence_on(comm: Communication) -> PurposeEvidence:
    """Ask every kind of evidence."""
    groups, processes = groups_of(comm), process_groups_of(comm)
    # a process group stands for its communicators; no trace has both
    communicator = np.where(groups.communicator == UNTOLD, processes.group, groups.communicator)
    copies = comm.rows.source == Source.COPY  # NCCL's copy engines: an all-to-all without a kernel
    all_to_all = comm.of_subclass("all_to_all")
    return PurposeEvidence(
        comm=comm,
        sendrecv=comm.of_subclass("sendrecv")
        | all_to_all
        | (copies & (groups.all_to_all_count > 0)),
        all_to_all=all_to_all,
        processes=processes,
        groups=groups,
        ranges=enclosing_ranges(comm),
        communicators=communicators_of(communicator),
        streams=streams_of(comm, communicator),
        near=neighbours_of(comm),
    )


def settle_by_communicator(draft: Draft, clues: PurposeEvidence, among: BoolArray) -> None:
    """Settle what is still open of the mask as the others of its communicator are settled, if these
    agree.
    """
    purpose = clues.fitting(clues.communicators.agreed(draft.purpose, among))
    draft.settle_each(purpose, "communicator", "medium")


PER_PERMUTE: Final = Limit(
    3.0,
    "SendRecv kernels per permute",
    "Megatron-Core's all-to-all dispatcher moves tokens, probabilities and results once per layer "
    "pass",
)


def settle_sendrecv(draft: Draft, clues: PurposeEvidence) -> None:
    """Settle the purpose of the SendRecv, as far as evidence goes."""
    which, ranges, near, streams = clues.sendrecv, clues.ranges, clues.near, clues.streams
    bracketed = which & near.bracketed()
    shaped = which & (clues.processes.shape != UNKNOWN)
    draft.settle_each(
        np.where(shaped, clues.fitting(clues.processes.purpose), UNTOLD), "process_group", "high"
    )
    shape = _agreed_shape(clues, bracketed)
    for purpose, excluded in (("cp", UNTOLD), ("ep", POINT_TO_POINT), ("pp", ALL_TO_ALL)):
        named = of_purpose(ranges.purpose, purpose)
        draft.settle(which & (shape != excluded) & named, purpose, "nvtx_range", "high")
    undescribed = which & (clues.processes.purpose == UNTOLD)
    _settle_by_shape(draft, undescribed & clues.all_to_all, shape, near, "name", "high")
    _settle_by_shape(draft, undescribed & shaped, shape, near, "process_group", "medium")
    _settle_by_shape(draft, undescribed & ~shaped, shape, near, "nccl_groups", "high")
    range_shape = np.where(shape == UNKNOWN, ranges.shape, UNKNOWN)
    _settle_by_shape(draft, undescribed, range_shape, near, "nvtx_range", "medium")
    settle_by_communicator(draft, clues, which)
    draft.settle_each(streams.agreed(draft.purpose, which), "stream", "medium")
    # a launch from before the recording cannot be asked: the others of its stream answer for it
    unasked = which & ~clues.comm.rows.is_launched
    agreed = streams.agreed(draft.purpose, which, shared=True)
    draft.settle_each(np.where(unasked, agreed, UNTOLD), "stream", "low")
    off = abs(summed(bracketed) - PER_PERMUTE.value * near.permute_count)
    confidence = "medium" if 2 * off < near.permute_count else "low"
    draft.settle(bracketed, "ep", "neighbours", confidence)
    _settle_amid_experts(draft, which, near, streams)
    draft.settle_each(clues.communicators.agreed(draft.purpose, which), "communicator", "low")
    draft.settle_each(streams.agreed(draft.purpose, which), "stream", "low")


def _settle_amid_experts(draft: Draft, which: BoolArray, near: Neighbours, streams: Parts) -> None:
    """Exchanges of a stream that carries tokens, all of it, though few have expert work on both
    sides.

    Where two microbatches take turns, what was launched beside an exchange may be the other one's:
    attention after a dispatch, experts before and after the next. Still each stands after a permute
    or before an unpermute, or beside experts; those of a pipeline or of attention do not.
    """
    other = streams.any_of(which & ~draft.open & ~draft.of("ep"))
    tokens = streams.any_of(which & draft.of("ep")) & ~other
    amid = streams.nearly_all(near.amid_experts(), which)
    draft.settle(which & tokens & amid, "ep", "neighbours", "low")


def _agreed_shape(clues: PurposeEvidence, bracketed: BoolArray) -> IntArray:
    """Shape of each exchange, once its communicator, its stream and its ranges had their say.

    The name of a collective, or of its kernel, is exact. By its calls a group of an all-to-all can
    be small, since PyTorch leaves out peers that get no token; and a pipeline exchanges both ways
    in its steady state only.
    """
    which, named = clues.sendrecv, clues.named_shape
    shape = np.where(which, np.where(named == UNKNOWN, clues.groups.shape(), named), UNKNOWN)
    for parts in (clues.communicators, clues.streams):
        small = (shape == POINT_TO_POINT) | (shape == EITHER)
        shape[small & (named == UNKNOWN) & parts.any_of(shape == ALL_TO_ALL)] = ALL_TO_ALL
        expert_part = 2 * parts.share(bracketed, which) >= parts.share(which, which)
        expert_part &= (named == UNKNOWN) & parts.any_of(shape == EITHER)
        shape[(shape == POINT_TO_POINT) & expert_part] = EITHER
        shape[(shape == EITHER) & parts.any_of(shape == POINT_TO_POINT)] = POINT_TO_POINT
    return np.where((shape == EITHER) & (clues.ranges.shape != UNKNOWN), clues.ranges.shape, shape)


def _settle_by_shape(
    draft: Draft,
    which: BoolArray,
    shape: IntArray,
    near: Neighbours,
    evidence: str,
    confidence: str,
) -> None:
    """Purpose of an exchange of known shape, by what it stands beside.

    An all-to-all is expert traffic only where expert work runs at all; beside attention it
    redistributes heads (Ulysses), and one with neighbours is a ring.
    """
    attention = which & near.beside(Role.ATTENTION) & ~near.beside(*MOE_ROLES)
    all_to_all, neighbourly = which & (shape == ALL_TO_ALL), which & (shape == POINT_TO_POINT)
    draft.settle(attention & (shape != UNKNOWN), "cp", evidence, "medium")
    if near.moe_kernels:
        draft.settle(all_to_all, "ep", evidence, confidence)
    draft.settle(neighbourly, "pp", evidence, confidence)


_FORWARD: Final = PHASES.index("fwd")


def settle_collectives(draft: Draft, clues: PurposeEvidence, *, only_data_parallel: bool) -> None:
    """Settle the purpose of collectives, once that of SendRecv is settled, as far as evidence goes.

    `only_data_parallel`: the configuration leaves gathers and scatters no other use.
    """
    comm = clues.comm
    collective = comm.of_subclass("all_gather", "reduce_scatter")
    named = collective | comm.of_subclass("all_reduce")
    described = np.where(named, clues.fitting(clues.processes.purpose), UNTOLD)
    draft.settle_each(described, "process_group", "high")
    for purpose, which in (
        ("dp", collective),
        ("tp", named),
        ("ep", collective),
        ("cp", collective),
    ):
        in_range = of_purpose(clues.ranges.purpose, purpose)
        draft.settle(which & in_range, purpose, "nvtx_range", "high")
    settle_by_communicator(draft, clues, collective)
    draft.settle(collective & only_data_parallel, "dp", "configuration", "high")
    _settle_data_parallel(draft, clues)
    _settle_gather_dispatcher(draft, comm, clues.near, clues.streams)


def _settle_data_parallel(draft: Draft, clues: PurposeEvidence) -> None:
    """Gathers and scatters beside the optimizer, and the others of the same communicator or kind of
    stream.

    Sharded optimizers gather parameters after they step and scatter gradients before (ZeRO,
    Megatron-Core's distributed optimizer, FSDP). A stream that scatters in the forward pass too
    carries activations as well: there only what stands beside the optimizer itself is told.
    """
    comm, near, streams = clues.comm, clues.near, clues.streams
    gather, scatter = comm.of_subclass("all_gather"), comm.of_subclass("reduce_scatter")
    beside = (gather & (near.previous == Role.OPTIMIZER)) | (
        scatter & (near.next == Role.OPTIMIZER)
    )
    in_forward = (near.previous_phase == _FORWARD) & (near.next_phase == _FORWARD)
    alone = beside
    for parts in (clues.communicators, streams):
        alone = alone & ~parts.any_of(scatter & in_forward)
    draft.settle(alone & streams.own[streams.of_row], "dp", "neighbours", "medium")
    draft.settle(beside, "dp", "neighbours", "low")
    draft.settle(
        (gather | scatter) & clues.communicators.any_of(alone), "dp", "communicator", "medium"
    )
    draft.settle((gather | scatter) & streams.any_of(alone), "dp", "stream", "medium")


def _settle_gather_dispatcher(
    draft: Draft, comm: Communication, near: Neighbours, streams: Parts
) -> None:
    """Gathers before the permute, scatters after the unpermute: tokens travel by them, where by
    nothing else.

    Without kernels that permute, gathers before the router or the experts, and scatters after
    these. Where tokens travel another way, a gather after the router carries their counts, before
    the map of rows, the permute, or the experts (HybridEP permutes in its own kernels).
    """
    gather, scatter = comm.of_subclass("all_gather"), comm.of_subclass("reduce_scatter")
    sorts = near.permute_count > 0
    to_experts = (Role.PERMUTE,) if sorts else (Role.ROUTER, Role.EXPERT)
    before = draft.open & gather & np.isin(near.next, to_experts)
    after = draft.open & scatter & (near.previous == (Role.UNPERMUTE if sorts else Role.EXPERT))
    if (draft.of("ep") | comm.of_subclass(*PAYLOAD_KINDS, "ep_fused")).any():
        leaves = np.isin(near.next, (Role.ROUTER, Role.PERMUTE, Role.EXPERT))
        counts = draft.open & gather & (near.previous == Role.ROUTER) & leaves
        draft.settle(counts & streams.nearly_all(counts, gather), "ep", "neighbours", "low")
        return
    open_sendrecv = (comm.of_subclass("sendrecv", "all_to_all") & draft.open).any()
    both = streams.any_of(before) & streams.any_of(after)
    if not open_sendrecv:
        regular = streams.nearly_all(before | after, gather | scatter)
        draft.settle((before | after) & regular & both, "ep", "neighbours", "low")

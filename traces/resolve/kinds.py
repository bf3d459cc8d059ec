"""Resolve what each communication activity is for, from all kinds of evidence in their order."""

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np

from traces.arrays import BoolArray, IntArray, codes_of, distinct, summed
from traces.cures import cure
from traces.names.kernels import COMM_KINDS
from traces.resolve.communication import Communication, communication_of
from traces.resolve.layers import phases_of
from traces.resolve.nccl_calls import ALL_TO_ALL, POINT_TO_POINT, UNKNOWN
from traces.resolve.neighbours import Role
from traces.resolve.resolution import (
    CONFIDENCES,
    EVIDENCE,
    OPERATIONS,
    PAYLOAD_KINDS,
    UNTOLD,
    Draft,
    Resolution,
    Unresolved,
    kind_codes,
)
from traces.resolve.settle import PurposeEvidence, evidence_on, settle_collectives, settle_sendrecv
from traces.timeline import RankTimeline, Source

_OF_SEVERAL_USES: Final = (
    "sendrecv",
    "all_to_all",
    "all_gather",
    "reduce_scatter",
    "broadcast",
    "reduce",
    "nccl_generic",
)
"""Other names say surely what a kernel is."""
_CURE_OF_SHAPE: Final = (
    "Record named ranges around it (Megatron-LM: --nvtx-ranges), so that its "
    "purpose is written beside it."
)
_CURE_OF_GROUP: Final = (
    "Describe its process group as Megatron-Core does "
    "(torch.distributed.new_group(..., group_desc='EXPERT_MODEL_PARALLEL_GROUP'))."
)
"""What would settle a SendRecv that nothing settles: its shape known; its group too."""
_CURE_OF_GATHER: Final = (
    "Record named ranges around them (Megatron-LM: --nvtx-ranges), or give the configuration "
    "(--config FILE): with TP, EP, PP and CP at 1 they are data parallelism."
)
_WHY_GATHERS: Final = (
    "what gathers and scatters are for: no named range around them, no optimizer beside their "
    "stream"
)


def resolve_kinds(rank: RankTimeline, *, only_data_parallel: bool = False) -> Resolution:
    """Of each communication activity its kind, operation and phase, with the evidence and its
    confidence.

    `only_data_parallel`: the run's configuration has no tensor, expert, pipeline or context
    parallelism. What nothing settles keeps the kind of its name: a SendRecv stays
    `sendrecv_unresolved`, a gather or a scatter `other_comm`, with what would settle it in
    `unresolved`. `with_kinds` puts the kinds into a timeline.
    """
    clues = evidence_on(communication_of(rank))
    comm, near = clues.comm, clues.near
    draft = Draft(*np.full((3, len(comm)), UNTOLD))
    settle_sendrecv(draft, clues)
    settle_collectives(draft, clues, only_data_parallel=only_data_parallel)
    operation = _operations(draft, clues)
    kind, named = _kinds(comm, draft, operation), draft.open
    told_by = np.where(comm.told == UNTOLD, EVIDENCE.index("name"), EVIDENCE.index("nvtx_range"))
    unresolved = kind == COMM_KINDS.index("sendrecv_unresolved")
    gathers = draft.open & comm.of_subclass("all_gather", "reduce_scatter")
    unsure = comm.of_subclass(*_OF_SEVERAL_USES) | (comm.rows.source == Source.COPY)
    return Resolution(
        index=comm.index,
        kind=kind,
        operation=operation,
        phase=np.where(unresolved, UNTOLD, phases_of(comm, operation, clues.ranges, near)),
        evidence=np.where(named, told_by, draft.evidence),
        confidence=np.where(
            named, np.where(unsure, *map(CONFIDENCES.index, ("low", "high"))), draft.confidence
        ),
        moe_kernels=near.moe_kernels,
        unresolved=(
            *_still_open(clues, unresolved, "sendrecv_unresolved", partial(_reason, clues)),
            *_still_open(clues, gathers, "other_comm", lambda _: (_WHY_GATHERS, _CURE_OF_GATHER)),
        ),
    )


def _operations(draft: Draft, clues: PurposeEvidence) -> IntArray:
    """What each activity does: by its name; a SendRecv's direction by its range, else its
    neighbours.
    """
    comm, sendrecv, ranges, near = clues.comm, clues.sendrecv, clues.ranges, clues.near
    code = codes_of(OPERATIONS)
    operation = comm.operation_by_name()
    shape = np.where(clues.groups.known, clues.groups.shape(), ranges.shape)
    shape = np.where(clues.named_shape == UNKNOWN, shape, clues.named_shape)
    operation[sendrecv & (shape == POINT_TO_POINT)] = code["p2p"]
    operation[
        sendrecv & (draft.of("ep") | (shape == ALL_TO_ALL) | (ranges.shape == ALL_TO_ALL))
    ] = code["a2a"]
    operation[sendrecv & draft.of("pp")] = code["p2p"]
    experts = sendrecv & draft.of("ep")
    gathers = draft.of("ep") & comm.of_subclass("all_gather")
    tokens = experts | comm.of_subclass(*PAYLOAD_KINDS, "ep_fused")
    counts = gathers & tokens.any()  # tokens travel another way
    has_direction = experts & (ranges.operation != UNTOLD)
    operation[has_direction] = ranges.operation[has_direction]
    leaves_experts = near.previous == Role.EXPERT
    dispatch = (near.previous == Role.PERMUTE) | ((near.next == Role.EXPERT) & ~leaves_experts)
    combine = (near.next == Role.UNPERMUTE) | (leaves_experts & (near.next != Role.EXPERT))
    operation[experts & ~has_direction & dispatch & ~combine] = code["dispatch"]
    operation[experts & ~has_direction & combine & ~dispatch] = code["combine"]
    operation[counts] = code["notify"]
    operation[gathers & ~counts] = code["dispatch"]
    operation[draft.of("ep") & comm.of_subclass("reduce_scatter")] = code["combine"]
    return operation


def _kinds(comm: Communication, draft: Draft, operation: IntArray) -> IntArray:
    """Kind of each activity: that of its settled purpose, else that of its name."""
    by_name = comm.kind_by_name()
    expert = np.full(len(OPERATIONS) + 1, COMM_KINDS.index("ep_a2a"))
    directed = [*map(OPERATIONS.index, ("dispatch", "combine", "notify"))]
    expert[directed] = kind_codes("ep_dispatch", "ep_combine", "ep_control")
    gather = comm.of_subclass("all_gather")
    data = np.where(gather, *kind_codes("dp_all_gather", "dp_reduce_scatter"))
    settled = [*map(draft.of, ("ep", "dp", "pp", "cp", "tp"))]
    pp, cp, tp = kind_codes("pp_p2p", "cp", "tp")
    return np.select(settled, [expert[operation], data, pp, cp, tp], by_name)


def _still_open(
    clues: PurposeEvidence, which: BoolArray, kind: str, why: Callable[[BoolArray], tuple[str, str]]
) -> tuple[Unresolved, ...]:
    """What stays open, by stream, longest first; `why`: the reason, and what would settle it."""
    result, of_row = [], clues.streams.of_row
    for number in distinct(of_row[which]):
        mine = which & (of_row == number)
        duration_ns, stream = clues.comm.rows.length_ns[mine], int(clues.streams.ids[number])
        result.append(Unresolved(kind, stream, summed(mine), summed(duration_ns), *why(mine)))
    return tuple(sorted(result, key=lambda unresolved: (-unresolved.work_ns, unresolved.stream_id)))


def _reason(clues: PurposeEvidence, mine: BoolArray) -> tuple[str, str]:
    reason, how = "its NCCL groups fit more than one use", _CURE_OF_SHAPE
    if clues.all_to_all[mine].any():
        reason = "its name shows how it exchanges, not what for"
    elif (clues.processes.shape[mine] != UNKNOWN).any():
        reason = "its collective shows how it exchanges, its process group not what for"
        how = _CURE_OF_GROUP
    elif (clues.ranges.shape[mine] != UNKNOWN).any():
        reason = "its range shows how it exchanges, not what for"
    elif not clues.groups.known[mine].any():
        reason = "no NCCL ranges, no named range around it, no expert work on both sides"
        how = cure("collectives", clues.comm.rank.columns.info.kind)
    if not clues.near.moe_kernels:
        reason += ", and no router, permute or grouped GEMM ran"
    return reason, how

"""Resolve what each communication activity is for, from all kinds of evidence in their order."""

from __future__ import annotations

from typing import Final

import numpy as np

from traces.columns import BoolArray, IntArray, distinct
from traces.names.kinds import COMM_KINDS
from traces.resolve.collectives import settle_by_ranges, settle_data_parallel, settle_gather_dispatcher
from traces.resolve.communication import Communication, communication_of
from traces.resolve.draft import Draft, empty_draft
from traces.resolve.nccl_groups import ALL_TO_ALL, POINT_TO_POINT, UNKNOWN, Groups, groups_of
from traces.resolve.neighbours import Neighbours, Role, neighbours_of
from traces.resolve.phases import phases_of
from traces.resolve.ranges import Enclosing, enclosing_ranges
from traces.resolve.resolution import (
    CONFIDENCES,
    EVIDENCE,
    OPERATIONS,
    UNTOLD,
    Resolution,
    Unresolved,
    kind_codes,
)
from traces.resolve.sendrecv import settle_sendrecv
from traces.resolve.spread import spread_frac
from traces.resolve.streams import Streams, streams_of
from traces.timeline import RankTimeline, Source

_CURE: Final = (
    "Record NVTX too (nsys profile --trace=cuda,nvtx): NCCL's own ranges then count sends and receives."
)
_CURE_OF_SHAPE: Final = (
    "Record named ranges around it (Megatron-LM: --nvtx-ranges), so that its purpose is written beside it."
)
"""What would settle a SendRecv that nothing settles: nothing known of it, and its shape known."""


def resolve_kinds(rank: RankTimeline) -> Resolution:
    """Of each communication activity its kind, operation and phase, with the evidence and its confidence.

    What nothing settles keeps the kind of its name: a SendRecv stays `sendrecv_unresolved`, with what would
    settle it in `unresolved`. `with_kinds` puts the kinds into a timeline.
    """
    comm = communication_of(rank)
    groups, ranges = groups_of(comm), enclosing_ranges(comm)
    near, streams = neighbours_of(comm), streams_of(comm)
    copies = comm.rows.source == Source.COPY  # NCCL's copy engines: an all-to-all without a kernel
    sendrecv = comm.of_subclass("sendrecv") | (copies & (groups.all_to_all_count > 0))
    draft = empty_draft(len(comm))
    settle_sendrecv(draft, comm, sendrecv, groups, ranges, near, streams)
    settle_by_ranges(draft, comm, ranges)
    settle_data_parallel(draft, comm, near, streams)
    settle_gather_dispatcher(draft, comm, near, streams)
    operation = _operations(comm, draft, sendrecv, groups, ranges, near)
    kind, named = _kinds(comm, draft, operation), draft.open
    unresolved = kind == COMM_KINDS.index("sendrecv_unresolved")
    return Resolution(
        index=comm.index,
        kind=kind,
        operation=operation,
        phase=np.where(unresolved, UNTOLD, phases_of(comm, operation, ranges, near)),
        evidence=np.where(named, EVIDENCE.index("name"), draft.evidence),
        confidence=np.where(named, _confidence_of_names(comm), draft.confidence),
        moe_kernels=near.moe_kernels,
        unresolved=_unresolved(comm, unresolved, groups, ranges, streams, near.moe_kernels),
    )


def _operations(
    comm: Communication,
    draft: Draft,
    sendrecv: BoolArray,
    groups: Groups,
    ranges: Enclosing,
    near: Neighbours,
) -> IntArray:
    """What each activity does: by its name; a SendRecv's direction by its range, else its neighbours."""
    code = {name: place for place, name in enumerate(OPERATIONS)}
    operation = comm.operation_by_name()
    shape = np.where(groups.known, groups.shape(), ranges.shape)
    operation[sendrecv & (shape == POINT_TO_POINT)] = code["p2p"]
    operation[sendrecv & (draft.of("ep") | (shape == ALL_TO_ALL) | (ranges.shape == ALL_TO_ALL))] = code[
        "a2a"
    ]
    operation[sendrecv & draft.of("pp")] = code["p2p"]
    experts = sendrecv & draft.of("ep")
    gathers = draft.of("ep") & comm.of_subclass("all_gather")
    tokens = experts | comm.of_subclass("ep_dispatch", "ep_combine", "ep_a2a", "ep_fused")
    counts = gathers & tokens.any()  # tokens travel another way
    told = experts & (ranges.operation != UNTOLD)
    operation[told] = ranges.operation[told]
    leaves_experts = near.previous == Role.EXPERT
    dispatch = (near.previous == Role.PERMUTE) | ((near.next == Role.EXPERT) & ~leaves_experts)
    combine = (near.next == Role.UNPERMUTE) | (leaves_experts & (near.next != Role.EXPERT))
    operation[experts & ~told & dispatch & ~combine] = code["dispatch"]
    operation[experts & ~told & combine & ~dispatch] = code["combine"]
    operation[counts] = code["notify"]
    operation[gathers & ~counts] = code["dispatch"]
    operation[draft.of("ep") & comm.of_subclass("reduce_scatter")] = code["combine"]
    return operation


def _kinds(comm: Communication, draft: Draft, operation: IntArray) -> IntArray:
    """Kind of each activity: that of its settled purpose, else that of its name."""
    by_name: IntArray = comm.rank.activities.key[comm.index]
    expert = np.select(
        [operation == OPERATIONS.index(name) for name in ("dispatch", "combine", "notify")],
        list(kind_codes("ep_dispatch", "ep_combine", "ep_control")),
        COMM_KINDS.index("ep_a2a"),
    )
    gather = comm.of_subclass("all_gather")
    data = np.where(gather, *kind_codes("dp_all_gather", "dp_reduce_scatter"))
    settled = [draft.of(purpose) for purpose in ("ep", "dp", "pp", "cp", "tp")]
    pp, cp, tp = kind_codes("pp_p2p", "cp", "tp")
    return np.select(settled, [expert, data, pp, cp, tp], by_name)


def _confidence_of_names(comm: Communication) -> IntArray:
    """A name says surely what it is, except NCCL's, which serve several purposes."""
    unsure = comm.of_subclass(
        "sendrecv", "all_gather", "reduce_scatter", "broadcast", "reduce", "nccl_generic"
    )
    unsure |= comm.rows.source == Source.COPY
    return np.where(unsure, CONFIDENCES.index("low"), CONFIDENCES.index("high"))


def _unresolved(
    comm: Communication,
    which: BoolArray,
    groups: Groups,
    ranges: Enclosing,
    streams: Streams,
    moe_kernels: bool,
) -> tuple[Unresolved, ...]:
    """What stays open, by stream, longest first."""
    found = []
    duration_ns = comm.rows.end_ns - comm.rows.start_ns
    for number in distinct(streams.of_row[which]):
        mine = which & (streams.of_row == number)
        grouped, shaped = bool(groups.known[mine].any()), bool((ranges.shape[mine] != UNKNOWN).any())
        found.append(
            Unresolved(
                stream_id=int(streams.ids[number]),
                kernel_count=int(mine.sum()),
                work_ns=int(duration_ns[mine].sum()),
                spread_frac=spread_frac(duration_ns[mine]),
                reason=_reason(grouped, shaped, moe_kernels),
                cure=_CURE_OF_SHAPE if grouped or shaped else _CURE,
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.work_ns, one.stream_id)))


def _reason(grouped: bool, shaped: bool, moe_kernels: bool) -> str:
    experts = "" if moe_kernels else ", and no router, permute or grouped GEMM ran"
    if shaped:
        return f"its range tells how it exchanges, not what for{experts}"
    if grouped:
        return f"its NCCL groups fit more than one use{experts}"
    return f"no NCCL ranges, no named range around it, no expert work on both sides{experts}"

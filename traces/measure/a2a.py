"""Expert all-to-all: payload and control apart, exposed and hidden, and how much of it is like waiting."""

from typing import Final

import numpy as np

from traces.account.account import Account
from traces.arrays import BoolArray
from traces.cures import cure
from traces.groups import group_of
from traces.intervals import Spans, instants_of, intersect, ns_in, subtract, union
from traces.missing import Missing, gap
from traces.names.kernels import COMM_KINDS
from traces.resolve.layers import Places, places_of
from traces.resolve.resolution import CONTROL_KIND, OPERATIONS, PAYLOAD_KINDS, PHASES, UNTOLD, Resolution
from traces.sections.rank import A2a, Dispatcher, Span
from traces.steps.found import Steps
from traces.timeline import Activities, Bucket, RankTimeline, Source

_EXPERT_KINDS: Final = (*PAYLOAD_KINDS, CONTROL_KIND)
_NCCL: Final[tuple[tuple[Dispatcher, str], ...]] = (
    ("alltoall", "SendRecv"),
    ("alltoall", "AllToAll"),
    ("alltoall", "AlltoAll"),
    ("allgather", "AllGather"),
    ("allgather", "ReduceScatter"),
)
_LIBRARIES: Final[
    tuple[tuple[Dispatcher, tuple[str, ...]], ...]
] = (  # the first whose mark a kernel's name has
    ("hybridep", ("hybrid_ep",)),
    ("ncclep", ("nccl_ep",)),
    ("deepep", ("deep_ep", "intranode::", "internode", "ep::")),  # also under vendors' namespaces
    *((dispatcher, (mark,)) for dispatcher, mark in _NCCL),
)
"""Dispatcher -> marks in its kernels' names. NCCL's count only where resolved as expert traffic."""


def measure_a2a(
    rank: RankTimeline, resolution: Resolution, windows: Spans, steps: Steps, account: Account | Missing
) -> A2a | Missing:
    """Measure expert traffic within the windows: wall times, unions of intervals.

    `payload_ns` is dispatch and combine, `control_ns` notify, sync and layout, which mostly wait; they may
    overlap. `exposed_ns` is when either runs and no compute, `hidden_ns` the rest of their union.
    `waiting_like_ns` is one rank's view: of the instances of one operation, layer, part and size the fastest
    is like a pure transfer, and what others take longer is like waiting. `unresolved_ns` is SendRecv that
    could be expert traffic and is in none of these. `blocking_ns`: what the account lays on it.
    `steps` numbers steps and layers; the times are those of `windows`.
    """
    if not rank.has_kernels:
        return gap("no single kernel was recorded", cure("graphs", rank.columns.info.kind))
    rows = rank.activities.take(resolution.index)
    payload, control = resolution.of_kind(*PAYLOAD_KINDS), resolution.of_kind(CONTROL_KIND)
    compute = instants_of(rank.activities, rank.activities.bucket == Bucket.COMPUTE)
    everything = _within(rows, payload | control, windows)
    exposed_ns = subtract(everything, compute).total_ns
    unresolved = _within(rows, resolution.of_kind("sendrecv_unresolved"), windows)
    places = places_of(rank, resolution, steps)
    instances = int((payload & (ns_in(rows, windows) > 0)).sum())
    reason = "no all-to-all has another of its kind, layer and size to compare with"
    alone = gap(reason, "record several steps")
    waiting_ns = _waiting_like(rank, resolution, rows, places, windows)
    return A2a(
        instances=instances,
        payload_ns=_within(rows, payload, windows).total_ns,
        control_ns=_within(rows, control, windows).total_ns,
        waiting_like_ns=(alone if instances else None) if waiting_ns is None else waiting_ns,
        exposed_ns=exposed_ns,
        hidden_ns=everything.total_ns - exposed_ns,
        blocking_ns=account
        if isinstance(account, Missing)
        else sum(ns for kind, ns in account.blocking_ns.items() if kind in _EXPERT_KINDS),
        unresolved_ns=unresolved.total_ns,
        spans=_spans(rank, resolution, rows, payload | control, places, windows),
    )


def _within(rows: Activities, mask: BoolArray, windows: Spans) -> Spans:
    return intersect(instants_of(rows, mask), windows)


def _waiting_like(
    rank: RankTimeline, resolution: Resolution, rows: Activities, places: Places, windows: Spans
) -> int | None:
    """Time in which instances ran longer than the fastest of their like; only whole ones in the windows."""
    duration_ns = rows.end_ns - rows.start_ns
    whole = (ns_in(rows, windows) == duration_ns) & (duration_ns > 0)
    alike = np.flatnonzero(whole & resolution.of_kind("ep_dispatch", "ep_combine") & (places.part != UNTOLD))
    if not len(alike):
        return None
    blocks = rank.blocks[resolution.index]
    columns = (resolution.operation, resolution.phase, places.layer, places.part, rows.name, blocks)
    group = group_of(*(column[alike] for column in columns))
    if np.bincount(group).max() < 2:
        return None
    fastest = np.full(len(alike), np.iinfo(np.int64).max)
    np.minimum.at(fastest, group, duration_ns[alike])
    waits = union(rows.start_ns[alike], rows.end_ns[alike] - fastest[group])
    return intersect(waits, windows).total_ns


def _spans(
    rank: RankTimeline,
    resolution: Resolution,
    rows: Activities,
    which: BoolArray,
    places: Places,
    windows: Spans,
) -> tuple[Span, ...]:
    """Expert traffic that has time in the windows, in order of start."""
    mine = np.flatnonzero(which & (ns_in(rows, windows) > 0))
    first = np.searchsorted(windows.end_ns, rows.start_ns[mine], side="right")
    last = np.searchsorted(windows.start_ns, rows.end_ns[mine], side="left") - 1
    start_ns = np.maximum(rows.start_ns[mine], windows.start_ns[first])
    end_ns = np.minimum(rows.end_ns[mine], windows.end_ns[last])
    kind = rank.columns.info.kind
    no_step = gap("no step holds it", "record with step ranges")
    no_layer = gap("its place in the sequence of layers is not clear", cure("layer_ranges", kind))
    no_phase = gap("forward and backward cannot be separated here", cure("ranges", kind))
    told = [column[mine] for column in (places.step, places.layer, resolution.phase)]
    rows_of = np.stack((resolution.kind[mine], start_ns, end_ns, *told), axis=1).tolist()
    return tuple(
        Span(
            COMM_KINDS[code],
            start,
            end,
            no_step if step == UNTOLD else step,
            no_layer if layer == UNTOLD else layer,
            no_phase if phase == UNTOLD else PHASES[phase],
        )
        for code, start, end, step, layer, phase in rows_of
    )


def dispatcher_of(rank: RankTimeline, resolution: Resolution, windows: Spans) -> Dispatcher:
    """The dispatcher that takes most time. `none` only where nothing that is there could be one."""
    if not rank.has_kernels:
        return "unknown"
    took_ns = _dispatchers(rank, resolution, rank.activities.take(resolution.index), windows)
    if took_ns:
        return max(took_ns, key=took_ns.__getitem__)
    could_be = resolution.of_kind(*PAYLOAD_KINDS, CONTROL_KIND, "sendrecv_unresolved").any()
    return "unknown" if could_be or (rank.activities.source == Source.REPLAY).any() else "none"


def _dispatchers(
    rank: RankTimeline, resolution: Resolution, rows: Activities, windows: Spans
) -> dict[Dispatcher, int]:
    """Wall time of each dispatcher's kernels within the windows; token counts by NCCL are nobody's."""
    counts = resolution.operation == OPERATIONS.index("notify")
    expert = resolution.of_kind(*PAYLOAD_KINDS, CONTROL_KIND)
    by_name = [
        next((found for found, marks in _LIBRARIES if any(mark in name for mark in marks)), "")
        for name in (*rank.columns.kernel_names, "")
    ]
    named = np.where(rows.source == Source.COPY, "alltoall", np.array(by_name)[rows.name])
    found: dict[Dispatcher, int] = {}
    for dispatcher in dict.fromkeys(dispatcher for dispatcher, _ in _LIBRARIES):
        its_counts = counts if dispatcher in ("alltoall", "allgather") else np.zeros_like(counts)
        mine = expert & (named == dispatcher) & ~its_counts
        if total_ns := _within(rows, mine, windows).total_ns:
            found[dispatcher] = total_ns
    return found

"""Expert all-to-all: payload and control apart, exposed and hidden, and how much of it is like
waiting.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from traces.account.account import Account
from traces.arrays import FOREVER, BoolArray, row_by_row, summed
from traces.groups import group_of
from traces.intervals import Spans, instants_in, instants_of, intersect, ns_in, subtract, union
from traces.missing import Missing, gap
from traces.names.kernels import COMM_KINDS
from traces.patterns import Pattern, compiled_rows, first_found
from traces.resolve.layers import Places, places_of
from traces.resolve.resolution import (
    CONTROL_KIND,
    OPERATIONS,
    PAYLOAD_KINDS,
    PHASES,
    UNTOLD,
    Resolution,
)
from traces.sections.rank import A2a, Dispatcher, Span
from traces.steps.found import Steps
from traces.timeline import Activities, RankTimeline

_EXPERT_KINDS: Final = (*PAYLOAD_KINDS, CONTROL_KIND)
_LIBRARIES: Final[tuple[tuple[Dispatcher, Pattern], ...]] = compiled_rows(
    ("hybridep", "hybrid_ep"),
    ("ncclep", "nccl_ep"),
    ("deepep", "deep_ep|intranode::|internode|ep::"),  # also under vendors' namespaces
    ("alltoall", "SendRecv|All[Tt]oAll"),
    ("allgather", "AllGather|ReduceScatter"),
)
"""Dispatcher and the marks in its kernels' names, of which the first counts; NCCL's only where
resolved as expert traffic."""


def measure_a2a(
    rank: RankTimeline,
    resolution: Resolution,
    windows: Spans,
    steps: Steps,
    account: Account | Missing,
) -> A2a | Missing:
    """Measure expert traffic within the windows: wall times, unions of intervals.

    `payload_ns` is dispatch and combine, `control_ns` notify, sync and layout, which mostly wait;
    they may overlap. `exposed_ns` is when either runs and no compute, `hidden_ns` the rest of their
    union. `waiting_like_ns` is one rank's view: of the instances of one operation, layer, part and
    size the fastest is like a pure transfer, and what others take longer is like waiting.
    `unresolved_ns` is SendRecv that could be expert traffic and is in none of these. `blocking_ns`:
    what the account lays on it. `steps` numbers steps and layers; the times are those of `windows`.
    """
    if not rank.has_kernels:
        return rank.lacks("no single kernel was recorded", "graphs")
    rows = rank.activities.take(resolution.index)
    payload, control = resolution.of_kind(*PAYLOAD_KINDS), resolution.of_kind(CONTROL_KIND)
    compute = instants_of(rank.activities, rank.activities.is_compute)
    everything = instants_in(windows, rows, payload | control)
    exposed_ns = subtract(everything, compute).total_ns
    unresolved = resolution.of_kind("sendrecv_unresolved")
    places = places_of(rank, resolution, steps)
    instances = summed(payload & (ns_in(rows, windows) > 0))
    waiting_ns: int | Missing | None = _waiting_like(rank, resolution, rows, places, windows)
    if waiting_ns is None and instances:
        reason = "no all-to-all has another of its kind, layer and size to compare with"
        waiting_ns = gap(reason, "record several steps")
    return A2a(
        instances=instances,
        payload_ns=instants_in(windows, rows, payload).total_ns,
        control_ns=instants_in(windows, rows, control).total_ns,
        waiting_like_ns=waiting_ns,
        exposed_ns=exposed_ns,
        hidden_ns=everything.total_ns - exposed_ns,
        blocking_ns=account
        if isinstance(account, Missing)
        else sum(ns for kind, ns in account.blocking_ns.items() if kind in _EXPERT_KINDS),
        unresolved_ns=instants_in(windows, rows, unresolved).total_ns,
        spans=tuple(_spans(rank, resolution, rows, payload | control, places, windows)),
    )


def _waiting_like(
    rank: RankTimeline, resolution: Resolution, rows: Activities, places: Places, windows: Spans
) -> int | None:
    """Time in which instances ran longer than the fastest of their like; only whole ones in the
    windows.
    """
    duration_ns = rows.length_ns
    whole = (ns_in(rows, windows) == duration_ns) & (duration_ns > 0)
    alike = np.flatnonzero(
        whole & resolution.of_kind("ep_dispatch", "ep_combine") & (places.part != UNTOLD)
    )
    if not len(alike):
        return None
    blocks = rank.blocks[resolution.index]
    columns = (resolution.operation, resolution.phase, places.layer, places.part, rows.name, blocks)
    group = group_of(*np.stack(columns)[:, alike])
    if np.bincount(group).max() < 2:  # no instance has another to be slower than
        return None
    fastest = np.full(len(alike), FOREVER)
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
) -> Iterator[Span]:
    """Expert traffic that has time in the windows, in order of start."""
    mine = np.flatnonzero(which & (ns_in(rows, windows) > 0))
    first = np.searchsorted(windows.end_ns, rows.start_ns[mine], "right")
    last = np.searchsorted(windows.start_ns, rows.end_ns[mine]) - 1
    start_ns = np.maximum(rows.start_ns[mine], windows.start_ns[first])
    end_ns = np.minimum(rows.end_ns[mine], windows.end_ns[last])
    no_step = {UNTOLD: gap("no step holds it", "record with step ranges")}
    no_layer = {
        UNTOLD: rank.lacks("its place in the sequence of layers is not clear", "layer_ranges")
    }
    no_phase = {UNTOLD: rank.lacks("forward and backward cannot be separated here", "ranges")}
    phases = no_phase | dict(enumerate(PHASES))
    labels = np.stack((resolution.kind, places.step, places.layer, resolution.phase))[:, mine]
    for start, end, code, step, layer, phase in row_by_row(start_ns, end_ns, *labels):
        kind, at = COMM_KINDS[code], (no_step.get(step, step), no_layer.get(layer, layer))
        yield Span(kind, start, end, *at, phases[phase])


def dispatcher_of(rank: RankTimeline, resolution: Resolution, windows: Spans) -> Dispatcher:
    """The dispatcher whose kernels take most wall time within the windows; token counts by NCCL are
    nobody's. `none` only where nothing that is there could be one.
    """
    if not rank.has_kernels:
        return "unknown"
    rows, took_ns = rank.activities.take(resolution.index), dict[Dispatcher, int]()
    counts = resolution.operation == OPERATIONS.index("notify")
    expert = resolution.of_kind(*PAYLOAD_KINDS, CONTROL_KIND)
    by_name = [first_found(_LIBRARIES, name) for name in (*rank.columns.kernel_names, "")]
    named = np.where(rows.is_transfer, "alltoall", np.array(by_name)[rows.name])
    for dispatcher, _ in _LIBRARIES:
        mine = expert & (named == dispatcher)
        if dispatcher in ("alltoall", "allgather"):
            mine &= ~counts
        if total_ns := instants_in(windows, rows, mine).total_ns:
            took_ns[dispatcher] = total_ns
    if took_ns:
        return max(took_ns, key=took_ns.__getitem__)
    could_be = resolution.of_kind(*PAYLOAD_KINDS, CONTROL_KIND, "sendrecv_unresolved").any()
    if could_be or rank.activities.is_replay.any():
        return "unknown"
    return "none"

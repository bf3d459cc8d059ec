"""One rank, as measured -> its summary: its steps, kernels alone, pace of launches, first batch,
collectives.

Kernels that run alone are the evidence that a GPU itself is slow. How fast a host works is the time
from one launch to the next. A loader may keep back the very first work of a recording, before which
nothing tells of the GPU.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from traces.account.account import absent_pieces, measure_account
from traces.account.device import Queueing
from traces.account.named import ranges_of_cause
from traces.account.pieces import AbsentPieces
from traces.arrays import IntArray, distinct, ints, order_of, summed, zeros
from traces.groups import group_of, sums_of
from traces.intervals import Spans, covered_ns, ns_in, spans
from traces.limits import MOST, Limit
from traces.measure.moe.ledger import MoeLedger
from traces.missing import Missing
from traces.ranks.rows import parts
from traces.ranks.summaries.collectives import SpentInstants, collectives_of, spent_by
from traces.ranks.summaries.identity import fingerprint_of_columns, fingerprint_of_text
from traces.ranks.summaries.summary import (
    UNKNOWN,
    ExpertWork,
    Fingerprint,
    FirstStep,
    Identity,
    KernelTimes,
    RankSummary,
    StepParts,
)
from traces.sections.section import copied
from traces.steps.found import Steps
from traces.timeline import KEYS, Bucket, RankTimeline

KINDS: Final = Limit(
    24, "kinds of kernels", "ours: those with the most time; a slow GPU shows in all of them"
)
_LEAST_KERNELS: Final = 3
"""Kernels of one kind, from which on their median says something."""


def kernel_times(rank: RankTimeline, windows: Spans, comm: Spans) -> KernelTimes:
    """Medians of the kinds of compute kernels with the most time, beside no communication."""
    rows, kernels = rank.activities, rank.columns.kernels
    inside, alone = ns_in(rows, windows) == rows.length_ns, ns_in(rows, comm) == 0
    mine = np.flatnonzero(rows.is_compute & (rows.name >= 0) & inside & alone)
    kind = ints(group_of(rows.name[mine], kernels.shape[rows.row[mine]]))
    order = order_of(kind)
    first = parts.begins_of(kind[order])
    mine = mine[order]
    lasts_ns = rows.length_ns[mine]
    total_ns, count = parts.total(lasts_ns, first), np.diff(first)
    enough = np.flatnonzero(count >= _LEAST_KERNELS)
    most = enough[order_of(-total_ns[enough])[: KINDS.whole]]
    head = mine[first[most]]
    marks = ints([_mark(rank, place) for place in head.tolist()])
    median_ns, key = parts.median(lasts_ns, first)[most], ints(rows.key[head])
    return KernelTimes(marks, median_ns, total_ns[most], key, count[most]).take(order_of(marks))


def _mark(rank: RankTimeline, place: int) -> int:
    kernels, row = rank.columns.kernels, int(rank.activities.row[place])
    shape = int(kernels.shape[row])
    grid, block = kernels.shapes.grid[shape].tolist(), kernels.shapes.block[shape].tolist()
    return fingerprint_of_text(f"{rank.columns.kernel_names[kernels.name[row]]} {grid} {block}")


_LEAST_LAUNCHES: Final = 12
"""Launches of a step that follow another, from which on their median says something."""


def paces(rank: RankTimeline, steps: Steps) -> IntArray:
    """The median time from one launch of a thread to its next, of each used step's work, shape
    (k,).

    Half of the launches may wait for anything: the median is of those that only follow each other.
    `UNKNOWN` where too few launches were recorded.
    """
    rows = rank.activities
    step = steps.used_at(rows.start_ns)
    mine = np.flatnonzero((step != UNKNOWN) & rows.is_launched)
    mine = mine[np.lexsort((rows.launch_ns[mine], rows.launch_thread[mine], step[mine]))]
    thread, launch_ns, step = rows.launch_thread[mine], rows.launch_ns[mine], step[mine]
    apart_ns = np.diff(launch_ns)
    # a graph's nodes have one launch
    follows = (np.diff(thread) == 0) & (np.diff(step) == 0) & (apart_ns > 0)
    apart_ns, step = apart_ns[follows], step[1:][follows]
    result = np.full(len(steps.used), UNKNOWN)
    first = parts.begins_of(step)
    result[step[first[:-1]]] = np.where(
        np.diff(first) >= _LEAST_LAUNCHES, parts.median(apart_ns, first), UNKNOWN
    )
    return result


AT_ONCE: Final = Limit(
    100_000,
    "ns",
    "ours: an idle GPU begins some microseconds after a launch, some tens where it slept",
)


def loading_ns(rank: RankTimeline, steps: Steps) -> int:
    """Ranges of a loader before the very first work, where a later step loads about as long again.

    That work is to be of a used step, and to begin when it was launched: work that begins later
    waited for earlier work, which was launched before the recording.
    """
    rows = rank.activities
    launched = np.flatnonzero(rows.is_launched)
    if not (len(launched) and steps.used and steps.recorded[0].dropped is None):
        return 0
    first = launched[rows.start_ns[launched].argmin()]
    late_ns = rows.start_ns[first] - rows.launch_end_ns[first]
    by_step = _by_step(rank, steps, launched[rows.is_compute[launched]])
    again = by_step[0] * MOST.value <= by_step[1:].max(initial=0)
    if again and late_ns <= AT_ONCE.value:
        return int(by_step[0])
    return 0


def _by_step(rank: RankTimeline, steps: Steps, launched: IntArray) -> IntArray:
    """Time of ranges of a loader before each used step's work, shape (k,), by the next launch of
    the thread.

    `launched` is compute: copies and gathers of a step may come before it, on the GPU's time.
    """
    rows, ranges = rank.activities, ranges_of_cause(rank.columns, "data")
    result = zeros(len(steps.used))
    thread = rows.launch_thread[launched]
    for thread_gid in distinct(ranges.thread_gid).tolist():
        mine = launched[thread == thread_gid]
        mine = mine[order_of(rows.launch_ns[mine])]
        held = ranges.take(ranges.thread_gid == thread_gid)
        after = np.searchsorted(rows.launch_ns[mine], held.end_ns)
        held, after = held.take(after < len(mine)), after[after < len(mine)]
        step = steps.used_at(rows.start_ns[mine[after]])
        inside = step != UNKNOWN
        result += sums_of(held.length_ns[inside], step[inside], len(result))
    return result


_CELLS: Final = 4096
"""Layers times steps of which a summary has the expert work: those of the last steps."""
_CLASSES: Final = KEYS[Bucket.COMPUTE]
_HOST_FROM: Final = 48
"""The bits of a packed id from here on are of the machine (nsys: hardware 8 bits, virtual machine
8)."""


def summarise(
    rank: RankTimeline,
    steps: Steps,
    absent: AbsentPieces | Missing,
    queueing: Queueing,
    moe: MoeLedger | None = None,
) -> RankSummary:
    """What a run needs of a rank, whose activities carry the resolved kinds. `moe`: its ledger.

    A first step that is longer than the others is in it: whether each rank warms up in it, or most
    wait for one, only all of them together show.
    """
    first_step, every = _first_step(rank, steps), steps
    if first_step is FirstStep.LONGER:
        every = steps.with_warm_up()
        absent = _with_first(rank, every, absent, queueing)
    spent = spent_by(rank, every, absent)
    collectives = collectives_of(rank, every, spent, steps)
    return copied(
        RankSummary,
        collectives,
        identity=_identity(rank),
        fingerprint=_fingerprint(rank, steps),
        steps=_step_parts(rank, every, spent),
        kernels=kernel_times(rank, steps.windows, spent.comm),
        experts=_experts(moe, len(every.used) - len(steps.used)),
        first_step=first_step,
    )


def _first_step(rank: RankTimeline, steps: Steps) -> FirstStep:
    if not rank.activities.is_comm.any():
        return FirstStep.USUAL  # it waits for nobody
    for step in steps.recorded:
        if step.is_warm_up:
            if step.initialises:
                return FirstStep.INITIALISES
            return FirstStep.LONGER
    return FirstStep.USUAL


def _with_first(
    rank: RankTimeline, every: Steps, absent: AbsentPieces | Missing, queueing: Queueing
) -> AbsentPieces | Missing:
    """Pieces of the first step as well. Some may be in both, where one reaches from it into the
    next.
    """
    first = every.used[0]
    more = absent_pieces(measure_account(rank, spans((first.start_ns, first.end_ns)), queueing))
    if isinstance(absent, Missing) or isinstance(more, Missing):
        return absent
    return AbsentPieces.joined(more, absent)


def _experts(moe: MoeLedger | None, before: int) -> ExpertWork:
    """Work of the last steps, with `before` steps of which nothing is known."""
    if not (moe and moe.expert_work):
        return ExpertWork.none()
    work = ExpertWork(*moe.expert_work)
    work = work.take(np.arange(len(work))[-_CELLS:])
    return replace(work, step=work.step + before)


def _identity(rank: RankTimeline) -> Identity:
    columns, rows, info = rank.columns, rank.activities, rank.columns.info
    recording = fingerprint_of_columns(rows.start_ns, rows.end_ns, ints([rank.process_gid]))
    times = np.sort(columns.calls.start_ns), np.sort(columns.calls.end_ns)
    host = ints([rank.process_gid >> _HOST_FROM])
    clock = fingerprint_of_columns(*times, host) if len(columns.calls) else recording
    return Identity(
        trace=info.name,
        kind=info.kind,
        version=info.schema,
        rank=None if rank.process is None else columns.rank_of.get(rank.process),
        world_size=columns.world_size,
        device=rank.device,
        clock=clock,
        recording=recording,
        process=rank.process,
        session_start_ns=columns.session_start_ns,
        begin_ns=int(rows.start_ns.min()),
        end_ns=int(rows.end_ns.max()),
    )


def _fingerprint(rank: RankTimeline, steps: Steps) -> Fingerprint:
    rows = rank.activities
    starts = rows.start_ns[rows.is_compute]
    keys = rows.key[rows.is_compute]

    def per_step(name: str) -> int:
        """How many begin in the median used step, or in the window where there are no steps."""
        own_ns = starts[keys == _CLASSES.index(name)]
        if not steps.used:
            return summed(steps.windows.hold(own_ns))
        begin_ns, end_ns = steps.borders_ns
        return int(np.median(np.searchsorted(own_ns, end_ns) - np.searchsorted(own_ns, begin_ns)))

    inside = {*keys[steps.windows.hold(starts)].tolist()}
    return Fingerprint(
        attention=per_step("attention"),
        routers=per_step("router"),
        has_experts=_CLASSES.index("grouped_gemm") in inside,
        has_embedding=_CLASSES.index("embedding") in inside,
        has_loss=_CLASSES.index("loss") in inside,
    )


def _step_parts(rank: RankTimeline, steps: Steps, spent: SpentInstants) -> StepParts:
    start_ns, end_ns = steps.borders_ns
    unknown = np.full(len(start_ns), UNKNOWN)

    def within(spans: Spans | None) -> IntArray:
        if spans is None:
            return unknown
        return covered_ns(start_ns, end_ns, spans)

    loader_ns = within(spent.loader)
    if spent.loader is not None:
        loader_ns[:1] += loading_ns(rank, steps)

    return StepParts(
        start_ns=start_ns,
        end_ns=end_ns,
        compute_ns=within(spent.compute),
        exposed_comm_ns=within(spent.exposed),
        host_starved_ns=within(spent.host),
        loader_ns=loader_ns,
        grouped_ns=within(spent.grouped),
        pace_ns=paces(rank, steps),
    )

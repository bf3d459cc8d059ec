"""Changes to expert all-to-alls: a faster dispatcher, and token counts that stay on the GPU.

Moving data takes less time, waiting for peers does not. An exchange is the payload kernels that
belong together; its counts' copy to the host, and the wait for it, can go.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from traces.account.calls import NONE, CallKind, is_kind
from traces.arrays import BoolArray, IntArray, ints, none_of, row_by_row, sums_before, zeros
from traces.frozen import frozen
from traces.groups import mask_of
from traces.intervals import instants_of, ns_in
from traces.limits import Limit
from traces.replay.changes.change import DraftChange, Recorded
from traces.replay.graph import Timing
from traces.replay.waits import CallWaits
from traces.replay.without import without_activities, without_stretch, zeroed
from traces.texts import Texts
from traces.timeline import Activities, Bucket
from traces.training import roles_of

PAYLOAD: Final = ("ep_dispatch", "ep_combine", "ep_a2a")
EP_KINDS: Final = (*PAYLOAD, "ep_control")
_EXCHANGES: Final = ("sendrecv", "all_to_all")
"""Subclasses of NCCL's kernels that exchange."""
HEAVY: Final = ("gemm", "attention")
"""Classes that only run in the modules around an exchange, never in it."""


@frozen
class Exchange:
    """One dispatch or combine: places of its payload kernels in order of start; `backward`:
    autograd's.
    """

    works: list[int]
    backward: bool


def of_kinds(recorded: Recorded, kinds: Texts) -> BoolArray:
    """Mask of communication of some kinds, shape (n,)."""
    return recorded.rows.of(Bucket.COMM, *kinds)


def find_exchanges(recorded: Recorded) -> list[Exchange]:
    """All exchanges in order of start: payload with a GEMM or attention between belongs to two of
    them.
    """
    payload = np.flatnonzero(of_kinds(recorded, PAYLOAD))
    before = np.searchsorted(np.flatnonzero(recorded.rank.of_class(*HEAVY)), payload)
    autograd = roles_of(recorded.rank).autograd
    exchanges: list[Exchange] = []
    last = -1
    for work, count in row_by_row(payload, before):
        backward = bool(autograd[work])
        if count != last or exchanges[-1].backward != backward:
            exchanges.append(Exchange([], backward))
        exchanges[-1].works.append(work)
        last = count
    return exchanges


def autograd_compute(recorded: Recorded) -> tuple[BoolArray, BoolArray]:
    """Compute that autograd's threads launched, and that others did; masks of shape (n,)."""
    autograd = roles_of(recorded.rank).autograd
    compute = recorded.rows.is_compute
    return compute & autograd, compute & ~autograd


def running_ns(
    rows: Activities, length: IntArray, which: BoolArray, begin: IntArray, end: IntArray
) -> IntArray:
    """How much of some work, `length` ns each, starts in each of some stretches; shape of the
    stretches.
    """
    start = rows.start_ns[which]
    total = sums_before(length[which])
    first, last = np.searchsorted(start, begin), np.searchsorted(start, np.maximum(begin, end))
    return total[last] - total[first]


_TABLE: Final = "per a digest of arXiv 2603.07685, table 7"
LEAST: Final = Limit(
    744 / 827,
    "of the time before",
    f"combine, alltoall to HybridEP, EP64 on GB200: 827 to 744 us; {_TABLE}",
)
MOST: Final = Limit(
    4.4 / 9.2,
    "of the time before",
    f"dispatch and combine, alltoall to DeepEP, EP64 on H100: 8.7 to 9.2 ms down to 4.4 to 4.6; "
    f"{_TABLE}",
)


def dispatcher_drafts(recorded: Recorded) -> Iterator[DraftChange]:
    """`faster_dispatcher`, where NCCL's all-to-all is the dispatcher: the published factors are
    from there.

    Pessimistic: of each kernel the part that the fastest of its like took shrinks by the smallest
    published factor. The other end: all of it by the largest, for one rank cannot tell waiting from
    moving, and compute is stretched for so much less time.
    """
    expert = of_kinds(recorded, EP_KINDS)
    send = recorded.rank.named(lambda _, kernel: kernel.subclass in _EXCHANGES)
    if not (expert & send).any():
        return
    moving_ns = _moving_ns(recorded)
    rows = recorded.rows
    beside_ns = ns_in(rows, instants_of(rows, expert))
    relieved_ns = ints(np.where(recorded.subject.crowded(), beside_ns * (1 - MOST.value), 0))

    def low(timing: Timing) -> Timing:
        saved = ints((1 - LEAST.value) * np.minimum(moving_ns, timing.duration_ns))
        return replace(timing, duration_ns=timing.duration_ns - saved)

    def high(timing: Timing) -> Timing:
        left = ints(timing.duration_ns * MOST.value)
        faster = replace(timing, duration_ns=np.where(expert, left, timing.duration_ns))
        return without_stretch(faster, relieved_ns, recorded.subject.stretch_frac or 0.0)

    yield DraftChange("faster_dispatcher", {"communication": EP_KINDS}, low, high)


def _moving_ns(recorded: Recorded) -> IntArray:
    """Of each payload kernel the length of the fastest of its like, shape (n,), 0 for all else.

    Alike are kernels of one name, kind, phase, number of blocks and place in their exchange.
    """
    rows, blocks = recorded.rows, recorded.rank.blocks
    length = rows.length_ns
    like: dict[tuple[int, ...], list[int]] = {}
    for exchange in find_exchanges(recorded):
        for part, work in enumerate(exchange.works):
            key = (
                int(rows.name[work]),
                int(rows.key[work]),
                exchange.backward,
                int(blocks[work]),
                part,
            )
            like.setdefault(key, []).append(work)
    moving = zeros(len(rows))
    for works in like.values():
        moving[works] = length[works].min()
    return moving


def sync_drafts(recorded: Recorded) -> Iterator[DraftChange]:
    """`token_counts_stay`: the pessimistic end keeps copies, launches and calls; only the waiting
    is gone.
    """
    graph = recorded.graph
    reading, polling = reads_counts(recorded)
    if not (reading.any() or polling.any()):
        return
    waits = graph.timing.waits
    copies = mask_of(waits.work[reading[waits.call]], len(graph.rows)) & graph.feeds_host

    def low(timing: Timing) -> Timing:
        return replace(timing, waits=timing.waits.without(reading), polled=CallWaits.of(()))

    def high(timing: Timing) -> Timing:
        free = zeroed(low(timing), reading, "own_ns", "pause_ns")
        free = replace(free, engine=np.where(copies, NONE, timing.engine))
        return without_activities(graph, free, copies)

    acts_on = {"host_overhead": ("token_count_sync", "launch", "python")}
    yield DraftChange("token_counts_stay", acts_on, low, high)


def reads_counts(recorded: Recorded) -> tuple[BoolArray, BoolArray]:
    """Calls that wait for token counts, masks of shape (m,): for a small copy of them, and by
    polling.

    Token counts are read beside an exchange: between it and the call no GEMM and no attention is
    launched.
    """
    graph = recorded.graph
    near = _near_exchange(recorded)
    calls, timing = graph.calls, graph.timing
    reading = (
        is_kind(calls, CallKind.SYNC) & near & timing.waits.holding(graph.feeds_host, len(calls))
    )
    return reading, timing.polled.holding(~none_of(len(graph.rows)), len(calls))


def _near_exchange(recorded: Recorded) -> BoolArray:
    """Calls with an expert exchange nearer than any GEMM or attention, before or after, shape
    (m,).
    """
    graph = recorded.graph
    heavy, expert = recorded.rank.of_class(*HEAVY), of_kinds(recorded, EP_KINDS)
    calls = np.arange(len(graph.calls))
    by = graph.launched_by
    of_heavy, of_expert = (np.sort(by[which & (by != NONE)]) for which in (heavy, expert))
    before = _nearest(of_expert, calls, -1) > _nearest(of_heavy, calls, -1)
    after = -_nearest(of_expert, calls, 1) > -_nearest(of_heavy, calls, 1)
    return before | after


def _nearest(candidates: IntArray, calls: IntArray, way: int) -> IntArray:
    """The nearest of some calls before (-1) or after (1) each; far out where there is none."""
    far = len(calls) + 1
    padded = np.concatenate(([-far], candidates, [far]))
    place = np.searchsorted(padded, calls, "right")
    if way < 0:
        return padded[place - 1]
    return padded[place]

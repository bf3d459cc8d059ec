"""The account: every nanosecond without compute has one reason. They add up to window - compute
exactly.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Final

import numpy as np

from traces.account.calls import NONE
from traces.account.clocks import clock_offset_ns
from traces.account.device import Queueing, judge_device, ready_ns
from traces.account.host import Host, HostPieces
from traces.account.pieces import (
    BEGINNING,
    CAUSES,
    DECIDED,
    NO_KERNEL,
    REASON,
    REASONS,
    RECORDED,
    AbsentPieces,
    Judged,
    Pieces,
    compute_gaps,
    judged,
    last_to_end,
    waited_for,
)
from traces.account.waits import WaitingCalls, with_poll_calls
from traces.arrays import (
    CODE,
    FOREVER,
    PLACE,
    IntArray,
    columns_of,
    row_by_row,
    summed,
    zeros,
)
from traces.columns import PROCESS_BITS
from traces.frozen import frozen
from traces.groups import first_of, group_of, in_order, mask_of, passing, sums_of
from traces.intervals import Spans, intersect, ns_in, union
from traces.launches import launches_a_graph
from traces.limits import HALF_A_WALL, Limit
from traces.missing import Missing
from traces.sections.window import Absent, DecidedBy, Latency
from traces.spelling import duration, percent
from traces.timeline import RankTimeline


class GraphNodes:
    """Replays of a rank: activities that share the row of their launching call."""

    def __init__(self, rank: RankTimeline) -> None:
        self._rows = rows = rank.activities
        launched = np.flatnonzero(rows.is_launched)
        order = in_order(launched, rows.call)
        call = rows.call[order]
        self._first = np.arange(len(rows), dtype=PLACE)
        self._first[order] = order[np.searchsorted(call, call)]

    def split(self, pieces: Pieces) -> tuple[Pieces, Judged, Judged]:
        """Pieces outside of replays, opaque pieces within, and those in which another node ran."""
        first = self._first[pieces.kernel]
        begun = self._rows.start_ns[first]
        before = pieces.clipped(pieces.start_ns, begun)
        within = pieces.take(first != pieces.kernel)
        opaque, running = self._nodes_running(
            within.clipped(begun[first != pieces.kernel], within.end_ns)
        )
        return replace(before, kernel=self._first[before.kernel]), opaque, running

    def _nodes_running(self, within: Pieces) -> tuple[Judged, Judged]:
        """Cut out where a node of the same replay without compute ran, the one that ends last
        first.
        """
        rows = self._rows
        parts: list[tuple[int, int, int, int]] = []
        not_compute = np.flatnonzero(~rows.is_compute)
        not_compute = in_order(not_compute, rows.call)
        calls, call = rows.call[not_compute], rows.call[within.kernel]
        low, high = np.searchsorted(calls, call), np.searchsorted(calls, call + 1)
        for place, (start, end) in enumerate(row_by_row(within.start_ns, within.end_ns)):
            nodes = not_compute[low[place] : high[place]]
            for part in last_to_end(rows, nodes, start, end):
                parts.append((place, *part))
        index, start_ns, end_ns, work = columns_of(parts, 4)
        pieces = replace(within.take(index), start_ns=start_ns, end_ns=end_ns)
        ran = work != NONE
        opaque = judged(pieces.take(~ran), REASON["graph_opaque"])
        return opaque, waited_for(rows, pieces.take(ran), work[ran])


AT_ONCE: Final = Limit(1_000_000, "pieces", "ours: judged together they take some 100 MB")


@frozen
class Account:
    """Time without compute by reason, in ns over the windows; all of it adds up to window -
    compute.

    `masked_ns` is the part of launch_starved in which a producer of the late kernel ran as well, or
    what the call of its thread outlasted: mending the host alone does not win it. `decided_ns`: by
    what each part was decided; keys of `DECIDED`. Maps hold no zero, but for `decided_ns`.
    `pieces`: what was added up, None behind bare figures.
    """

    launch_starved_ns: Mapping[str, int]
    blocking_ns: Mapping[str, int]
    arrival_ns: int
    kernel_gap_ns: int
    graph_opaque_ns: int
    dependency_stalled_ns: int
    trailing_ns: int
    masked_ns: int
    decided_ns: Mapping[str, int]
    pieces: AbsentPieces | None = field(default=None, repr=False, compare=False)

    @property
    def host_most_ns(self) -> int:
        """The most that a host without time would save: what is starved by it, latency and masked.

        Waits for copies to the host count too: a small one that only feeds a call goes with it, and
        so does the wait for what it queued behind (in simulated runs a read of token counts behind
        offload copies: 21 % of a step that starvation and latency alone would bound at 4 %).
        """
        starved_ns = sum(self.launch_starved_ns.values())
        starved_ns -= self.launch_starved_ns.get("profiler", 0)
        copied_ns = self.blocking_ns.get("memcpy_d2h", 0)
        return starved_ns + self.arrival_ns + self.kernel_gap_ns + self.masked_ns + copied_ns

    @property
    def total_ns(self) -> int:
        """Everything: window - compute."""
        named_ns = *self.launch_starved_ns.values(), *self.blocking_ns.values()
        rest_ns = self.graph_opaque_ns, self.dependency_stalled_ns, self.trailing_ns
        return sum((*named_ns, self.arrival_ns, self.kernel_gap_ns, *rest_ns))

    @property
    def absent(self) -> Absent:
        """The reasons as a section of the result."""
        return Absent(
            self.launch_starved_ns,
            self.blocking_ns,
            Latency(self.arrival_ns, self.kernel_gap_ns),
            self.graph_opaque_ns,
            self.dependency_stalled_ns,
            self.trailing_ns,
        )

    @property
    def decided_by(self) -> DecidedBy:
        """By what, as shares of all of it."""
        whole = self.total_ns
        return DecidedBy(**{by: ns / whole if whole else 0.0 for by, ns in self.decided_ns.items()})


def measure_account(rank: RankTimeline, windows: Spans, queueing: Queueing) -> Account | Missing:
    """Account for one rank's time without compute.

    `Missing` (path relative to the rank) where host and GPU clocks are apart, or no launch was
    recorded.
    """
    # a few at the edges of a capture lose their work anyway
    if rank.opaque_graph_frac > HALF_A_WALL.value:
        reason = (
            f"{percent(rank.opaque_graph_frac)} of the CUDA graph launches show no work, so time "
            "without compute may be work that was not recorded"
        )
        if before_ns := _before_graphs_ns(rank, windows):
            reason += f", but for {duration(before_ns)} before the first of them"
        return Missing("absent_ns", reason, rank.cure("graphs"))
    offset_ns = clock_offset_ns(rank)
    if offset_ns is None:
        reason = "no launch of a kernel was recorded, so the host's part is unknown"
        return Missing("absent_ns", reason, rank.cure("launches"))
    if offset_ns:
        seen = "nothing starts within 50 us of its launch"
        if offset_ns < 0:
            seen = "work starts before its launch"
        reason = (
            f"clock offset: {seen}, so host and GPU clocks may be apart, "
            f"by about {duration(offset_ns)}"
        )
        return Missing("absent_ns", reason, "record again; nothing in this trace can align them")
    return _Accountant(rank, windows, queueing).account()


def _before_graphs_ns(rank: RankTimeline, windows: Spans) -> int:
    """Time without compute before the process launches its first graph, where it is no little."""
    calls, gaps = rank.calls, compute_gaps(rank.activities, windows)
    mine = passing(launches_a_graph, rank.columns.call_names)[calls.name]
    mine &= calls.thread_gid & PROCESS_BITS == rank.process_gid
    before = gaps.clipped(gaps.start_ns, calls.start_ns[mine].min(initial=FOREVER))
    ns = summed(ns_in(before, windows))
    return ns if ns > HALF_A_WALL.value * summed(ns_in(gaps, windows)) else 0


def absent_pieces(account: Account | Missing) -> AbsentPieces | Missing:
    """The pieces an account adds up; `Missing` where it is."""
    if isinstance(account, Missing):
        return account
    return account.pieces or Missing("absent_ns", "only sums are known", "none is needed")


_BLOCKING: Final = "blocking."


class _Accountant:
    def __init__(self, rank: RankTimeline, windows: Spans, queueing: Queueing) -> None:
        self._windows, self._queueing = windows, queueing
        self._rows, self._gaps = rank.activities, compute_gaps(rank.activities, windows)
        self._ns = Counter[str]()
        self._decided_ns, self._masked_ns = zeros(len(DECIDED)), 0
        self._noted: list[list[IntArray]] = [[] for _ in AbsentPieces.__slots__]
        self._nodes = GraphNodes(rank)
        self._begins = mask_of(first_of(group_of(self._rows.stream_id)), len(self._rows))
        polled = with_poll_calls(rank)
        self._host = Host(polled)
        self._waits = WaitingCalls(polled, self._host)

    def account(self) -> Account:
        place = np.arange(len(self._gaps))
        for first in range(0, max(1, len(place)), AT_ONCE.whole):
            chunk = place[first : first + AT_ONCE.whole]
            for part in self._judged(self._gaps.take(chunk)):
                self._note(part)
        ns = self._ns
        blocking = {
            name.removeprefix(_BLOCKING): ns[name] for name in ns if name.startswith(_BLOCKING)
        }
        return Account(
            {cause: cause_ns for cause in CAUSES if (cause_ns := ns[f"launch_starved.{cause}"])},
            blocking,
            ns["launch_latency.arrival"],
            ns["launch_latency.kernel_gap"],
            ns["graph_opaque"],
            ns["dependency_stalled"],
            ns["trailing"],
            self._masked_ns,
            dict(zip(DECIDED, self._decided_ns.tolist(), strict=True)),
            AbsentPieces(*map(_joined, self._noted)),
        )

    def _judged(self, everything: Pieces) -> Iterator[Judged]:
        """Before the launch returned: the host. After: the device."""
        ended = everything.kernel != NO_KERNEL
        yield judged(everything.take(~ended), REASON["trailing"])
        pieces, *within = self._nodes.split(everything.take(ended))
        yield from within
        ready = ready_ns(self._rows, pieces.kernel)
        before = pieces.clipped(pieces.start_ns, ready)
        left, waited = self._waits.split(self._host.judge(before))
        self._masked_ns += self._masked(left)
        yield waited
        yield judged(left, left.cause, RECORDED)
        for part in judge_device(self._rows, pieces.clipped(ready, pieces.end_ns), self._queueing):
            open_ = (part.reason == REASON["dependency_stalled"]) & self._begins[part.kernel]
            yield part.take(~open_)
            yield self._waits.for_unrecorded(part.take(open_))

    def _note(self, part: Judged) -> None:
        ns = ns_in(part, self._windows)
        of_part = sums_of(ns, part.reason, len(REASONS))
        for code in np.flatnonzero(of_part).tolist():
            self._ns[REASONS[code]] += int(of_part[code])
        self._decided_ns += sums_of(ns, part.decided, len(DECIDED))
        reason = part.reason.astype(CODE)
        work = part.work.astype(PLACE)
        kernel = part.kernel.astype(PLACE)
        columns: tuple[IntArray, ...] = (part.start_ns, part.end_ns, reason, work, kernel)
        for column, values in zip(self._noted, columns, strict=True):
            column.append(values)

    def _masked(self, left: HostPieces) -> int:
        place = np.column_stack((self._queueing.producers.place[left.kernel], left.under))
        ends = np.where(place != NONE, self._rows.end_ns[place], BEGINNING)
        low = np.maximum(self._rows.start_ns[place], left.start_ns[:, None])
        high = np.minimum(ends, left.end_ns[:, None])
        return intersect(union(low.ravel(), high.ravel()), self._windows).total_ns


def _joined(parts: list[IntArray]) -> IntArray:
    """The parts as one, which are gone then: twice the whole is much."""
    result = np.concatenate(parts)
    parts.clear()
    return result

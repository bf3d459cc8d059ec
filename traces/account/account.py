"""The account: every nanosecond without compute has one reason. They add up to window - compute exactly."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from traces.account.absent import AbsentPieces, Notes
from traces.account.clocks import clock_offset_ns
from traces.account.device import DevicePieces, Queueing, judge_device, ready_ns
from traces.account.host import CAUSES, Host, HostPieces
from traces.account.pieces import BEGINNING, NO_KERNEL, Gaps, Pieces, compute_gaps, last_to_end
from traces.account.producers import Producers
from traces.account.waits import Waits, with_poll_calls
from traces.columns import PLACE, BoolArray, IntArray
from traces.cures import cure
from traces.intervals import Spans, covered_ns, intersect, union
from traces.limits import Limit
from traces.missing import Missing
from traces.spelling import duration, percent
from traces.timeline import KEYS, Activities, Bucket, RankTimeline


@dataclass(frozen=True, slots=True)
class Running:
    """Pieces within a replay in which one of its nodes ran: `work` is its place in the activities."""

    pieces: Pieces
    work: IntArray


class GraphNodes:
    """Replays of a rank: activities that share the row of their launching call."""

    def __init__(self, rank: RankTimeline) -> None:
        self._rows: Activities = rank.activities
        rows = self._rows
        launched = np.flatnonzero(rows.call >= 0)
        order = launched[np.lexsort((rows.start_ns[launched], rows.call[launched]))]
        call = rows.call[order]
        self._first = np.arange(len(rows), dtype=PLACE)
        self._first[order] = order[np.searchsorted(call, call, side="left")]

    def split(self, pieces: Pieces) -> tuple[Pieces, Pieces, Running]:
        """Pieces outside of replays, opaque pieces within, and those in which another node ran.

        The time before a replay's first node is judged for that node, by its graph launch.
        """
        rows = self._rows
        first = self._first[pieces.kernel]
        begun = rows.start_ns[first]
        before = pieces.clipped(pieces.start_ns, begun)
        outer = Pieces(before.start_ns, before.end_ns, before.gap, self._first[before.kernel])
        alone = first == pieces.kernel
        within = pieces.take(~alone)
        within = within.clipped(begun[~alone], within.end_ns)
        opaque, running = self._nodes_running(within)
        return outer, opaque, running

    def _nodes_running(self, within: Pieces) -> tuple[Pieces, Running]:
        """Cut out where a node of the same replay without compute ran, the one that ends last first."""
        rows = self._rows
        opaque: list[tuple[int, int, int, int]] = []
        running: list[tuple[int, int, int, int, int]] = []
        not_compute = np.flatnonzero((rows.bucket != Bucket.COMPUTE) & (rows.call >= 0))
        not_compute = not_compute[np.argsort(rows.call[not_compute], kind="stable")]
        calls = rows.call[not_compute]
        for index in range(len(within)):
            start, end = int(within.start_ns[index]), int(within.end_ns[index])
            gap, kernel = int(within.gap[index]), int(within.kernel[index])
            low, high = np.searchsorted(calls, (rows.call[kernel], rows.call[kernel] + 1))
            for at, until, last in last_to_end(rows, not_compute[low:high], start, end):
                if last is None:
                    opaque.append((at, until, gap, kernel))
                else:
                    running.append((at, until, gap, kernel, last))
        rest = Pieces(*np.array(opaque, dtype=np.int64).reshape(-1, 4).T)
        table = np.array(running, dtype=np.int64).reshape(-1, 5).T
        return rest, Running(Pieces(*table[:4]), table[4])


OPAQUE_GRAPHS: Final = Limit(
    0.05,
    "fraction of the CUDA graph launches",
    "ours: a few at the edges of a capture lose their work anyway",
)
AT_ONCE: Final = Limit(1_000_000, "pieces", "ours: judged together they take some 100 MB")
DECIDED: Final = ("recorded", "inferred", "none")


@dataclass(frozen=True, slots=True)
class Account:
    """Time without compute by reason, in ns over the windows; all of it adds up to window - compute.

    `masked_ns` is the part of launch_starved in which a producer of the late kernel ran as well, or what the
    call of its thread outlasted: mending the host alone does not win it. `decided_ns`: by what each part was
    decided; keys of `DECIDED`. Maps hold no zero, but for `decided_ns`. `pieces`: what was added up, None
    behind bare figures.
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
    arrival_calibrated_ns: int
    kernel_gap_calibrated_ns: int
    pieces: AbsentPieces | None = field(default=None, repr=False, compare=False)

    @property
    def host_most_ns(self) -> int:
        """The most that a host without time would save: what is starved by it, latency and masked.

        Waits for copies to the host count too: a small one that only feeds a call goes with it, and so does
        the wait for what it queued behind (in simulated runs a read of token counts behind offload copies:
        21 % of a step that starvation and latency alone would bound at 4 %).
        """
        starved_ns = sum(ns for cause, ns in self.launch_starved_ns.items() if cause != "profiler")
        copied_ns = self.blocking_ns.get("memcpy_d2h", 0)
        return starved_ns + self.arrival_ns + self.kernel_gap_ns + self.masked_ns + copied_ns

    @property
    def total_ns(self) -> int:
        """Everything: window - compute."""
        return (
            sum(self.launch_starved_ns.values())
            + sum(self.blocking_ns.values())
            + self.arrival_ns
            + self.kernel_gap_ns
            + self.graph_opaque_ns
            + self.dependency_stalled_ns
            + self.trailing_ns
        )


def measure_account(rank: RankTimeline, windows: Spans, queueing: Queueing) -> Account | Missing:
    """Account for one rank's time without compute.

    `Missing` (path relative to the rank) where host and GPU clocks are apart, or no launch was recorded.
    """
    if rank.opaque_graph_frac > OPAQUE_GRAPHS.value:
        reason = (
            f"{percent(rank.opaque_graph_frac)} of the CUDA graph launches show no work, so time without "
            "compute may be work that was not recorded"
        )
        return Missing("absent_ns", reason, cure("graphs", rank.columns.info.kind))
    offset_ns = clock_offset_ns(rank)
    if offset_ns is None:
        reason = "no launch of a kernel was recorded, so the host's part is unknown"
        return Missing("absent_ns", reason, cure("launches", rank.columns.info.kind))
    if offset_ns:
        reason = (
            "clock offset: nothing starts within 50 us of its launch, so host and GPU clocks may be apart, "
            f"by about {duration(offset_ns)}"
        )
        return Missing("absent_ns", reason, "record again; nothing in this trace can align them")
    return _Accountant(rank, windows, queueing).account()


def absent_pieces(account: Account | Missing) -> AbsentPieces | Missing:
    """The pieces an account adds up; `Missing` where it is."""
    if isinstance(account, Missing):
        return account
    return account.pieces or Missing("absent_ns", "only sums are known", "none is needed")


class _Accountant:
    """One pass over the intervals without compute."""

    def __init__(self, rank: RankTimeline, windows: Spans, queueing: Queueing) -> None:
        self._rank, self._windows = rank, windows
        self._rows: Activities = rank.activities
        self._gaps: Gaps = compute_gaps(self._rows, windows)
        self._producers: Producers = queueing.producers
        self._latencies = queueing.latencies
        self._ns = {"arrival": 0, "gap": 0, "opaque": 0, "stalled": 0, "trailing": 0, "masked": 0}
        self._starved = np.zeros(len(CAUSES), dtype=np.int64)
        self._blocking: dict[str, int] = {}
        self._decided = dict.fromkeys(DECIDED, 0)
        self._notes = Notes(self._rows)
        self._nodes = GraphNodes(rank)
        polled = with_poll_calls(rank)
        self._host = Host(polled)
        self._waits = Waits(polled, self._host)

    def account(self) -> Account:
        gaps = self._gaps
        for first in range(0, max(1, len(gaps)), int(AT_ONCE.value)):
            some = slice(first, first + int(AT_ONCE.value))
            place = np.arange(len(gaps), dtype=PLACE)[some]
            self._judge(Pieces(gaps.start_ns[some], gaps.end_ns[some], place, gaps.kernel[some]))
        return Account(
            {cause: int(ns) for cause, ns in zip(CAUSES, self._starved, strict=True) if ns},
            self._blocking,
            self._ns["arrival"],
            self._ns["gap"],
            self._ns["opaque"],
            self._ns["stalled"],
            self._ns["trailing"],
            self._ns["masked"],
            self._decided,
            self._latencies.arrival_ns,
            self._latencies.gap_ns,
            self._notes.pieces(),
        )

    def _judge(self, everything: Pieces) -> None:
        ended = everything.kernel != NO_KERNEL
        self._ns["trailing"] += self._add(everything.take(~ended), "none")
        self._notes.trailing(everything.take(~ended))
        pieces, within, running = self._nodes.split(everything.take(ended))
        self._ns["opaque"] += self._add(within, "none")
        self._notes.opaque(within)
        self._add_work(running.pieces, running.work, np.zeros(len(running.pieces), dtype=np.bool_))
        self._judge_outside(pieces)

    def _judge_outside(self, pieces: Pieces) -> None:
        """Before the launch returned: the host. After: the device."""
        ready = ready_ns(self._rows, pieces.kernel)
        before = pieces.clipped(pieces.start_ns, ready)
        after = pieces.clipped(ready, pieces.end_ns)
        left, waited = self._waits.split(self._host.judge(before, self._gaps.start_ns))
        self._add_work(waited.pieces, waited.work, np.zeros(len(waited.pieces), dtype=np.bool_))
        self._add_host(left)
        for part in judge_device(self._rows, after, self._producers, self._latencies):
            self._add_device(part)

    def _add_host(self, left: HostPieces) -> None:
        self._notes.host(left)
        ns = self._covered(left.pieces)
        np.add.at(self._starved, left.cause, ns)
        self._decided["recorded"] += int(ns.sum())
        self._ns["masked"] += self._masked(left)

    def _add_device(self, part: DevicePieces) -> None:
        self._notes.device(part)
        ran = part.work >= 0
        self._add_work(part.pieces.take(ran), part.work[ran], part.inferred[ran])
        ns = self._covered(part.pieces)
        self._ns["arrival"] += int(ns[part.arrival].sum())
        self._ns["gap"] += int(ns[part.gap].sum())
        stalled = ~ran & ~part.arrival & ~part.gap
        self._ns["stalled"] += int(ns[stalled].sum())
        decided = part.arrival | part.gap
        self._decided["recorded"] += int(ns[decided & ~part.inferred].sum())
        self._decided["inferred"] += int(ns[decided & part.inferred].sum())
        self._decided["none"] += int(ns[stalled].sum())

    def _add_work(self, pieces: Pieces, work: IntArray, inferred: BoolArray) -> None:
        """Time in which awaited work ran, by the kind of that work."""
        self._notes.work(pieces, work)
        ns = self._covered(pieces)
        for bucket in (Bucket.COMM, Bucket.COPY):
            mine = self._rows.bucket[work] == bucket
            by_key = np.zeros(len(KEYS[bucket]), dtype=np.int64)
            np.add.at(by_key, self._rows.key[work[mine]], ns[mine])
            for key in np.flatnonzero(by_key):
                name = KEYS[bucket][key]
                self._blocking[name] = self._blocking.get(name, 0) + int(by_key[key])
        self._decided["recorded"] += int(ns[~inferred].sum())
        self._decided["inferred"] += int(ns[inferred].sum())

    def _masked(self, left: HostPieces) -> int:
        """How much of the pieces lies under a producer of their kernel, or what their call outlasted."""
        total, pieces = 0, left.pieces
        place = np.column_stack((self._producers.place[pieces.kernel], left.under))
        some = np.flatnonzero((place >= 0).any(axis=1))
        starts = np.where(place >= 0, self._rows.start_ns[place], BEGINNING)
        ends = np.where(place >= 0, self._rows.end_ns[place], BEGINNING)
        low = np.maximum(starts, pieces.start_ns[:, None])
        high = np.minimum(ends, pieces.end_ns[:, None])
        for index in some[(high > low)[some].any(axis=1)].tolist():
            under = union(low[index], high[index])
            total += intersect(under, self._windows).total_ns
        return total

    def _add(self, pieces: Pieces, decided: str) -> int:
        ns = int(self._covered(pieces).sum())
        self._decided[decided] += ns
        return ns

    def _covered(self, pieces: Pieces) -> IntArray:
        return covered_ns(pieces.start_ns, pieces.end_ns, self._windows)

"""One rank's recording as a graph: host calls in order, GPU work after its launch, stream and
producers.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from traces.account.calls import NONE, HostCalls, host_calls, kinds_of_calls
from traces.account.device import Latencies, Queueing
from traces.account.host import (
    captures,
    cold_starts,
    cpu_optimizer,
    data_pauses,
    single_pauses,
)
from traces.account.inferred import UNEXPLAINED
from traces.account.named import named_spans
from traces.account.waits import Poll, find_polls
from traces.arrays import PLACE, BoolArray, IntArray, distinct, none_of, nowhere, order_of, zeros
from traces.columns import COPY_KINDS, NULL, HostSpans, Ranges
from traces.frozen import frozen
from traces.intervals import Spans, covered_ns, union
from traces.launches import of_call
from traces.limits import LATENCY
from traces.loops import loop
from traces.replay.waits import CallWaits, Finder, Wait
from traces.timeline import Activities, RankTimeline

_BATCH: Final = "data_pause"
"""Waits for the next batch that no range names; they count as `data`."""
_COLD: Final = "cold_start"
_SINGLE, _CAPTURED = "single_pause", "captured"
"""Pauses of first calls that no range names, and of captures of graphs; they count as
`lazy_init`."""


@frozen
class Pauses:
    """Parts of the pause before each call, in ns, by what took it, shape (m,) each; the rest is
    Python's.

    An instant counts once: as the profiler's own work, else as a capture's, else by the strongest
    range that names it, else as the cold start of a synchronising call (`cold_ns`), else as the
    optimizer's on the CPU, else an OS call. `profiler_in_call_ns`: the profiler's own work within
    each call.
    """

    profiler_ns: IntArray
    named_ns: Mapping[str, IntArray]
    cold_ns: IntArray
    profiler_in_call_ns: IntArray

    @property
    def said_ns(self) -> IntArray:
        """The part of each pause, shape (m,), that something other than Python or a cold start
        took.
        """
        return self.profiler_ns + sum(self.named_ns.values(), np.zeros_like(self.profiler_ns))


def measure_pauses(rank: RankTimeline, calls: HostCalls) -> Pauses:
    """Split the pauses of a rank's calls."""
    columns = rank.columns
    layers: dict[str, HostSpans | Ranges] = {
        "profiler": columns.overheads,
        _CAPTURED: captures(columns),
    }
    kind, sets_up = kinds_of_calls(rank)
    single = single_pauses(rank, sets_up)
    for cause, spans in reversed(named_spans(columns, single).items()):
        layers[cause] = spans
        if cause == "data":
            layers[_BATCH] = data_pauses(rank)
    layers |= {_COLD: cold_starts(rank, kind)[0], "cpu_optimizer": cpu_optimizer(rank)}
    layers |= {_SINGLE: single, "os_wait": columns.os_calls}
    recorded = {name: layer for name, layer in layers.items() if len(layer)}
    # what was not recorded takes no memory
    nowhere = np.broadcast_to(zeros(1), len(calls))
    parts = dict.fromkeys(layers, nowhere) | {name: nowhere.copy() for name in recorded}
    within = nowhere.copy() if "profiler" in recorded else nowhere
    for thread in distinct(calls.thread).tolist():
        mine = np.flatnonzero(calls.thread == thread)
        start, end = calls.start_ns[mine] - calls.pause_ns[mine], calls.start_ns[mine]
        seen, so_far = zeros(len(mine)), [np.empty((2, 0), dtype=np.int64)]
        for layer_name, layer in recorded.items():
            so_far.append(_times(layer, thread))
            covered = covered_ns(start, end, union(*np.concatenate(so_far, axis=1)))
            parts[layer_name][mine] = covered - seen
            seen = covered
        if "profiler" in recorded:
            profiler = union(*_times(columns.overheads, thread))
            within[mine] = covered_ns(calls.start_ns[mine], calls.end_ns[mine], profiler)
    parts["data"] = parts["data"] + parts.pop(_BATCH)
    parts["lazy_init"] = parts["lazy_init"] + parts.pop(_SINGLE) + parts.pop(_CAPTURED)
    profiler_ns, cold_ns = parts.pop("profiler"), parts.pop(_COLD)
    return Pauses(profiler_ns, parts, cold_ns, within)


def _times(spans: HostSpans | Ranges, thread: int) -> IntArray:
    return np.stack((spans.start_ns, spans.end_ns))[:, spans.thread_gid == thread]


BEGIN, RETURN, WORK = 0, 1, 2
"""Events of a replay: a call begins, a call returns, GPU work starts."""


@frozen
class Timing:
    """How long everything takes; an edit is another timing of the same graph.

    Shape (n,) of activities: `duration_ns`; `gap_ns` after the last producer; `arrival_ns` after
    the launch call's return; `residual_ns`, waiting nobody can explain; `engine`: the copy before
    it on its copy engine, -1 where none held it up. Shape (m,) of calls: `pause_ns` since the call
    before; `own_ns` without waiting. `waits`: what calls wait for; `polled`: what their begins wait
    for.
    """

    duration_ns: IntArray
    gap_ns: IntArray
    arrival_ns: IntArray
    residual_ns: IntArray
    engine: IntArray
    pause_ns: IntArray
    own_ns: IntArray
    waits: CallWaits
    polled: CallWaits


@frozen
class Graph:
    """What depends on what. `events`, shape (e,): all in the order in which it happened, 3 * place
    + event.

    `launched_by`, shape (n,): the call behind each activity, -1 where not recorded or before the
    window; `within_ns`: how far into that call it started, -1 where after its return. `anchor`: the
    window's first activity, where no work precedes it; it stays where it is, or its own wait would
    move the window, and nothing begins before it. `producers`, shape (n, k): those that each starts
    after, -1 for none; `room`, shape (n,): a kernel launched later that it lets go first where that
    one is launched by the time it is ready, for both do not fit the SMs; -1: none. `feeds_host`:
    small copies that only a waiting call needs. `pauses`: what the host did before each call. Times
    outside of `events` stay as recorded.
    """

    rows: Activities
    calls: HostCalls
    launched_by: IntArray
    within_ns: IntArray
    anchor: int
    producers: IntArray
    room: IntArray
    feeds_host: BoolArray
    events: IntArray
    timing: Timing
    pauses: Pauses

    def launch_counts(self, which: BoolArray | slice = slice(None)) -> IntArray:
        """How many activities each call launched, shape (m,); of a mask of shape (n,), if given."""
        by = self.launched_by[which]
        return np.bincount(by[by != NONE], minlength=len(self.calls))


def build_graph(rank: RankTimeline, stretches: Spans, queueing: Queueing) -> Graph:
    """The graph of what happens in some stretches of a rank, at least one, apart by a step or
    more.
    """
    rows, first_ns = rank.activities, int(stretches.start_ns[0])
    happens = happens_in(rows, stretches.pairs())
    since = []  # from when on calls matter to what runs in each stretch
    for start, end in stretches.pairs():
        launched = happens_in(rows, [(start, end)]) & rows.is_launched
        since.append((int(rows.launch_ns[launched].min(initial=start)) - 1, end))
    calls = host_calls(rank, *since)
    launched_by = np.where(rows.is_launched, calls.at(rows.launch_thread, rows.launch_ns), NONE)
    waits = Finder(rank, calls, launched_by).find()
    engine = _engine_before(rows)
    polled, pause_ns = _polled(calls, find_polls(rank, calls))
    within_ns = _within_call(rows, calls, launched_by, waits.waits)
    launched_ns = _launched_ns(calls, launched_by, within_ns, waits.own_ns)
    found = queueing.producers
    place = np.stack([_settled(rows, places, found.room) for places in found.place.T], axis=1)
    ready_ns = np.maximum(_ended_ns(rows, place.T), launched_ns)
    # only where that one was launched as the other was ready
    room = np.where((found.room >= 0) & (launched_ns[found.room] <= ready_ns), found.room, NONE)
    del ready_ns
    before = (*place.T, engine, room)
    anchor = NONE if (rows.end_ns <= first_ns).any() else int(np.flatnonzero(happens)[0])
    begin_ns = NULL if anchor == NONE else int(rows.start_ns[anchor])
    gap_ns, arrival_ns, residual_ns = _latencies(
        rows, launched_ns, within_ns, before, begin_ns, queueing.latencies
    )
    del launched_ns
    begins = _order_ns(rows, calls, (launched_by, within_ns), (*place.T, room), waits.waits)
    timing = Timing(
        duration_ns=rows.length_ns,
        gap_ns=gap_ns,
        arrival_ns=arrival_ns,
        residual_ns=residual_ns,
        engine=engine,
        pause_ns=pause_ns,
        own_ns=waits.own_ns,
        # work that takes its place after a call returned cannot have held that call up
        waits=waits.waits.take(begins[waits.waits.work] < calls.end_ns[waits.waits.call]),
        polled=polled,
    )
    events = _events(calls, begins, happens, happens_in(calls, since))
    return Graph(
        rows,
        calls,
        launched_by,
        within_ns,
        anchor,
        place,
        room,
        waits.feeds_host,
        events,
        timing,
        measure_pauses(rank, calls),
    )


def happens_in(rows: Activities | HostCalls, pairs: Iterable[Sequence[int]]) -> BoolArray:
    """Which activities or calls run in some stretches, a mask of shape (n,)."""
    happens = none_of(len(rows))
    for start_ns, end_ns in pairs:
        happens |= (rows.end_ns > start_ns) & (rows.start_ns < end_ns)
    return happens


def _ended_ns(rows: Activities, before: Iterable[IntArray]) -> IntArray:
    """When the last of what each starts after had ended, shape (n,); NULL where none did."""
    ended_ns = np.full(len(rows), NULL)
    for places in before:  # one by one: all at once take many times the memory
        known = np.flatnonzero(places >= 0)
        ended_ns[known] = np.maximum(ended_ns[known], rows.end_ns[places[known]])
    return ended_ns


def _polled(calls: HostCalls, polls: list[Poll]) -> tuple[CallWaits, IntArray]:
    """What begins of calls wait for, and the pause before each call, shape (m,), without that."""
    waits: dict[int, Wait] = {}
    pause_ns = calls.pause_ns.copy() if polls else calls.pause_ns
    usual_ns = int(np.median(pause_ns)) if len(pause_ns) else 0
    for poll in polls:
        wait = Wait(poll.call, poll.work, poll.soonest_ns if poll.is_late else poll.after_ns)
        # of several control kernels in a row the host waits for the last
        waits[poll.call] = min(waits.get(poll.call, wait), wait, key=lambda one: one.after_ns)
        if not poll.is_late:  # the rest is the poll's return
            pause_ns[poll.call] = min(int(pause_ns[poll.call]), poll.after_ns, usual_ns)
    return CallWaits.of(waits.values()), pause_ns


def _settled(rows: Activities, place: IntArray, room: IntArray) -> IntArray:
    """Producers, shape (n,), that had ended when their consumer began, or precede it on its
    stream.
    """
    held = rows.end_ns[place] <= rows.start_ns
    held |= (place < np.arange(len(rows), dtype=PLACE)) & (rows.stream_id[place] == rows.stream_id)
    return np.where((place >= 0) & (place != room) & held, place, NONE)


def _within_call(
    rows: Activities, calls: HostCalls, launched_by: IntArray, waits: CallWaits
) -> IntArray:
    """How far into its launch call each activity started, shape (n,); -1 where after its return.

    A copy that its own call waits for was launched within it, whenever it started.
    """
    inside = rows.start_ns < of_call(calls.end_ns, launched_by)
    inside[waits.work[launched_by[waits.work] == waits.call]] = True
    into_ns = rows.start_ns - of_call(calls.start_ns, launched_by)
    return np.where(inside, np.maximum(into_ns, 0), NONE)


def _launched_ns(
    calls: HostCalls, launched_by: IntArray, within_ns: IntArray, own_ns: IntArray
) -> IntArray:
    """When each activity had been launched, shape (n,), NULL where that is not known."""
    during_ns = np.minimum(within_ns, of_call(own_ns, launched_by)) + of_call(
        calls.start_ns, launched_by
    )
    return np.where(within_ns >= 0, during_ns, of_call(calls.end_ns, launched_by))


def _latencies(
    rows: Activities,
    launched_ns: IntArray,
    within_ns: IntArray,
    before: Iterable[IntArray],
    begin_ns: int,
    usual: Latencies,
) -> tuple[IntArray, IntArray, IntArray]:
    """Gap, arrival and residual of each activity, shape (n,), which together give back the
    recording.

    `before`: what each starts after, arrays of shape (n,); `begin_ns`: when the anchor starts,
    which nothing precedes: what was waited for until then is not recorded. Gap and arrival are no
    longer than usual; the later one takes what is left up to 2 us, for latencies vary; what is
    longer no constraint explains.
    """
    ended = _ended_ns(rows, before)
    has_producer, has_launch = ended != NULL, launched_ns != NULL
    gap = np.where(has_producer, np.minimum(rows.start_ns - ended, usual.usual_gap_ns), 0)
    after = has_launch & (within_ns < 0)
    arrival = np.where(after, np.minimum(rows.start_ns - launched_ns, usual.usual_arrival_ns), 0)
    produced = np.where(has_producer, ended + gap, NULL)
    arrived = np.where(has_launch, launched_ns + arrival, NULL)
    rest = np.where(
        has_producer | has_launch,
        rows.start_ns - np.maximum(np.maximum(produced, arrived), begin_ns),
        0,
    )
    varies = rest <= UNEXPLAINED.value
    late = varies & after & (arrived >= produced) & (arrived >= begin_ns)
    waited = varies & has_producer & (produced > arrived) & (produced >= begin_ns)
    taken = np.where(late | waited, rest, 0)
    return gap + np.where(waited, taken, 0), arrival + np.where(late, taken, 0), rest - taken


def _engine_before(rows: Activities) -> IntArray:
    """Of each copy the one before it in its direction that it followed at once, on whatever stream;
    else -1.

    A copy engine takes one copy at a time, so a small copy waits behind a large one of another
    stream.
    """
    before = nowhere(len(rows))
    for key in range(len(COPY_KINDS)):
        copies = np.flatnonzero(rows.is_copy & (rows.key == key))
        after = rows.start_ns[copies[1:]] - rows.end_ns[copies[:-1]]
        follows = (after >= 0) & (after <= LATENCY.value)
        before[copies[1:][follows]] = copies[:-1][follows]
    return before


def _order_ns(
    rows: Activities,
    calls: HostCalls,
    launches: tuple[IntArray, IntArray],
    producers: Sequence[IntArray],
    waits: CallWaits,
) -> IntArray:
    """When each activity takes its place in the order of events, shape (n,): its start, on the
    host's clock.

    Where GPU times run a few microseconds ahead, a call returns before the work it waited for
    began; then work is moved ahead of that return, behind its own launch and its `producers`,
    arrays of shape (n,). `launches`: the call behind each, and how far into it, as in `Graph`.
    """
    ahead = int((rows.start_ns[waits.work] + 1 - calls.end_ns[waits.call]).max(initial=0))
    if ahead <= 0:
        return rows.start_ns
    launched_by, within_ns = launches
    called_ns = np.where(
        within_ns >= 0, rows.start_ns - within_ns, of_call(calls.end_ns, launched_by)
    )
    order, width = rows.start_ns - ahead, len(producers)
    moved_ahead.over(width * len(order))(
        order, called_ns, np.stack(producers, axis=1).ravel(), width
    )
    return order


@loop("order")
def moved_ahead(order: IntArray, called_ns: IntArray, producers: IntArray, width: int) -> None:
    """Put each activity behind its launch and its producers, which come before it in the arrays."""
    for place in range(len(order)):
        at = max(order[place], called_ns[place])
        for slot in range(place * width, place * width + width):
            if producers[slot] >= 0:
                at = max(at, order[producers[slot]])
        order[place] = at


def _events(
    calls: HostCalls, begins_ns: IntArray, inside: BoolArray, happened: BoolArray
) -> IntArray:
    """Events of some activities and calls by time; at one instant returns come first, then begins,
    then work.

    `inside`, shape (n,), and `happened`, shape (m,), are masks of the activities and of the calls.
    A call that returned before the window has none: it stays where it is.
    """
    called = np.flatnonzero(happened).astype(PLACE)
    work = np.flatnonzero(inside).astype(PLACE)
    empty = calls.start_ns[called] == calls.end_ns[called]  # such a call begins before it returns
    begins = np.sort(np.concatenate((called * 3 + BEGIN, called[empty] * 3 + RETURN)))
    returns = called[~empty]
    order = order_of(
        np.concatenate((calls.end_ns[returns], calls.start_ns[begins // 3], begins_ns[work]))
    )
    return np.concatenate((returns * 3 + RETURN, begins, work * 3 + WORK))[order]

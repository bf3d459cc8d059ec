"""A graph without what its events never touch: of a long recording only some stretches are replayed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from traces.account.host_calls import NONE, HostCalls
from traces.columns import COPY_KINDS, PLACE, IntArray
from traces.replay.edits import Subject
from traces.replay.graph import WORK, Graph, Timing
from traces.replay.pauses import Pauses
from traces.replay.waiting import Waits
from traces.timeline import Activities, Bucket, Source


def cut(subject: Subject, graph: Graph) -> tuple[Subject, Graph]:
    """Only what happens in a graph and what that waits for; places in the rank become those among it.

    What has no event stays where it was recorded, so every replay gives the same.
    """
    place, is_work = graph.events // 3, graph.events % 3 == WORK
    works, called, timing = place[is_work], place[~is_work], graph.timing
    happens = np.zeros(len(graph.calls), dtype=np.bool_)
    happens[called] = True
    waits, polled = (one.where(happens[one.call]) for one in (timing.waits, timing.polled))
    awaited = (
        graph.producers[works].ravel(),
        graph.room[works],
        timing.engine[works],
        waits.work,
        polled.work,
    )
    work = _kept(len(graph.rows), works, *awaited)
    followed = (graph.calls.before[called], graph.calls.own_before[called], graph.launched_by[works])
    call = _kept(len(graph.calls), called, *followed)
    place[is_work], place[~is_work] = work.now[works], call.now[called]
    found = replace(
        graph,
        rows=_rows(graph.rows, work, works),
        calls=_calls(graph.calls, call),
        launched_by=call.now[graph.launched_by[work.place]],
        within_ns=graph.within_ns[work.place],
        anchor=int(work.now[graph.anchor]),
        producers=work.now[graph.producers[work.place]],
        room=work.now[graph.room[work.place]],
        feeds_host=graph.feeds_host[work.place],
        events=place * 3 + graph.events % 3,
        timing=_timing(replace(timing, waits=waits, polled=polled), work, call),
        pauses=_pauses(graph.pauses, call),
    )
    return _subject(subject, found, work), found


@dataclass(frozen=True, slots=True)
class _Kept:
    """Places that are kept, in order, and where each place stands `now`: -1 where it is gone, and for -1."""

    place: IntArray
    now: IntArray

    def of(self, places: IntArray) -> IntArray:
        """Where those of some places stand that are kept."""
        now = self.now[places]
        result: IntArray = now[now != NONE]
        return result


def _kept(count: int, *named: IntArray) -> _Kept:
    mask = np.zeros(count + 1, dtype=np.bool_)
    for places in named:
        mask[places] = True
    mask[NONE] = False
    return _Kept(np.flatnonzero(mask), np.where(mask, np.cumsum(mask) - 1, NONE).astype(PLACE))


def _rows(rows: Activities, work: _Kept, happens: IntArray) -> Activities:
    """Work that does not happen is kept for its end alone: what it was part of is not there whole."""
    other = np.ones(len(work.place), dtype=np.bool_)
    other[work.now[happens]] = False
    found = {name: getattr(rows, name)[work.place] for name in Activities.__slots__}
    nothing = {"bucket": Bucket.COPY, "key": COPY_KINDS.index("memset"), "source": Source.COPY, "name": NONE}
    for name, none in nothing.items():
        found[name][other] = none
    return Activities(**found)


def _calls(calls: HostCalls, call: _Kept) -> HostCalls:
    start, end, thread, kind, row, before, own_before, pause = (
        getattr(calls, name)[call.place] for name in HostCalls.__slots__
    )
    return HostCalls(start, end, thread, kind, row, call.now[before], call.now[own_before], pause)


def _timing(timing: Timing, work: _Kept, call: _Kept) -> Timing:
    return Timing(
        duration_ns=timing.duration_ns[work.place],
        gap_ns=timing.gap_ns[work.place],
        arrival_ns=timing.arrival_ns[work.place],
        residual_ns=timing.residual_ns[work.place],
        engine=work.now[timing.engine[work.place]],
        pause_ns=timing.pause_ns[call.place],
        own_ns=timing.own_ns[call.place],
        waits=_waits(timing.waits, work, call),
        polled=_waits(timing.polled, work, call),
    )


def _waits(waits: Waits, work: _Kept, call: _Kept) -> Waits:
    return Waits(call.now[waits.call], work.now[waits.work], waits.after_ns)


def _pauses(pauses: Pauses, call: _Kept) -> Pauses:
    named = {name: ns[call.place] for name, ns in pauses.named_ns.items()}
    profiler_ns, in_call_ns = pauses.profiler_ns[call.place], pauses.profiler_in_call_ns[call.place]
    return replace(pauses, profiler_ns=profiler_ns, named_ns=named, profiler_in_call_ns=in_call_ns)


def _subject(subject: Subject, graph: Graph, work: _Kept) -> Subject:
    return replace(
        subject,
        rank=replace(subject.rank, activities=graph.rows),
        recomputed=work.of(subject.recomputed),
        offloaded=work.of(subject.offloaded),
        resident=work.of(subject.resident),
        simt=work.of(subject.simt),
    )

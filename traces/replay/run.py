"""Run a graph with a timing: when everything would happen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traces.account.host_calls import NONE
from traces.columns import NULL, IntArray
from traces.replay.graph import BEGIN, WORK, Graph, Timing


@dataclass(frozen=True, slots=True)
class Replayed:
    """When each activity started and ended, shape (n,), in ns."""

    start_ns: IntArray
    end_ns: IntArray


def replay(graph: Graph, timing: Timing) -> Replayed:
    """Everything as early as its constraints allow. The graph's own timing gives back the recording."""
    start, end = graph.rows.start_ns.tolist(), graph.rows.end_ns.tolist()
    begun, back = graph.calls.start_ns.tolist(), graph.calls.end_ns.tolist()
    within, anchor = graph.within_ns.tolist(), graph.anchor
    launched_by, producers = graph.launched_by.tolist(), graph.producers
    before, own_before = graph.calls.before.tolist(), graph.calls.own_before.tolist()
    duration, gap, arrival = timing.duration_ns.tolist(), timing.gap_ns.tolist(), timing.arrival_ns.tolist()
    residual, pause, own = timing.residual_ns.tolist(), timing.pause_ns.tolist(), timing.own_ns.tolist()
    engine, waits, polled = timing.engine.tolist(), timing.waits, timing.polled
    room, launched = graph.room.tolist(), [NULL] * len(start)
    for code in graph.events:
        place, event = divmod(code, 3)
        if event == WORK:
            at = free = NULL
            if (call := launched_by[place]) != NONE:
                inside = within[place]
                free = back[call] if inside < 0 else begun[call] + min(inside, own[call])
                at = free + arrival[place]
            launched[place] = free
            for producer in producers[place]:
                free = max(free, end[producer])
                if (ready := end[producer] + gap[place]) > at:
                    at = ready
            if (holder := room[place]) != NONE and launched[holder] <= free:
                at = max(at, end[holder] + gap[place])
            if (copy := engine[place]) != NONE and (ready := end[copy] + gap[place]) > at:
                at = ready
            if at == NULL:  # neither launch nor producer is known
                at = start[place]
            if place == anchor:
                at = start[place]
            else:
                start[place] = at = at + residual[place]
            end[place] = at + duration[place]
        elif event == BEGIN:
            if (previous := before[place]) == NONE:
                continue
            at = back[previous] + pause[place]
            if (own_previous := own_before[place]) != NONE and back[own_previous] > at:
                at = back[own_previous]
            for work, after in polled[place]:
                if (ready := end[work] + after) > at:
                    at = ready
            begun[place] = at
        else:
            at = begun[place] + own[place]
            for work, after in waits[place]:
                if (ready := end[work] + after) > at:
                    at = ready
            back[place] = at
    return Replayed(np.array(start, dtype=np.int64), np.array(end, dtype=np.int64))

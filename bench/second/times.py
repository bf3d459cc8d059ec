"""What either simulator says of a run, in one form: when each call and all its GPU work ran, by thread."""

from __future__ import annotations

from bench.second.simulator import OneRank
from bench.simulate.happened import Executed
from bench.simulate.host_program import Operation

Times = dict[str, list[tuple[Operation, int, int, list[tuple[int | None, int | None]]]]]


def by_the_engine(done: Executed) -> Times:
    """Calls of the first simulator, each with its work."""
    works: dict[int, list[tuple[int | None, int | None]]] = {}
    for activity in done.activities:
        works.setdefault(activity.call, []).append((activity.start_ns, activity.end_ns))
    times: Times = {}
    for place, call in enumerate(done.calls):
        told = (call.operation, call.start_ns, call.end_ns, works.get(place, []))
        times.setdefault(call.thread, []).append(told)
    return times


def by_the_second(done: OneRank) -> Times:
    """The same of the second."""
    works: dict[tuple[str, int], list[tuple[int | None, int | None]]] = {}
    for piece in done.pieces:
        works.setdefault((piece.thread, piece.call), []).append((piece.start_ns, piece.end_ns))
    return {
        thread: [
            (call.operation, call.start_ns, call.end_ns, works.get((thread, place), []))
            for place, call in enumerate(calls)
        ]
        for thread, calls in done.calls.items()
        if calls
    }

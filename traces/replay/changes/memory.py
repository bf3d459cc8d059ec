"""Less to pay for memory: recompute dropped or narrowed, allocator calls gone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from traces.account.calls import CallKind
from traces.columns import BoolArray, IntArray
from traces.replay.changes.change import Draft, Recorded
from traces.replay.graph import Graph, Timing
from traces.replay.handicaps import without_activities, without_allocator
from traces.replay.host import is_kind

CHEAP: Final = ("norm", "activation", "quantize")
"""Classes of what selective recompute runs again at little cost: norms and activations."""


def memory_drafts(recorded: Recorded) -> Iterator[Draft]:
    """`recompute_dropped`: none at all; `recompute_narrowed`: all but norms and activations. `no_retries`."""
    again = _mask(recorded)
    if again.any():
        cheap = np.array([one.class_ in CHEAP for one in recorded.classes], dtype=np.bool_)
        narrow = again & ~cheap
        yield _without("recompute_dropped", recorded, again, again)
        if narrow.any() and (again & cheap).any():
            yield _without("recompute_narrowed", recorded, narrow, again)
    calls = recorded.graph.calls
    allocating = is_kind(calls, CallKind.FREE, CallKind.ALLOCATE)
    if allocating.any():

        def gone(timing: Timing) -> Timing:
            return without_allocator(recorded.graph, timing, allocating & _later(recorded))

        yield Draft("no_retries", {"memory": ("allocator",)}, gone)


def _mask(recorded: Recorded) -> BoolArray:
    mask = np.zeros(len(recorded.rows), dtype=np.bool_)
    mask[recorded.subject.recomputed] = True
    return mask


def _without(kind: str, recorded: Recorded, least: BoolArray, most: BoolArray) -> Draft:
    """At least and at most what goes; it takes its launches, collectives and synchronisations along.

    Pessimistic: the pause before each stretch of it stays.
    """
    graph = recorded.graph

    def high(timing: Timing) -> Timing:
        return without_activities(graph, timing, most)

    def low(timing: Timing) -> Timing:
        gone = without_activities(graph, timing, least)
        gone.pause_ns[_first_gone(graph, timing, gone)] = timing.pause_ns[_first_gone(graph, timing, gone)]
        return gone

    return Draft(kind, {"memory": ("recompute",)}, low, high)


def _first_gone(graph: Graph, before: Timing, after: Timing) -> IntArray:
    """Calls that go while the one before them stays."""
    gone = (after.own_ns == 0) & (before.own_ns > 0)
    previous = graph.calls.before
    return np.flatnonzero(gone & ~gone[np.maximum(previous, 0)])


def _later(recorded: Recorded) -> BoolArray:
    """Calls in steps after the first recorded: that one fills the cache, as it should. Without steps, all."""
    used = recorded.subject.steps.used
    calls, rows = recorded.graph.calls, recorded.rows
    later = [step.start_ns for step in used if step.index > 0]
    if not used or not later:
        return np.full(len(calls), not used, dtype=np.bool_)
    by = recorded.graph.launched_by
    launched = by[(rows.start_ns >= later[0]) & (by >= 0)]
    first = int(launched.min()) if len(launched) else 0
    return np.arange(len(calls)) >= first

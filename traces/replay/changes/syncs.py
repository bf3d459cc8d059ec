"""Token counts that stay on the GPU: the copy to the host and the wait for it are gone."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from traces.account.calls import CallKind
from traces.account.host_calls import NONE, is_kind
from traces.columns import BoolArray, IntArray
from traces.replay.changes.change import Draft, Recorded
from traces.replay.changes.exchanges import EP_KINDS, HEAVY, of_kinds
from traces.replay.graph import Timing
from traces.replay.waiting import Waits
from traces.replay.without import without_activities


def sync_drafts(recorded: Recorded) -> Iterator[Draft]:
    """`token_counts_stay`: the pessimistic end keeps copies, launches and calls; only the waiting is gone."""
    graph = recorded.graph
    reading, polling = reads_counts(recorded)
    if not (reading.any() or polling.any()):
        return
    copies, waits = np.zeros(len(graph.rows), dtype=np.bool_), graph.timing.waits
    copies[waits.work[reading[waits.call]]] = True
    copies &= graph.feeds_host

    def low(timing: Timing) -> Timing:
        return replace(timing, waits=timing.waits.without(reading), polled=Waits.of(()))

    def high(timing: Timing) -> Timing:
        free = replace(
            low(timing),
            own_ns=np.where(reading, 0, timing.own_ns),
            pause_ns=np.where(reading, 0, timing.pause_ns),
            engine=np.where(copies, NONE, timing.engine),
        )
        return without_activities(graph, free, copies)

    acts_on = {"host_overhead": ("token_count_sync", "launch", "python")}
    yield Draft("token_counts_stay", acts_on, low, high)


def reads_counts(recorded: Recorded) -> tuple[BoolArray, BoolArray]:
    """Calls that wait for token counts, masks of shape (m,): for a small copy of them, and by polling.

    Token counts are read beside an exchange: between it and the call no GEMM and no attention is launched.
    """
    graph = recorded.graph
    near = _near_exchange(recorded)
    calls, timing = graph.calls, graph.timing
    reading = is_kind(calls, CallKind.SYNC) & near & timing.waits.holding(graph.feeds_host, len(calls))
    polling = timing.polled.holding(np.ones(len(graph.rows), dtype=np.bool_), len(calls))
    return reading, polling


def _near_exchange(recorded: Recorded) -> BoolArray:
    """Calls with an expert exchange nearer than any GEMM or attention, before or after, shape (m,)."""
    graph = recorded.graph
    heavy = np.array([one.class_ in HEAVY for one in recorded.classes], dtype=np.bool_)
    expert = of_kinds(recorded, EP_KINDS)
    calls = np.arange(len(graph.calls))
    of_heavy, of_expert = (_launching(graph.launched_by, which) for which in (heavy, expert))
    before = _nearest(of_expert, calls, -1) > _nearest(of_heavy, calls, -1)
    after = -_nearest(of_expert, calls, 1) > -_nearest(of_heavy, calls, 1)
    result: BoolArray = before | after
    return result


def _launching(launched_by: IntArray, which: BoolArray) -> IntArray:
    return np.sort(launched_by[which & (launched_by != NONE)])


def _nearest(some: IntArray, calls: IntArray, way: int) -> IntArray:
    """The nearest of some calls before (-1) or after (1) each; far out where there is none."""
    far = len(calls) + 1
    padded = np.concatenate(([-far], some, [far]))
    place = np.searchsorted(padded, calls, side="right")
    return padded[place - 1] if way < 0 else padded[place]

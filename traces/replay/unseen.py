"""The most of the host's time that may be waiting for GPU work though no call is known to wait for it.

Whoever waits goes on just after what it waited for has ended, so time that ends at any other moment was the
host's own; some of what is left ends there by chance. A host that asks again and again whether work is done
waits as well.
"""

from typing import Final

import numpy as np

from traces.account.host_calls import NONE, HostCalls
from traces.columns import NULL, PLACE, BoolArray, IntArray
from traces.intervals import Spans, covered_ns
from traces.limits import Limit
from traces.replay.graph import Graph
from traces.timeline import Activities, RankTimeline

SOON: Final = Limit(
    20_000, "ns", "measured: waiting calls of real recordings return 2 to 18 us after the work they wait for"
)
_ASKING: Final = ("EventQuery", "StreamQuery")


def may_wait_ns(rank: RankTimeline, graph: Graph, windows: Spans) -> int:
    """The host's time in some windows that may be waiting unseen: pauses, and calls not known to wait."""
    calls, since_ns = graph.calls, graph.calls.start_ns - graph.timing.pause_ns
    known = np.zeros(len(calls), dtype=np.bool_)
    known[graph.timing.waits.call] = True
    asks = _asks(rank, calls)
    paused = asks | _follows(graph.rows, since_ns, calls.start_ns)
    within = asks | (_follows(graph.rows, calls.start_ns, calls.end_ns) & ~known)
    waiting = covered_ns(since_ns, calls.start_ns, windows)[paused].sum()
    return int(waiting + covered_ns(calls.start_ns, calls.end_ns, windows)[within].sum())


def _asks(rank: RankTimeline, calls: HostCalls) -> BoolArray:
    """Calls that ask whether work is done directly after another that does, a mask of shape (m,)."""
    names = rank.columns.call_names
    asking = np.array([*(any(word in name for word in _ASKING) for name in names), False], dtype=np.bool_)
    mine = asking[rank.columns.calls.name[calls.row]]
    result: BoolArray = mine & (calls.before != NONE)
    result[result] = mine[calls.before[result]]
    return result


def _follows(rows: Activities, begins_ns: IntArray, ends_ns: IntArray) -> BoolArray:
    """Which stretches of time end just after work that ended in them and was launched before them."""
    by_end = np.argsort(rows.end_ns, kind="stable").astype(PLACE)
    launched_ns = np.where(rows.launch_ns == NULL, rows.start_ns, rows.launch_ns)[by_end]
    ended_ns = rows.end_ns[by_end]
    last = np.searchsorted(ended_ns, ends_ns, side="right") - 1
    found: BoolArray = (last >= 0) & (ended_ns[last] > np.maximum(begins_ns, ends_ns - SOON.value))
    found &= launched_ns[last] < begins_ns
    return found

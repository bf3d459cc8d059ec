"""Where the host polls for a control kernel's result, with no call that would say so.

DeepEP's host waits for its token counts that way: until `notify_dispatch` has ended it makes no call. Where
that holds for every one of them, they are polled, even where the host comes late by itself. Another control
kernel is polled where in most layers the next call comes shortly after its end, and that time varies less
than the whole pause before the call; where the pause varies less, the host was late by itself. Once a kernel
is polled, every occurrence is; what the host does for longer than a poll's return was its own.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from traces.columns import IntArray
from traces.limits import Limit
from traces.names.kernels import is_polled_kernel
from traces.names.kinds import COMM_KINDS
from traces.replay.host import NONE, HostCalls
from traces.replay.waits import Wait
from traces.timeline import Activities, Bucket, RankTimeline

SPIN: Final = Limit(
    200_000, "ns", "ours: a host that polls goes on within microseconds; Python between takes tens of them"
)
SPREAD: Final = Limit(
    0.75, "of the median", "ours: the return from a poll takes about the same time in every layer"
)
SHORT_SPREAD: Final = Limit(10_000, "ns around the median", "ours: the least that the spread is taken for")
LEAST: Final = Limit(3, "control kernels", "ours: fewer follow a late host by coincidence")
STEADIER: Final = Limit(
    2, "times", "ours: in simulated polls 50 times and more, beside a host that is late 1.0"
)
SPINS: Final = Limit(
    0.8, "fraction of the control kernels", "ours: a poll comes with every layer, a coincidence does not"
)


def find_polls(rank: RankTimeline, calls: HostCalls) -> tuple[list[tuple[Wait, ...]], IntArray]:
    """What the begin of each call waits for, and the pause before each, shape (m,), without that."""
    rows = rank.activities
    polled: list[tuple[Wait, ...]] = [()] * len(calls)
    pause = calls.pause_ns.copy()
    usual_pause_ns = int(np.median(pause)) if len(pause) else 0
    control = np.flatnonzero(
        (rows.bucket == Bucket.COMM) & (rows.key == COMM_KINDS.index("ep_control")) & (rows.call >= 0)
    )
    if len(calls):  # what ended where no calls are known could not be followed by one
        ended = rows.end_ns[control]
        control = control[(ended > calls.start_ns[0]) & (ended <= calls.end_ns.max())]
    for name in sorted(set(rows.name[control].tolist())):
        works = control[rows.name[control] == name]
        found = [one for work in works.tolist() if (one := (work, *_next_call(rows, calls, work)))[1] != NONE]
        if len(found) < LEAST.value:
            continue
        _, by, after = np.array(found, dtype=np.int64).T
        name_says = is_polled_kernel(rank.columns.kernel_names[name])
        known = name_says and not _some_call_within(rows, calls, works)
        if not known and not _looks_polled(after, calls.pause_ns[by], len(works)):
            continue
        for work, call, after_ns in found:
            late = after_ns >= SPIN.value
            # of several control kernels in a row the host waits for the last
            wait = (work, int(after.min()) if late else after_ns)
            polled[call] = (min((*polled[call], wait), key=lambda one: one[1]),)
            if not late:  # the rest is the poll's return
                pause[call] = min(int(pause[call]), after_ns, usual_pause_ns)
    return polled, pause


def _looks_polled(after_ns: IntArray, pause_ns: IntArray, count: int) -> bool:
    """Whether the next call comes equally soon after most of `count` kernels, and the pause before it varies.

    `after_ns`, `pause_ns`: of the kernels that a call follows, shape (k,).
    """
    usual = float(np.median(after_ns))
    hits = np.abs(after_ns - usual) <= max(SPREAD.value * usual, SHORT_SPREAD.value)
    is_late = _scatter(pause_ns) < STEADIER.value * _scatter(after_ns)
    return usual < SPIN.value and not is_late and int(hits.sum()) >= SPINS.value * count


def _some_call_within(rows: Activities, calls: HostCalls, works: IntArray) -> bool:
    """Whether the host made any call between the launch of some work and its end."""
    next_call = np.searchsorted(calls.start_ns, rows.launch_end_ns[works], side="left")
    begins_ns = np.append(calls.start_ns, rows.end_ns.max())[next_call]
    return bool((begins_ns < rows.end_ns[works]).any())


def _scatter(values_ns: IntArray) -> float:
    """How far values lie from their median, on average."""
    return float(np.abs(values_ns - np.median(values_ns)).mean())


def _next_call(rows: Activities, calls: HostCalls, work: int) -> tuple[int, int]:
    """The first call after some work's end, where none was made while it ended; and how long after."""
    end = int(rows.end_ns[work])
    first = int(np.searchsorted(calls.start_ns, end, side="left"))
    if first >= len(calls):
        return NONE, 0
    before = int(calls.before[first])
    if before == NONE or calls.end_ns[before] >= end:
        return NONE, 0
    return first, int(calls.start_ns[first]) - end

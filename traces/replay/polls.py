"""Where the host polls for a control kernel's result, with no call that would say so.

DeepEP's host reads token counts that way: in most layers the next call comes shortly after the end of the
same control kernel, and no call of the thread was made while it ended. That time then varies less than the
whole pause before the call; where the pause varies less, the host was late by itself.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from traces.columns import IntArray
from traces.limits import Limit
from traces.names.kinds import COMM_KINDS
from traces.replay.host import NONE, HostCalls
from traces.replay.waits import Wait
from traces.timeline import Activities, Bucket

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


def find_polls(rows: Activities, calls: HostCalls) -> tuple[list[tuple[Wait, ...]], IntArray]:
    """What the begin of each call waits for, and the pause before each, shape (m,), without that."""
    polled: list[tuple[Wait, ...]] = [()] * len(calls)
    pause = calls.pause_ns.copy()
    usual_ns = int(np.median(pause)) if len(pause) else 0
    control = np.flatnonzero(
        (rows.bucket == Bucket.COMM) & (rows.key == COMM_KINDS.index("ep_control")) & (rows.call >= 0)
    )
    if len(calls):  # what ended where no calls are known could not be followed by one
        ended = rows.end_ns[control]
        control = control[(ended > calls.start_ns[0]) & (ended <= calls.end_ns.max())]
    for name in sorted(set(rows.name[control].tolist())):
        works = control[rows.name[control] == name]
        found = [one for work in works.tolist() if (one := (work, *_next_call(rows, calls, work)))[1] != NONE]
        afters = np.array([after for *_, after in found])
        usual = float(np.median(afters)) if len(found) else 0.0
        near = max(SPREAD.value * usual, SHORT_SPREAD.value)
        hits = [one for one in found if abs(one[2] - usual) <= near]
        pauses = calls.pause_ns[[call for _, call, _ in found]] if found else afters
        is_late = len(found) > 0 and _scatter(pauses) < STEADIER.value * _scatter(afters)
        if usual < SPIN.value and not is_late and len(hits) >= max(LEAST.value, SPINS.value * len(works)):
            for work, call, after in hits:
                # of several control kernels in a row the host waits for the last
                polled[call] = (min((*polled[call], (work, after)), key=lambda one: one[1]),)
                pause[call] = min(int(pause[call]), after, usual_ns)  # the rest is the poll's return
    return polled, pause


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

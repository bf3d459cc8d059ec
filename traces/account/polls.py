"""Where the host polls for a control kernel's result, with no call that would say so.

DeepEP's host waits for its token counts that way: until `notify_dispatch` has ended it makes no call. Where
that holds for every one of them, they are polled, even where the host comes late by itself. Another control
kernel is polled where in most layers the next call comes shortly after its end, and that time varies less
than the whole pause before the call; where the pause varies less, the host was late by itself. Once a kernel
is polled, every occurrence is; what the host does for longer than a poll's return was its own.
"""

from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from traces.account.calls import POLL
from traces.account.host_calls import NONE, HostCalls, host_calls
from traces.columns import NULL, Calls, IntArray
from traces.limits import Limit
from traces.names.kernels import is_polled_kernel
from traces.names.kinds import COMM_KINDS
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


class Poll(NamedTuple):
    """A call that came when the host had polled for a kernel; places in the activities and in the calls.

    `after_ns`: how long after the kernel's end, `soonest_ns`: the least of all polls for such kernels.
    """

    work: int
    call: int
    after_ns: int
    soonest_ns: int

    @property
    def is_late(self) -> bool:
        """Whether the host was busy with something else when the kernel ended."""
        return self.after_ns >= SPIN.value


def find_polls(rank: RankTimeline, calls: HostCalls) -> list[Poll]:
    """Every poll in some calls of a rank; of several control kernels in a row the host waits for each."""
    rows = rank.activities
    control = np.flatnonzero(
        (rows.bucket == Bucket.COMM) & (rows.key == COMM_KINDS.index("ep_control")) & (rows.call >= 0)
    )
    if len(calls):  # what ended where no calls are known could not be followed by one
        ended = rows.end_ns[control]
        control = control[(ended > calls.start_ns[0]) & (ended <= calls.end_ns.max())]
    polls: list[Poll] = []
    for name in sorted(set(rows.name[control].tolist())):
        works = control[rows.name[control] == name]
        found = [one for work in works.tolist() if (one := (work, *_next_call(rows, calls, work)))[1] != NONE]
        if len(found) < LEAST.value:
            continue
        _, by, after = np.array(found, dtype=np.int64).T
        name_says = is_polled_kernel(rank.columns.kernel_names[name])
        known = name_says and not _some_call_within(rows, calls, works)
        if known or _looks_polled(after, calls.pause_ns[by], len(works)):
            polls += [Poll(*one, int(after.min())) for one in found]
    return polls


def with_poll_calls(rank: RankTimeline) -> RankTimeline:
    """The rank with each poll as a call that synchronises, from the call before it to the kernel's end."""
    rows, columns = rank.activities, rank.columns
    if not (rows.key[rows.bucket == Bucket.COMM] == COMM_KINDS.index("ep_control")).any():
        return rank
    host = host_calls(rank, (int(rows.start_ns.min()) - 1, int(rows.end_ns.max())))
    last = {poll.call: poll.work for poll in sorted(find_polls(rank, host), key=lambda one: -one.after_ns)}
    call, work = np.array(list(last.items()), dtype=np.int64).reshape(-1, 2).T
    calls, nothing = columns.calls, np.full(len(call), NULL, dtype=np.int64)
    more = (
        host.end_ns[host.before[call]],
        rows.end_ns[work],
        host.thread[call],
        nothing,
        np.full(len(call), len(columns.call_names), dtype=np.int64),
    )
    fields = (getattr(calls, field) for field in Calls.__slots__)
    polled = Calls(*(np.concatenate(pair) for pair in zip(fields, more, strict=True)))
    names = (*columns.call_names, POLL)
    return replace(rank, columns=replace(columns, calls=polled, call_names=names))


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
    next_call = np.searchsorted(calls.start_ns, rows.take(works).launch_end_ns, side="left")
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

"""The most that each overhead can cost a rank, by the partition of its windows alone: no replay is
needed.

communication: the time without compute, or its own if less, and what compute is stretched beside
it. host_overhead: what the account lays on the host; without an account the time without compute.
memory: recomputed stretches with the waits before them, large copies between GPU and host, and
allocator starvation; without an account the time without compute in its place, where any allocator
call was made. compute: what kernels with fewer blocks than SMs, of the largest GPU where theirs is
unknown, would not take if they filled them, and matrix work in a faster format; all of it where
peak rates are unknown. Where a replay is proven, its cost is the better figure: one overhead can
hide behind another.
"""

from typing import Final

import numpy as np

from traces.account.account import Account
from traces.account.calls import CallKind, call_kinds
from traces.account.host import LARGE
from traces.account.pieces import NO_KERNEL, compute_gaps
from traces.arrays import BoolArray, IntArray, ints
from traces.columns import COPY_KINDS, NULL
from traces.frozen import frozen
from traces.intervals import Spans, instants_in, instants_of, intersect, join, ns_in, union
from traces.measure.budget import WindowBudget
from traces.missing import Missing
from traces.names.gpus import largest_sm_count
from traces.replay.edits import Subject
from traces.replay.without import stretched_ns
from traces.timeline import Activities, RankTimeline

_HOST_COPIES: Final = tuple(
    code for code, kind in enumerate(COPY_KINDS) if kind.endswith(("h2d", "d2h"))
)


@frozen
class Bounds:
    """The most each wall can cost, in ns of the windows; None where the trace does not bound it.

    Graphs recorded whole hide communication, recompute and grids; memory is not bounded either
    where it is unknown what is computed a second time, compute not without launch shapes.
    `communication_seen`: the most that communication outside such graphs can cost.
    """

    communication: int | None
    host_overhead: int | None
    memory: int | None
    compute: int | None
    communication_seen: int | None = None

    def of(self, wall: str) -> int | None:
        return getattr(self, wall)


def measure_bounds(
    subject: Subject, budget: WindowBudget, account: Account | Missing, unseen_ns: int | None
) -> Bounds:
    """Bound the costs of one rank. `unseen_ns`: the most of recompute that is not seen, None if
    unbounded.
    """
    rows, windows = subject.rank.activities, subject.steps.windows
    absent_ns = budget.window_ns - budget.compute_ns
    running = instants_in(windows, rows, rows.is_comm)
    more_ns = stretched_ns(ns_in(rows, running), max(0.0, subject.stretch_frac or 0.0))
    stretched = _first_parts(rows, np.where(subject.crowded(), more_ns, 0), windows)
    seen_ns = min(absent_ns + stretched.total_ns, join(running, stretched).total_ns)
    host_ns = absent_ns if isinstance(account, Missing) else account.host_most_ns
    if rows.is_replay.any():  # of graphs recorded whole nothing else is bounded
        return Bounds(None, host_ns, None, None, seen_ns)
    memory_ns = None
    if unseen_ns is not None:
        memory_ns = _memory_ns(subject, account, absent_ns, unseen_ns)
    return Bounds(seen_ns, host_ns, memory_ns, _compute_ns(subject, rows, windows), seen_ns)


def _memory_ns(subject: Subject, account: Account | Missing, absent_ns: int, unseen_ns: int) -> int:
    rank, windows = subject.rank, subject.steps.windows
    rows, again = rank.activities, subject.mask(subject.recomputed)
    held = instants_of(rows, again | _large_copies(subject))
    gaps = compute_gaps(rows, windows)
    before = instants_of(gaps, (gaps.kernel != NO_KERNEL) & again[gaps.kernel])
    held_ns = intersect(join(held, before), windows).total_ns + unseen_ns
    return min(windows.total_ns, held_ns + _allocator_ns(rank, account, absent_ns))


def _allocator_ns(rank: RankTimeline, account: Account | Missing, absent_ns: int) -> int:
    """What late allocator calls can cost; without an account all time without compute, if there are
    any.
    """
    if not isinstance(account, Missing):
        return account.launch_starved_ns.get("allocator", 0)
    seen = call_kinds(rank.columns.call_names)[rank.calls.name]
    none = len(seen) and not np.isin(seen, (CallKind.FREE, CallKind.ALLOCATE)).any()
    if none:
        return 0
    return absent_ns


def _large_copies(subject: Subject) -> BoolArray:
    """Copies between GPU and host that are no small reads, shape (n,): offload is among them."""
    rows = subject.rank.activities
    at = np.flatnonzero(rows.is_copy & np.isin(rows.key, _HOST_COPIES))
    size = subject.rank.copy_bytes(at)
    return subject.mask(at[(size == NULL) | (size >= LARGE.value)])


def _compute_ns(subject: Subject, rows: Activities, windows: Spans) -> int | None:
    if not (subject.rank.blocks != NULL).any():
        return None
    filled = subject.filled_share(subject.sm_count or largest_sm_count())
    share = filled * subject.tensor_share() * subject.narrow_share(least=True)
    within_ns = ns_in(rows, windows)
    return _first_parts(rows, within_ns - ints(within_ns * share), windows).total_ns


def _first_parts(rows: Activities, length_ns: IntArray, windows: Spans) -> Spans:
    """The first part of activities, no less than any chain of them, one after another, can lose.

    Only what lies in a window has a length; what begins before it begins there with it.
    """
    lasting = length_ns > 0
    next_window = np.searchsorted(windows.end_ns, rows.start_ns[lasting], "right")
    begin_ns = np.maximum(rows.start_ns[lasting], windows.start_ns[next_window])
    return intersect(union(begin_ns, begin_ns + length_ns[lasting]), windows)

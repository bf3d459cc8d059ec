"""Overheads taken away: edits of a graph's timing, as the definition of each wall says.

communication: its kernels take no GPU time, and compute is no longer stretched beside them;
launches stay. host_overhead: pauses, launch calls, the overhead of synchronising calls and arrival
take no time, and small copies that only feed a waiting call go. Allocator calls, gaps between
kernels, the profiler's own work and every GPU dependency stay. memory: recomputed stretches are
gone whole, offload copies and copies of what lives in host memory with their calls, and allocator
calls. What else the host did between these copies stays. compute: kernels with fewer blocks than
SMs take blocks / SMs of their time, FP32 GEMMs without tensor cores the TF32 share of it.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from traces.account.calls import NONE, CallKind, is_kind
from traces.account.inferred import UNEXPLAINED
from traces.arrays import BoolArray, FloatArray, IntArray, ints, shifted
from traces.groups import mask_of, next_at, previous_at
from traces.replay.graph import Graph, Timing


def without_unexplained(timing: Timing) -> Timing:
    """The timing without long waits that no constraint explains.

    Kept, they would hold work back in every edit as the recording did: a delay that is a constant
    explains nothing. Without them the window comes back nearly the same where what matters is
    understood.
    """
    explained_ns = np.where(timing.residual_ns > UNEXPLAINED.value, 0, timing.residual_ns)
    return replace(timing, residual_ns=explained_ns)


def zeroed(timing: Timing, which: BoolArray, *names: str) -> Timing:
    """Some of its times are nothing where a mask of their shape holds."""
    times: dict[str, Any] = {name: np.where(which, 0, getattr(timing, name)) for name in names}
    return replace(timing, **times)


def without_work(timing: Timing, which: BoolArray) -> Timing:
    """GPU work, a mask of shape (n,), takes no time; it is still launched and still orders what
    follows.
    """
    return zeroed(timing, which, "duration_ns")


def stretched_ns(beside_ns: IntArray, stretch_frac: float) -> IntArray:
    """The part of time beside communication, shape (n,), that is there only because of it."""
    return ints(beside_ns * (stretch_frac / (1 + stretch_frac)))


def without_stretch(timing: Timing, beside_ns: IntArray, stretch_frac: float) -> Timing:
    """The part of each activity beside communication, shape (n,), is no longer stretched by so
    much.
    """
    saved = stretched_ns(beside_ns, stretch_frac)
    return replace(timing, duration_ns=np.maximum(timing.duration_ns - np.maximum(saved, 0), 0))


def without_host(graph: Graph, timing: Timing, pause_ns: IntArray, calls: BoolArray) -> Timing:
    """The host's own time is gone in some calls, a mask of shape (m,); pauses before calls are
    `pause_ns`.

    Where a small copy only feeds a waiting call that is gone, it takes no time, and the call waits
    for what produced the copied value. A call that is left waits as before; one that is gone still
    waits for its GPU work, but returns with its end. The profiler's own work within a call stays.
    """
    gone = calls & ~is_kind(graph.calls, CallKind.FREE, CallKind.ALLOCATE)
    waits, polled = timing.waits, timing.polled
    syncs = gone & is_kind(graph.calls, CallKind.SYNC)
    vanished = mask_of(waits.work[syncs[waits.call]], len(timing.duration_ns)) & graph.feeds_host
    if vanished.any():
        timing = zeroed(timing, vanished, "duration_ns", "gap_ns", "residual_ns")
        timing = replace(timing, engine=np.where(vanished, NONE, timing.engine))
    shorter, before_ns = (pause_ns < timing.pause_ns)[polled.call], pause_ns[polled.call]
    return replace(
        timing,
        pause_ns=np.minimum(pause_ns, timing.pause_ns),
        own_ns=np.where(
            gone, np.minimum(timing.own_ns, graph.pauses.profiler_in_call_ns), timing.own_ns
        ),
        waits=waits.sooner(gone[waits.call], 0),
        polled=polled.sooner(shorter, before_ns),
    )


def without_arrival(timing: Timing) -> Timing:
    """Launched work arrives at once."""
    return replace(timing, arrival_ns=np.zeros_like(timing.arrival_ns))


def without_activities(graph: Graph, timing: Timing, which: BoolArray) -> Timing:
    """Activities are gone whole, a mask of shape (n,), with their launches and what the host did
    around them.

    A call between two launches that both go, of the same thread, goes too: synchronisations, event
    records.
    """
    return _without(timing, which, _calls_of(graph, which), np.zeros_like(timing.pause_ns))


def without_copies(graph: Graph, timing: Timing, which: BoolArray) -> Timing:
    """Copies to the host and back are gone, a mask of shape (n,), with their calls.

    What their streams wait for goes too: the calls without a launch that lead up to the copy, and
    the one that follows it. The named part of the pauses before these calls stays: Adam on the CPU
    still runs.
    """
    calls = graph.calls
    launches = graph.launch_counts() > 0
    gone = launches & (graph.launch_counts(~which) == 0)
    for thread in set(calls.thread[gone].tolist()):
        mine = np.flatnonzero(calls.thread == thread)
        tells, copies = (calls.kind[mine] == CallKind.OTHER) & ~launches[mine], gone[mine]
        leads = tells & np.append(copies, False)[next_at(~tells)[:-1]]
        gone[mine[leads | (tells & shifted(copies))]] = True
    return _without(timing, which, gone, graph.pauses.said_ns)


def _without(timing: Timing, which: BoolArray, calls: BoolArray, kept_ns: IntArray) -> Timing:
    """Activities, a mask of shape (n,), and calls, one of shape (m,), take no time and wait for
    nothing.
    """
    left = zeroed(without_waits(timing, calls), calls, "own_ns")
    left = zeroed(left, which, "duration_ns", "gap_ns", "arrival_ns", "residual_ns")
    return replace(
        left, pause_ns=np.where(calls, np.minimum(left.pause_ns, kept_ns), left.pause_ns)
    )


def without_waits(timing: Timing, calls: BoolArray) -> Timing:
    """Calls, a mask of shape (m,), wait for nothing, and neither do their begins."""
    return replace(timing, waits=timing.waits.without(calls), polled=timing.polled.without(calls))


def _calls_of(graph: Graph, which: BoolArray) -> BoolArray:
    """Calls that launched only what goes, and those between two of them without a launch of their
    own.
    """
    stays = graph.launch_counts(~which) > 0
    gone = (graph.launch_counts() > 0) & ~stays
    for thread in set(graph.calls.thread.tolist()):
        mine = np.flatnonzero(graph.calls.thread == thread)
        goes, marked = np.append(gone[mine], False), gone[mine] | stays[mine]
        between = goes[previous_at(marked)[:-1]] & goes[next_at(marked)[:-1]]
        gone[mine[~marked & between]] = True
    return gone


def without_allocator(timing: Timing, calls: BoolArray) -> Timing:
    """Allocator calls, a mask of shape (m,), are gone, and nothing waits in them."""
    return replace(zeroed(timing, calls, "own_ns"), waits=timing.waits.without(calls))


def with_shares(timing: Timing, share: FloatArray) -> Timing:
    """Kernels take a share, shape (n,), of their time."""
    return replace(timing, duration_ns=ints(timing.duration_ns * share))

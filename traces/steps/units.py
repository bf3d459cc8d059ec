"""Steps that hold a unit which the others do not, a save or an evaluation, beside those with more
kernels.

Told by copies of weights to the host, by files that are written, or by what the host does in few
steps alone.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from traces.account.host import LARGE
from traces.arrays import BoolArray, IntArray, ints, last_at, order_of, sums_before
from traces.groups import passing
from traces.intervals import Spans, covered_ns, instants_of, join, spans, union
from traces.limits import FEWEST, HALF_A_WALL, MOST
from traces.names.ranges import cause_of_range, family
from traces.steps.found import Found, Step, borders_ns, used_of
from traces.steps.rules import SLOW_STEPS
from traces.timeline import RankTimeline

_HANDICAPS: Final = ("data", "gc", "host_comm", "lazy_init", "logging")
"""What every step may have more or less of: one that has more is slower, and holds no other
unit."""
_WRITES: Final = frozenset(["fsync", "fwrite", "pwrite", "pwrite64", "write", "writev"])


def mark_units(rank: RankTimeline, way: Found, steps: list[Step]) -> list[Step]:
    """Mark the used steps that copy more to the host than the usual one, or do what most others do
    not.

    What the host does has to be over half of what the step takes more than the usual one. It lies
    in the next step where the GPU has done all of its own.
    """
    used = [place for place, step in enumerate(steps) if step.dropped is None]
    # of two neither tells; of many their lengths do
    if not FEWEST.value <= len(used) < SLOW_STEPS.value:
        return steps
    begin_ns, end_ns = ints(borders_ns(used_of(steps))).T
    host_start_ns, host_end_ns = way.host_start_ns[used], way.host_end_ns[used]
    copies_more, since_ns = _copies_more(rank, host_start_ns, host_end_ns)
    saving = union(since_ns[copies_more], host_end_ns[copies_more])
    apart_ns = covered_ns(begin_ns, end_ns, join(saving, _apart(rank, host_start_ns, host_end_ns)))
    usual_ns = np.median(end_ns - begin_ns)
    result = list(steps)
    for at, place in enumerate(used):
        more_ns = MOST.value * (steps[place].length_ns - usual_ns)
        if copies_more[at] or 0 < more_ns < apart_ns[at] - np.median(np.delete(apart_ns, at)):
            result[place] = replace(steps[place], has_more=True)
    return result


def _copies_more(
    rank: RankTimeline, begin_ns: IntArray, end_ns: IntArray
) -> tuple[BoolArray, IntArray]:
    """Which steps launch more large copies to the host than the usual one, and when the first of
    each ran.
    """
    rows = rank.activities
    out = np.flatnonzero(rows.copies("memcpy_d2h"))
    out = out[rank.copy_bytes(out) >= LARGE.value]
    launch_ns = rows.take(out).launched_ns
    order = order_of(launch_ns)
    out, launch_ns = out[order], launch_ns[order]
    so_far = sums_before(rank.copy_bytes(out))
    begin, end = np.searchsorted(launch_ns, (begin_ns, end_ns))
    copied = so_far[end] - so_far[begin]
    more: BoolArray = copied > (1 + HALF_A_WALL.value) * np.median(copied)
    return more, np.append(rows.start_ns[out], 0)[begin]


def _apart(rank: RankTimeline, begin_ns: IntArray, end_ns: IntArray) -> Spans:
    """When launching threads write files, or do what they do in few of the steps; these on the
    host.
    """
    apart = spans()
    for rows, code, texts in rank.columns.named_spans():
        mine = np.flatnonzero(
            np.isin(rows.thread_gid, rank.activities.launching_threads) & (code >= 0)
        )
        step = last_at(begin_ns, rows.start_ns[mine])
        known: dict[str, int] = {}
        families = ints([known.setdefault(family(text), len(known)) for text in texts])
        few = _in_few_steps(families[code[mine]], step, len(begin_ns))
        few &= (step >= 0) & (rows.end_ns[mine] <= end_ns[step])
        few &= ~passing(lambda text: cause_of_range(text) in _HANDICAPS, texts)[code[mine]]
        apart = join(apart, instants_of(rows, mine[few]))
    calls = rank.columns.os_calls
    writes = passing(_WRITES.__contains__, calls.names)[calls.name]
    writes &= np.isin(calls.thread_gid, rank.activities.launching_threads)
    return join(apart, instants_of(calls, writes))


def _in_few_steps(kind: IntArray, step: IntArray, of: int) -> BoolArray:
    """Which spans, shape (m,), are of a kind whose spans begin in fewer than half of so many
    steps.
    """
    begins = np.zeros((int(kind.max(initial=0)) + 1, of + 1), dtype=np.bool_)
    begins[kind, step] = True  # before the first step is a place of its own, the last
    few: BoolArray = (2 * begins.sum(axis=1) < of)[kind]
    return few

"""Steps from NVTX ranges: the ones a user names, or repeated ranges with the name of a step."""

from collections import defaultdict
from dataclasses import replace
from operator import itemgetter

import numpy as np

from traces.arrays import BoolArray, IntArray, Lasting, distinct, ints, row_by_row, summed
from traces.columns import NULL
from traces.frozen import frozen
from traces.groups import mask_of
from traces.limits import MOST
from traces.names.ranges import is_step_name, step_family
from traces.steps.borders import HostOrder, found_between
from traces.steps.found import Found
from traces.steps.rules import leave_out_partial
from traces.timeline import RankTimeline


@frozen
class HostRanges(Lasting):
    """Disjoint ranges of one thread in order, shape (n,), and what they are called.

    `thread_launches` counts the kernels of the rank that this thread launched.
    """

    start_ns: IntArray
    end_ns: IntArray
    what: str
    thread_launches: int


def matching_ranges(rank: RankTimeline, wanted: BoolArray, what: str) -> HostRanges | None:
    """Ranges whose text is wanted (mask over texts), on the thread that launches most of the rank's
    work.

    Only ranges of the rank's own process; nested matches are dropped. None where nothing matches.
    """
    ranges = rank.columns.ranges
    chosen = (ranges.thread_gid != NULL) & (ranges.text >= 0) & rank.may_be_own(ranges)
    chosen[chosen] = wanted[ranges.text[chosen]]
    threads = distinct(ranges.thread_gid[chosen])
    if not len(threads):
        return None
    rows = rank.activities
    # a thread that loads data launches copies, and has ranges with a step's name too
    launches = _counts(rows.launch_thread[~rows.is_transfer], threads)
    merits = list(zip(launches, _counts(ranges.thread_gid[chosen], threads), strict=True))
    place = merits.index(max(merits))
    on_thread = chosen & (ranges.thread_gid == threads[place])
    closed_by_ns = int(ranges.end_ns.max())
    start_ns, end_ns = _outermost(
        ranges.start_ns[on_thread], ranges.end_ns[on_thread], closed_by_ns
    )
    return HostRanges(start_ns, end_ns, what, launches[place])


def step_named_ranges(rank: RankTimeline, order: HostOrder) -> HostRanges | None:
    """Ranges with a step's name that enclose at least half of the kernels; None without any.

    They must lie on a thread that launches kernels itself, and of several the one that launches
    most decides, since data loaders use step names too. One that occurs once counts where none is
    repeated. Kernels that other threads (autograd's) launch within the range count: most of a step
    may come from there.
    """
    launches_known = bool((rank.activities.launch_thread != NULL).any())
    candidates: list[tuple[tuple[bool, int, int, int], HostRanges]] = []
    for name, texts in sorted(_families(rank).items()):
        wanted = mask_of(np.array(texts), len(rank.columns.range_texts))
        ranges = matching_ranges(rank, wanted, f'NVTX range "{name}"')
        if ranges is None or (launches_known and not ranges.thread_launches):
            continue
        enclosed = summed(order.kernels_between(ranges.start_ns, ranges.end_ns))
        enough = enclosed >= MOST.value * order.kernel_count
        merits = (len(ranges) > 1, ranges.thread_launches, enclosed, -len(ranges))
        if enough:
            candidates.append((merits, ranges))
    if candidates:
        return max(candidates, key=itemgetter(0))[1]
    return None


def nvtx_steps(rank: RankTimeline, order: HostOrder) -> Found | None:
    """Way 2: the step-named ranges as steps, partial ones left out."""
    ranges = step_named_ranges(rank, order)
    if ranges is None:
        return None
    way = steps_of(ranges, order)
    return replace(way, steps=leave_out_partial(way.steps, way.kernel_counts))


def steps_of(ranges: HostRanges, order: HostOrder) -> Found:
    """Ranges as steps on the GPU's time."""
    return found_between(order, ranges.start_ns, ranges.end_ns, ranges.what)


def _families(rank: RankTimeline) -> dict[str, list[int]]:
    families = defaultdict[str, list[int]](list)
    for place, text in enumerate(rank.columns.range_texts):
        if is_step_name(text):
            families[step_family(text)].append(place)
    return families


def _counts(values: IntArray, of: IntArray) -> list[int]:
    """How often each of some occurs among values; by one sort, as hundreds of GPUs have as many
    threads.
    """
    ordered = np.sort(values)
    return (np.searchsorted(ordered, of, "right") - np.searchsorted(ordered, of)).tolist()


def _outermost(
    start_ns: IntArray, end_ns: IntArray, closed_by_ns: int
) -> tuple[IntArray, IntArray]:
    """Ranges in order of start without those that begin inside one that is kept.

    A range that was never closed is exported as ending with the capture (`closed_by_ns`, the last
    end of all ranges). Where others begin inside such a one, it ends where the next begins.
    """
    starts: list[int] = []
    ends: list[int] = []
    order = np.lexsort((-end_ns, start_ns))
    for start, end in row_by_row(start_ns[order], end_ns[order]):
        if ends and ends[-1] >= closed_by_ns and start > starts[-1]:
            ends[-1] = start
        if not ends or start >= ends[-1]:
            starts.append(start)
            ends.append(end)
    return ints(starts), ints(ends)

"""Steps from the optimizer: a step ends where its weights are updated.

By ranges that say so, else by clusters of optimizer kernels.
"""

from dataclasses import replace
from statistics import median_low
from typing import Final

import numpy as np

from traces.account.inferred import signature
from traces.arrays import BoolArray, IntArray, ints, order_of, summed, zeros
from traces.columns import NULL
from traces.frozen import frozen
from traces.groups import group_of, passing
from traces.limits import ENOUGH, HALF_A_WALL, WALL
from traces.names.ranges import is_optimizer_name
from traces.steps.borders import HostOrder, found_between
from traces.steps.found import Found, Step, drop, median_ns
from traces.steps.nvtx import matching_ranges
from traces.steps.rules import leave_out_partial
from traces.timeline import Activities, Bucket, RankTimeline
from traces.training import Roles


def without_other_work(way: Found, order: HostOrder, rows: Activities) -> Found:
    """The stretches, each that holds more than a step cut at the launch before its last kernels
    that are one.

    These are the first one, the head, and any with more kernels than the others, as after an
    evaluation. Its last kernels are a step where they begin as a usual step does, and hold 95 % of
    its kernels. Nothing changes where there are none, or where nothing lies before them.
    """
    kernels = ~rows.is_transfer[order.places]
    places = order.places[kernels]
    launch_ns, kinds = order.launch_ns[kernels], signature(rows)[places]
    bounds = np.searchsorted(launch_ns, (way.host_start_ns, way.host_end_ns))
    stretches = [*map(slice, *bounds)]
    counts = way.kernel_counts[1:-1]  # both ends are less than a step
    usual = median_low(counts)
    step = kinds[stretches[1 + counts.index(usual)]]
    longer = ints(counts) > (1 + HALF_A_WALL.value) * usual
    start_ns = way.host_start_ns.copy()
    for place in np.flatnonzero(np.append(True, longer)):
        if cut := _where_step_begins(kinds[stretches[place]], step):
            start_ns[place] = launch_ns[stretches[place]][cut - 1] + 1
    return found_between(order, start_ns, way.host_end_ns, way.what)


def _where_step_begins(head: IntArray, step: IntArray) -> int:
    """How many kernels of a head come before a whole step that is like the given one; 0: none
    do.
    """
    if not len(step):
        return 0
    few = int(HALF_A_WALL.value * len(step))
    begins = step[: ENOUGH.whole]
    first = max(len(head) - len(step) - few, 0)
    cuts = np.arange(first, len(head) - len(step) + few + 1)
    for place, kernel in enumerate(begins):
        cuts = cuts[head[cuts + place] == kernel]
    left = len(head) - cuts
    alike = _shared(head, step)[cuts] >= (1 - HALF_A_WALL.value) * np.maximum(left, len(step))
    cuts, left = cuts[alike], left[alike]
    if len(cuts):
        return int(cuts[np.argmin(np.abs(left - len(step)))])
    return 0


def _shared(head: IntArray, step: IntArray) -> IntArray:
    """For each place of a head, how many kernels from there on the step has as well, whatever their
    order.

    Counted from the end: a kernel is shared where the step has more of its kind than come after it.
    """
    kind = group_of(np.concatenate((head[::-1], step)))
    backward, in_step = kind[: len(head)], np.bincount(kind[len(head) :], minlength=len(kind))
    order = order_of(backward)
    come_after = zeros(len(head))
    come_after[order] = np.arange(len(head)) - np.searchsorted(backward[order], backward[order])
    return np.cumsum(come_after < in_step[backward], dtype=np.int64)[::-1]


_LEAST_GAP_NS: Final = 1_000
"""Gaps below are alike: a kernel or none."""


@frozen
class Marks:
    """Places where an optimizer works, in order of launch, arrays of shape (n,).

    Mark i holds the activities [first[i], end[i]) of the host's order and is over on the host at
    `until_ns`.
    """

    first: IntArray
    end: IntArray
    until_ns: IntArray
    what: str


def optimizer_steps(rank: RankTimeline, order: HostOrder, roles: Roles) -> Found | None:
    """Way 3: steps that end with the optimizer; None where fewer than two clusters bound one."""
    for marks in (_marks_of_ranges(rank, order), _marks_of_kernels(order, roles)):
        if marks is None or (ends_ns := cluster_ends_ns(marks, order)) is None:
            continue
        ends_ns = _after_collectives_ns(ends_ns, rank.activities, order)
        # with the stretch before the first end, index 0, and the one after the last
        cuts = np.concatenate((order.launch_ns[:1], ends_ns, order.launch_ns[-1:] + 1))
        way = found_between(order, cuts[:-1], cuts[1:], marks.what)
        way = without_other_work(way, order, rank.activities)
        if _repeats(way, order, roles):
            return _without_parts(way)
    return None


def cluster_ends_ns(marks: Marks, order: HostOrder) -> IntArray | None:
    """When each cluster of marks is over on the host, shape (clusters,); None below two clusters.

    Distance is the compute work between two marks: an idle pause brings nothing apart, and what
    runs between two optimizers little.
    """
    gap_ns = order.compute_work_ns(marks.end[:-1], marks.first[1:])
    own_ns = summed(order.compute_work_ns(marks.first, marks.end))
    level = _gap_that_parts(gap_ns, own_ns)
    if level is None:
        return None
    return marks.until_ns[np.append(np.flatnonzero(gap_ns >= level), len(marks.first) - 1)]


def _after_collectives_ns(ends_ns: IntArray, rows: Activities, order: HostOrder) -> IntArray:
    """The ends on the host, shape (clusters,), behind the collectives launched directly after each.

    An all-gather of updated weights belongs to the update; what a pipeline receives is the next
    step's.
    """
    # what gathers and reductions are by their names alone
    collective = rows.is_kernel & rows.of(Bucket.COMM, "all_reduce", "other_comm")
    others = np.flatnonzero(~collective[order.places])
    launched = order.launched_before(ends_ns)
    next_other = np.append(others, len(order.places))[np.searchsorted(others, launched)]
    last_ns = np.append(NULL, order.launch_ns)[next_other]
    return np.maximum(ends_ns, last_ns + 1)


def _gap_that_parts(gap_ns: IntArray, own_ns: int) -> int | None:
    """The least gap between two clusters; None where no gap is.

    A level fits where every gap from it on is a tenth of the period that results, and every gap
    below is not: a mixture of experts has an optimizer for its dense part and one for its experts,
    one after the other. Where several fit, the one with the greatest jump in length below it:
    optimizers that launch many small kernels, and an evaluation between two steps, fit at their own
    level too, by a smaller jump.
    """
    ordered = np.sort(gap_ns)
    limit_ns = WALL.value * (summed(ordered) + own_ns) / np.arange(len(ordered), 0, -1)
    below = np.append(0, ordered[:-1])
    fits = (ordered >= limit_ns) & (below < limit_ns)
    if not fits.any():
        return None
    jump = fits * (ordered / np.maximum(below, _LEAST_GAP_NS))
    return int(ordered[np.argmax(jump)])


def _marks_of_ranges(rank: RankTimeline, order: HostOrder) -> Marks | None:
    wanted = passing(is_optimizer_name, rank.columns.range_texts)
    ranges = matching_ranges(rank, wanted, "to the end of each optimizer range")
    if ranges is None or not ranges.thread_launches:
        return None
    first, end = order.launched_before(ranges.start_ns), order.launched_before(ranges.end_ns)
    return Marks(first, end, ranges.end_ns, ranges.what)


def _marks_of_kernels(order: HostOrder, roles: Roles) -> Marks | None:
    first = ints(np.flatnonzero(roles.optimizer[order.places]))
    if not len(first):
        return None
    until_ns = order.launch_ns[first] + 1  # whatever is launched later is the next step's
    return Marks(first, first + 1, until_ns, "to the last optimizer kernel of each cluster")


def _repeats(way: Found, order: HostOrder, roles: Roles) -> bool:
    """Whether the stretches between two clusters are steps, as far as their kernels tell.

    The stretches at both ends are each less than a step, so all whole steps together hold as many
    kernels; and a step has whatever there is of forward and of backward.
    """
    head, *whole, tail = way.kernel_counts
    if sum(whole) < (1 - HALF_A_WALL.value) * max(head, tail):
        return False
    starts, ends = way.host_start_ns[1:-1], way.host_end_ns[1:-1]
    forward = _most_have(roles.forward, order, starts, ends)
    return forward and _most_have(roles.backward, order, starts, ends)


def _most_have(role: BoolArray, order: HostOrder, starts_ns: IntArray, ends_ns: IntArray) -> bool:
    having = order.chosen_between(role, starts_ns, ends_ns) > 0
    return bool(2 * having.sum() >= len(having)) or not role.any()


def _without_parts(way: Found) -> Found:
    """Leave out both ends where they are not a whole step, by the number of their kernels."""
    _, *counts, _ = way.kernel_counts
    head, *whole, tail = way.steps
    whole = leave_out_partial(whole, counts)
    kept = [count for step, count in zip(whole, counts, strict=True) if step.dropped is None]
    usual = median_ns(kept or counts)
    head = _judged_head(head, way.kernel_counts[0], usual)
    tail = drop(
        tail, f"partial: the recording ends after {way.kernel_counts[-1]} of {usual} kernels"
    )
    worth = np.array(way.kernel_counts) > HALF_A_WALL.value * usual
    worth[1:-1] = True
    return replace(way, steps=[head, *whole, tail]).take(worth)


def _judged_head(head: Step, count: int, usual: int) -> Step:
    if count < (1 - HALF_A_WALL.value) * usual:
        return drop(head, f"partial: {count} kernels where the others have {usual}")
    if count > (1 + HALF_A_WALL.value) * usual:
        return drop(head, f"begins before its step: {count} kernels where the others have {usual}")
    return head

"""A run as chains: what each rank did between its collectives, and how these hold the ranks
together.

A rank comes to a collective by its own work, after the one of its own that had ended last and held
it up, and never before the one before in the same group has ended. An instance moves when its last
participant is there. Replayed as recorded, every time comes out as it was.

For a replay without a cause: what ranks that do the same work usually do before the same
collective.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from traces.arrays import (
    FOREVER,
    BoolArray,
    IntArray,
    count_from_0,
    order_of,
    ranges_of,
    sums_before,
    zeros,
)
from traces.frozen import frozen
from traces.groups import group_of
from traces.ranks.matching.match import Matched
from traces.ranks.one_run.align import Aligned
from traces.ranks.replay.beneath import EVERY_KIND, THROUGH, Slowed, comes_after
from traces.ranks.rows import parts
from traces.ranks.rows.ends import NO_ROW, ByTime
from traces.ranks.summaries.summary import UNKNOWN
from traces.ranks.waiting.pipelines import messages_of, stages_of
from traces.ranks.waiting.side_by_side import LikeGroups, numbers_of
from traces.ranks.waiting.waits import LASTS

NEVER: Final = ~FOREVER
"""The end of what is not reached."""


@frozen
class Chains:
    """Of each participation, shape (p,): the row that it comes `after`, as `comes_after`, and
    `own_ns` since then, but for what was `slowed`; the row `behind` which it lies in its group; and
    how long it moves once the last rank is there: below 0 by what the clocks are apart. Where it
    comes after nothing, `own_ns` is the time itself. What comes after a row comes after the one
    `beside` it as well: of another group, for which the rank waited at once; None where that is not
    asked, as where no transfer becomes shorter.
    """

    first: IntArray
    ends: ByTime
    after: IntArray
    behind: IntArray
    own_ns: IntArray
    moving_ns: IntArray
    start_ns: IntArray
    slowed: Slowed | None = None
    beside: IntArray | None = None

    def since_ns(self, rows: IntArray, end_ns: IntArray) -> IntArray:
        """When all has ended that comes before work of these rows' rank, where collectives end so.

        `end_ns` has one more value, for what there is none of. 0 where there is nothing before.
        """
        ended_ns = end_ns[rows]
        if self.beside is not None:
            ended_ns = np.maximum(ended_ns, end_ns[self.beside[rows]])
        return np.where(rows == NO_ROW, 0, ended_ns)


def chains_of(
    matched: Matched, aligned: Aligned, role: IntArray, skipped: Sequence[int] = EVERY_KIND
) -> Chains:
    """The chains of all ranks; `role`, shape (p,), as `roles_of`.

    `skipped`: kinds that hold nothing up where compute ran beside them.
    """
    start_ns, end_ns = aligned.start_ns, aligned.end_ns
    ends, behind = ByTime(matched.place, end_ns), _behind(matched, aligned)
    after, slowed = comes_after(
        matched, aligned, role, behind, ends.before(matched.place, start_ns), skipped
    )
    since_ns = np.where(after == NO_ROW, 0, end_ns[after])
    own_ns = start_ns - since_ns
    if slowed is not None:
        own_ns = own_ns - slowed.longer_ns(np.arange(len(after)), since_ns, end_ns, own_ns)
    moving_ns = end_ns - parts.spread(parts.most(start_ns, matched.first), matched.first)
    return Chains(matched.first, ends, after, behind, own_ns, moving_ns, start_ns, slowed)


def with_beside(chains: Chains, matched: Matched, aligned: Aligned) -> Chains:
    """With the row `beside` the last of each stretch of communication: of other groups' the last in
    it.

    In a stretch each began before the one before it had ended. Those beneath which the rank worked
    held up nothing.
    """
    result = np.full(len(matched.place), NO_ROW)
    alone = matched.exposed_ns >= THROUGH.value * matched.length_ns
    order = chains.ends.rows[alone[chains.ends.rows]]
    if not len(order):
        return replace(chains, beside=result)
    ended_ns, place = aligned.end_ns[order], matched.place[order]
    apart = (aligned.start_ns[order][1:] > ended_ns[:-1] + LASTS.value) | (place[1:] != place[:-1])
    last = order[np.append(np.flatnonzero(apart), len(order) - 1)]
    stretch = sums_before(apart)
    group = matched.group[matched.instance]
    theirs = np.flatnonzero(group[order] != group[last][stretch])
    if len(theirs):
        theirs = theirs[np.append(np.flatnonzero(np.diff(stretch[theirs])), len(theirs) - 1)]
        result[last[stretch[theirs]]] = order[theirs]
    return replace(chains, beside=result)


def _behind(matched: Matched, aligned: Aligned) -> IntArray:
    """The row before in the same group, where it had ended."""
    group = matched.group[matched.instance]
    # groups rise in the rows
    order = parts.order_of(matched.place, count_from_0(matched.place))
    same = (np.diff(group[order]) == 0) & (np.diff(matched.place[order]) == 0)
    if (np.diff(aligned.start_ns[order])[same] < 0).any():
        order = np.lexsort((aligned.start_ns, group, matched.place))  # which leaves `same` as it is
    same &= aligned.end_ns[order[:-1]] <= aligned.start_ns[order[1:]]
    behind = np.full(len(order), NO_ROW)
    behind[order[1:][same]] = order[:-1][same]
    return behind


def replayed(
    chains: Chains, own_ns: IntArray, moving_ns: IntArray, free: BoolArray | None = None
) -> IntArray:
    """The end of each participation, with other work and other transfers; shape (p,).

    `free` are those before which nothing of the rank was recorded, and which come as much sooner as
    others of the instance do. `NEVER` where a rank comes to it only after what comes after it: a
    recorded order that contradicts itself.
    """
    first, after, behind = chains.first, chains.after, chains.behind
    was_ns = chains.start_ns
    count, rows = len(first) - 1, np.arange(len(after))
    instance = np.append(parts.numbers(first), count)
    befores = [after, np.where(behind == after, NO_ROW, behind)]
    if chains.beside is not None:
        befores.append(np.where(after == NO_ROW, NO_ROW, chains.beside[after]))
    if chains.slowed is not None:
        befores.append(chains.slowed.beneath)
    before = instance[np.concatenate(befores)]
    has_before = before != count
    follower, before = np.tile(rows, len(befores))[has_before], before[has_before]
    waits_for = np.bincount(instance[follower], minlength=count)
    # those who wait, by the instance that they wait for
    followers = instance[follower[np.argsort(before)]]
    begins = sums_before(np.bincount(before, minlength=count))
    end_ns = np.full(len(after) + 1, NEVER)  # the last stands for nothing before
    ready = np.flatnonzero(waits_for == 0)
    while len(ready):
        rows = ranges_of(first[ready], first[ready + 1])
        since_ns = chains.since_ns(after[rows], end_ns)
        work_ns = own_ns[rows]
        if chains.slowed is not None:
            work_ns = work_ns + chains.slowed.longer_ns(rows, since_ns, end_ns, work_ns)
        here_ns = np.maximum(since_ns + work_ns, end_ns[behind[rows]])
        lengths = first[ready + 1] - first[ready]
        begin = np.cumsum(lengths) - lengths
        if free is not None and free[rows].any():
            here_ns = here_ns - np.where(
                free[rows], _sooner(here_ns, was_ns[rows], free[rows], begin), 0
            )
        end_ns[rows] = np.repeat(np.maximum.reduceat(here_ns, begin), lengths) + moving_ns[rows]
        later = np.sort(followers[ranges_of(begins[ready], begins[ready + 1])])
        firsts = parts.begins_of(later)
        later = later[firsts[:-1]]
        waits_for[later] -= np.diff(firsts)
        ready = later[waits_for[later] == 0]
    return end_ns[:-1]


def _sooner(here_ns: IntArray, was_ns: IntArray, free: BoolArray, begin: IntArray) -> IntArray:
    """By how much those of each part that are not `free` come sooner, the last of them; 0 where all
    are.
    """
    now = np.maximum.reduceat(np.where(free, NEVER, here_ns), begin)
    before = np.maximum.reduceat(np.where(free, NEVER, was_ns), begin)
    sooner = np.where(before == NEVER, 0, before - now)
    return np.repeat(sooner, np.diff(np.append(begin, len(here_ns))))


def roles_of(matched: Matched, alike: LikeGroups, step: IntArray) -> IntArray:
    """A number for each participation, the same for what like ranks do at the same place of their
    programs.

    That is the same place of a `step`, shape (n,), of groups of one family and the same operation;
    of a message of the pipeline, its first rank or its second.
    """
    what = programs_of(matched, step)[matched.instance]
    stage = stages_of(matched)[matched.place]
    in_pair = np.where(messages_of(matched)[matched.instance], parts.turns(matched.first), 0)
    return group_of(numbers_of(alike, matched.ranks)[matched.place], stage, in_pair, what)


def programs_of(matched: Matched, step: IntArray) -> IntArray:
    """A number for each instance, the same at one place of a step of groups of one family; shape
    (n,).
    """
    what = matched.purposes, families_of(matched), matched.operation, _in_step(matched, step)
    return group_of(members_of(matched), *what)


def _in_step(matched: Matched, step: IntArray) -> IntArray:
    """The number of each instance in its group's step. In steps that have more or fewer than
    others, and outside of all, that of the group, counted on.
    """
    first = parts.begins_of(matched.group, step)
    count, group = np.diff(first), matched.group[first[:-1]]
    usual, _ = parts.medians(count, group, len(matched.groups))
    whole = parts.spread((step[first[:-1]] != UNKNOWN) & (count == usual[group]), first)
    number = parts.turns(first)
    return np.where(whole, number, count_from_0(number) + matched.sequence)


def families_of(matched: Matched) -> IntArray:
    """Of each instance how many groups of the same size a rank of it takes part in more often,
    shape (n,).

    Most recordings do not name what a group is for. On like ranks the groups of one family are
    taken part in equally often, nearly, and those of another more or less often.
    """
    instances = np.diff(parts.begins_of(matched.group))  # groups rise
    place, first = matched.members()
    count, of_size = parts.spread(instances, first), parts.spread(np.diff(first), first)
    # those of a rank together, most first
    number = group_of(np.max(count, initial=0) - count, of_size, place)
    order = order_of(number)
    mine = parts.begins_of(group_of(of_size, place)[order])
    equal = parts.begins_of(number[order])
    more = zeros(len(order))
    more[order] = parts.spread(equal[:-1], equal) - parts.spread(mine[:-1], mine)
    return np.repeat(more[first[:-1]], instances)


def members_of(matched: Matched) -> IntArray:
    """How many ranks each instance's group has, shape (n,), whether they recorded it or not."""
    _, first = matched.members()
    return np.repeat(np.diff(first), np.diff(parts.begins_of(matched.group)))


def usual(values: IntArray, role: IntArray, wanted: BoolArray) -> tuple[IntArray, BoolArray]:
    """Of each row the median of the wanted rows of its role, and whether there are any."""
    middle, known = parts.medians(values[wanted], role[wanted], count_from_0(role))
    return middle[role], known[role]

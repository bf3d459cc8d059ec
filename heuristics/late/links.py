"""Links that are slow: what moves by them takes longer than the same between other ranks."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Final

import numpy as np

from heuristics.late.beside import Edits, Places, Times, apart, participations
from traces.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    count_from_0,
    distinct,
    ints,
    listed,
    none_of,
    reach,
    summed,
    sums_before,
    whole,
)
from traces.groups import group_of, mask_of, sorted_within
from traces.intervals import covered_ns, union
from traces.limits import Limit
from traces.ranks.matching.match import Matched
from traces.ranks.replay.chains import Chains, programs_of, usual
from traces.ranks.replay.edit import Edit
from traces.ranks.replay.run import MeasuredRun
from traces.ranks.rows import parts
from traces.ranks.waiting.pipelines import messages_of
from traces.ranks.waiting.waits import EXCHANGES, LASTS, ends_at_once
from traces.sections.cause import Cause

SLOWER: Final = Limit(
    1.15,
    "times as long as like transfers",
    "measured: of eight recorded ranks of another's run (dlrm8) one moves its data 1.15 times as "
    "long as the median, and nothing is wrong with it",
)
_LEAST: Final = 6
"""Transfers, from which on their mean says something."""
_NEARLY: Final = 0.98
"""Of the time of slow groups: ranks that have as much of it are told from no other."""


def propose(run: MeasuredRun) -> Edits:
    yield from _of_groups(run)
    yield from _of_exchanges(run)


def _of_groups(run: MeasuredRun) -> Edits:
    """Ranks of groups that take longer than like ones: those with the most of that time, all of
    them, and nodes that are in each such group. What is not slow beside groups without these ranks
    is spared.
    """
    matched, count = run.matched, len(run.matched.groups)
    member = none_of((count, len(run.nodes)))
    of_row = matched.group[matched.instance]
    member[of_row, matched.place] = True
    apart_nodes = run.nodes[matched.place] != run.nodes[member.argmax(axis=1)][of_row]
    over_nodes = np.bincount(of_row, apart_nodes, minlength=count) > 0
    given = parts.most(matched.recorded.rows.size_bytes[matched.at], matched.first)
    # routing makes them differ
    size_bytes = np.where(np.isin(matched.operation, EXCHANGES), 0, given)
    what = programs_of(matched, run.step), matched.kinds, size_bytes
    like = group_of(*what, run.step, ints(over_nodes[matched.group]))
    moved_ns = parts.median(run.waits.moving_ns, matched.first)
    usual_ns, seen = _usual(moved_ns, like)
    pair = group_of(like[matched.instance], matched.place)
    # of a rank that is in two such groups, these are not side by side
    twice = np.bincount(pair)[pair] > 1
    seen &= (np.bincount(like[matched.instance], twice)[like] == 0) | messages_of(matched)
    group = matched.group[seen]
    often = np.bincount(group, minlength=count)
    slower = np.bincount(group, moved_ns[seen] >= SLOWER.value * usual_ns[seen], count)
    took = parts.sums(moved_ns[seen], group, count)
    like_took = parts.sums(usual_ns[seen], group, count)
    known = (often >= _LEAST) & (like_took > 0) & (took >= LASTS.value * often)
    slow = known & (took >= SLOWER.value * like_took) & (slower * 2 > often)
    if not slow.any() or (not over_nodes.any() and not member[slow].all(axis=0).any()):
        return  # where nodes are not known, those that lie on several may be slower
    beyond = np.where(slow, took - like_took, 0.0)
    worst = int(np.argmax(beyond))
    mine = seen & (matched.group == worst)
    factor = float(np.median(moved_ns[mine] / usual_ns[mine]))
    of_rank = beyond @ member
    by_node = [run.nodes == node for node in distinct(run.nodes)]
    on_all = [nodes for nodes in by_node if member[slow][:, nodes].any(axis=1).all()]
    masks = [of_rank >= _NEARLY * of_rank.max(), of_rank > 0, *on_all]
    groups = []
    for mask in masks:
        if mask.all():
            continue
        passing = member @ mask
        free = mask_of(like[seen & ~passing[matched.group]], count_from_0(like))
        beside_free = mask_of(matched.group[seen & free[like]], count)
        normal = known & ~slow & beside_free
        groups.append((summed(mask), summed(known & ~slow & passing), mask, passing, normal))
    for _, _, mask, passing, normal in sorted(groups, key=itemgetter(0, 1)):
        places = listed(np.flatnonzero(mask))
        spared = np.flatnonzero(normal | (over_nodes[worst] & ~over_nodes))
        yield _edit(run, places, float(beyond[worst]), factor, spared)
        if beyond[passing].sum() >= _NEARLY * beyond.sum():
            break


def _usual(values: IntArray, like: IntArray) -> tuple[IntArray, BoolArray]:
    """Of each what the faster half of those like it take, and where there are several of them."""
    first = sums_before(np.bincount(like))
    middle = sorted_within(like, values)[(first[:-1] + first[1:] - 1) // 2]
    return middle[like], np.diff(first)[like] > 1


def _of_exchanges(run: MeasuredRun) -> Edits:
    """Ranks whose part of exchanges takes longer than that of the others in it."""
    matched, moving_ns = run.matched, run.waits.moving_ns
    exchanges = _apart_exchanges(matched, moving_ns)
    rows = np.flatnonzero(exchanges[matched.instance])
    middle_ns = parts.spread(parts.median(moving_ns, matched.first), matched.first)
    count = len(run.nodes)
    took, beyond = (
        parts.sums(times_ns[rows], matched.place[rows], count)
        for times_ns in (moving_ns, moving_ns - middle_ns)
    )
    places = apart(beyond)
    if not places or np.bincount(matched.place[rows], minlength=count)[list(places)].min() < _LEAST:
        return
    seen = float(took[list(places)].sum() / max(1.0, (took - beyond)[list(places)].sum()))
    if seen < SLOWER.value:
        return
    behind = parts.total(ints(participations(run, places)), matched.first)
    partly = exchanges & (behind > 0) & (behind < matched.sizes)
    slow = slowness(np.full(summed(partly), seen), matched.sizes[partly], behind[partly])
    yield _edit(run, places, float(beyond[list(places)].mean()), float(np.median(slow)))


def _apart_exchanges(matched: Matched, moving_ns: IntArray) -> BoolArray:
    """Exchanges of several that end on each rank by itself, shape (n,), and are no latency."""
    alone = np.isin(matched.operation, EXCHANGES) & ~ends_at_once(moving_ns, matched.first)
    return alone & (matched.sizes > 2) & (parts.median(moving_ns, matched.first) >= LASTS.value)


def slowness(seen: FloatArray, size: IntArray, behind: IntArray) -> FloatArray:
    """How slow a link is that moves `seen` times as long as the others of an exchange of `size`
    ranks.

    Of n ranks k are `behind` it: each of the others sends k / (n - 1) of its data by that link, and
    these (n - k) / (n - 1).
    """
    left = size - behind - seen * behind
    real = np.divide((seen - 1) * (size - 1), left, out=seen - 1, where=left > 0) + 1
    result: FloatArray = np.clip(real, seen, 2 * seen + size)
    return result


def _edit(
    run: MeasuredRun,
    places: Places,
    cost_ns: float,
    factor: float,
    spared: Sequence[int] | IntArray = (),
) -> Edit:
    """Transfers as long as like ones that no slow link touches, or shorter by its factor; those of
    other groups that a rank moves at the same time share its way, and are as long as like ones too.

    Of a ring all is slower by the factor, and of an exchange that ends at once on all; of another
    the others' by what of their data passes it.
    """
    matched, mine = run.matched, participations(run, places)
    first, size = matched.first, matched.sizes
    behind = parts.total(ints(mine), first)
    # of a rank whose own part was not recorded too
    slow = np.setdiff1d(matched.group[behind > 0], spared)
    touched = parts.spread(np.isin(matched.group, slow), first)

    def edited(chains: Chains) -> Times:
        moving_ns = chains.moving_ns
        shares = ~touched & _at_once(matched, moving_ns, touched)
        middle, known = usual(moving_ns, run.role, ~touched & ~shares)
        exchanges = (
            np.isin(matched.operation, EXCHANGES) & (size > 2) & ~ends_at_once(moving_ns, first)
        )
        passes = np.where(mine, parts.spread(size - behind, first), parts.spread(behind, first))
        part = np.where(parts.spread(exchanges, first), passes / parts.spread(size - 1, first), 1.0)
        scaled = whole(moving_ns / (1 + (factor - 1) * part))
        mended, beside_mended = usual(scaled, run.role, touched)
        other = np.where(shares & beside_mended, np.minimum(mended, moving_ns), moving_ns)
        other = np.where(touched, scaled, other)
        return chains.own_ns, np.where((touched | shares) & known, middle, other)

    steps = run.grid.step_count
    return Edit(Cause.SLOW_LINK, places, np.full(steps, cost_ns / steps), edited)


def _at_once(matched: Matched, moving_ns: IntArray, which: BoolArray) -> BoolArray:
    """Transfers during which their rank moves one of these as well, shape (p,)."""
    first_ns, last_ns = reach(np.concatenate((matched.end_ns, matched.end_ns - moving_ns)))
    end_ns = matched.end_ns + matched.place * (last_ns - first_ns)  # each rank apart
    start_ns = end_ns - moving_ns
    return covered_ns(start_ns, end_ns, union(start_ns[which], end_ns[which])) > 0

"""Groups whose data moves longer than that of like groups: what they share, a link or a host, is slow.

No clock but that which tells who arrived last enters, and compute beside it is normal.
"""

from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from traces.arrays import BoolArray, FloatArray, IntArray
from traces.groups import begins, first_of, group_of, sorted_within
from traces.limits import MOST, Limit
from traces.names.kernels import COMM_KINDS
from traces.ranks.matching.match import Matched
from traces.ranks.replay.shared_ways import shares
from traces.ranks.rows import parts
from traces.ranks.summaries.summary import UNKNOWN
from traces.ranks.waiting.waits import LASTS, LEAST, Waits

SLOWER: Final = Limit(
    1.15,
    "times as long as like transfers",
    "measured: of eight recorded ranks of another's run (dlrm8) one moves its data 1.15 times as long as the "
    "median, and nothing is wrong with it",
)


@dataclass(frozen=True, slots=True)
class SlowGroups:
    """Groups whose data moves longer than that of like groups: the `places` that they share, how many times
    as long, and how much time that costs in all. Of groups that share no rank all places are meant.

    `spared` are groups, by number, whose data does not go that way: beside like groups they are normal, or
    they stay on one node where the slow ones do not.
    """

    places: tuple[int, ...]
    factor: float
    cost_ns: float
    spared: tuple[int, ...] = ()


def slow_groups(
    matched: Matched,
    waits: Waits,
    end_ns: IntArray,
    nodes: IntArray,
    rails: IntArray,
) -> SlowGroups | None:
    """The groups that move the same as like groups and take `SLOWER` times as long or more; None without any.

    Like are instances of one operation and size, in groups of other ranks that have as many ranks and nearly
    as many instances, and are on one of the `nodes`, a number of each place, or on several: what stays on one
    is faster. What slow groups share is what is slow: a link, a host's adapter, one of the `rails`, which
    places are on by their number on a node. Where nodes are not known, slow groups that share no rank may be
    those that lie on several: they show nothing.
    """
    if not len(matched):
        return None
    like, share = _alike(matched, nodes)
    part = shares(matched.first, matched.place, end_ns, waits.moving_ns, over_nodes(matched, nodes))
    moved_ns = np.rint(parts.median(waits.moving_ns, matched.first) * part * share).astype(np.int64)
    seen = np.flatnonzero(like != UNKNOWN)
    if not len(seen):
        return None
    moved_ns, group = moved_ns[seen], matched.group[seen]
    usual_ns = _usual(moved_ns, like[seen], group, matched.sequence[seen])
    count = len(matched.groups)
    often = np.bincount(group, minlength=count)
    took, usual = (parts.sums(one, group, count) for one in (moved_ns, usual_ns))
    beyond = took - usual
    enough = (often >= LEAST) & (usual > 0) & (took >= LASTS.value * often)
    slower = parts.sums((moved_ns >= SLOWER.value * usual_ns).astype(np.int64), group, count)
    enough &= slower * 2 > often  # what moves beside others is slow now and then
    slow = np.flatnonzero(enough & (took >= SLOWER.value * usual))
    if not len(slow):
        return None
    slow = slow[np.argsort(-beyond[slow], kind="stable")]
    members = [_members(matched, one) for one in slow.tolist()]
    places = _in_common(members, nodes, rails)
    if places is None:
        return None
    worst, on = slow[0], _on_several(matched, nodes)
    normal = (often >= LEAST) & (took >= LASTS.value * often) & (took < SLOWER.value * usual)
    passing = _passing(matched, members, places, normal, nodes)
    spared = normal & _beside_others(matched, like, passing) | ~passing | (on[worst] & ~on)
    spared[slow] = False
    mine = group == worst
    times = float(np.median(moved_ns[mine] / usual_ns[mine]))  # what moves beside others may share its way
    return SlowGroups(places, times, float(beyond[worst]), tuple(np.flatnonzero(spared).tolist()))


def _passing(
    matched: Matched,
    slow: list[frozenset[int]],
    places: tuple[int, ...],
    normal: BoolArray,
    nodes: IntArray,
) -> BoolArray:
    """Which groups may move data by what is slow: those with two of the nodes that all `slow` ones lie on,
    where none on these is normal, so that it is the way between them; else those with one of the `places`.
    """
    between = {*nodes[[*slow[0]]].tolist()}
    both = np.asarray(sum(_has(matched, nodes == node).astype(np.int64) for node in between) >= 2)
    there = np.flatnonzero(normal & both & ~_has(matched, ~np.isin(nodes, [*between])))
    as_well = any(_members(matched, one) not in slow for one in there.tolist())
    elsewhere = any({*nodes[[*one]].tolist()} != between for one in slow[1:])
    if len(between) < 2 or elsewhere or as_well:
        return _has(matched, np.isin(np.arange(len(nodes)), places))
    return both


def _has(matched: Matched, which: BoolArray) -> BoolArray:
    """The groups with one of these places."""
    result = np.zeros(len(matched.groups), dtype=np.bool_)
    result[matched.group[matched.instance[which[matched.place]]]] = True
    return result


def _beside_others(matched: Matched, like: IntArray, passing: BoolArray) -> BoolArray:
    """Which groups have a like one that is not among the `passing`: where all are, none is the measure."""
    told = like != UNKNOWN
    free = np.zeros(int(like.max(initial=0)) + 1, dtype=np.bool_)
    free[like[told & ~passing[matched.group]]] = True
    result = np.zeros(len(passing), dtype=np.bool_)
    result[matched.group[told][free[like[told]]]] = True
    return result


def over_nodes(matched: Matched, nodes: IntArray) -> BoolArray:
    """Which participations are in groups with ranks on several nodes, shape (p,)."""
    result: BoolArray = _on_several(matched, nodes)[matched.group[matched.instance]]
    return result


def _on_several(matched: Matched, nodes: IntArray) -> BoolArray:
    """Which groups have ranks on several nodes."""
    of_group = parts.begins_of(matched.group)  # groups rise, and rows in their order
    on, first = nodes[matched.place], matched.first[of_group]
    result = np.zeros(len(matched.groups), dtype=np.bool_)
    result[matched.group[of_group[:-1]]] = parts.most(on, first) > parts.least(on, first)
    return result


def _members(matched: Matched, group: int) -> frozenset[int]:
    return frozenset(matched.place[matched.group[matched.instance] == group].tolist())


def _in_common(members: list[frozenset[int]], nodes: IntArray, rails: IntArray) -> tuple[int, ...] | None:
    """What slow groups share, those with the most time first; all of theirs where they share nothing."""
    members = list(dict.fromkeys(members))  # a gather and a scatter may have groups of their own
    apart = [one for one in members[1:] if members[0].isdisjoint(one)]
    if apart and (nodes == nodes[0]).all():
        return None
    disjoint = all(one.isdisjoint(other) for one, other in combinations(members, 2))
    whole = tuple(sorted(frozenset[int]().union(*members)))
    if disjoint and len({frozenset(nodes[[*one]].tolist()) for one in members}) == 1:
        return whole  # a way between the same nodes
    if disjoint and (nodes != nodes[0]).any() and len({*rails[[*whole]].tolist()}) == 1:
        return whole
    shared = members[0]
    for one in members[1:]:
        shared = shared & one or shared
    return tuple(sorted(shared))


NEAR: Final = Limit(1.1, "times the next smaller size", "ours: what routing sends changes by some percent")


def _alike(matched: Matched, nodes: IntArray) -> tuple[IntArray, FloatArray]:
    """A number for each instance, the same for what like groups move; `UNKNOWN` where nothing is like it.

    And what part of its size the smallest is that is like it, 1 where sizes are unknown.
    """
    count = len(matched.groups)
    size = _most_of(matched.sizes, matched.group, count)
    about = matched.kind[matched.first[:-1]]
    bytes_ = parts.most(matched.recorded.rows.size_bytes[matched.at], matched.first)
    on = _on_several(matched, nodes).astype(np.int64)
    messages = (about == COMM_KINDS.index("pp_p2p")) & matched.by_order  # some with one in lockstep instead
    how_many = np.where(messages, np.bincount(matched.group, minlength=count)[matched.group], 0)
    what = matched.operation, about, matched.purposes, size[matched.group], on[matched.group], how_many
    exact = group_of(bytes_, *what)
    some = first_of(exact)  # of each size one, those of one kind together, rising
    rising = bytes_[some]
    apart = begins(*(column[some] for column in what))
    apart[1:] |= (rising[1:] > NEAR.value * rising[:-1]) | (rising[:-1] <= 0)
    near = np.cumsum(apart) - 1
    share = np.where(rising > 0, rising[apart][near] / np.maximum(rising, 1), 1.0)[exact]
    like = near[exact]
    whole = matched.sizes == size[matched.group]
    like = np.where(whole & ~_meeting_again(matched, like), like, UNKNOWN)
    return _with_others(like, matched.group), share


def _most_of(values: IntArray, group: IntArray, count: int) -> IntArray:
    result = np.zeros(count, dtype=np.int64)
    np.maximum.at(result, group, values)
    return result


def _with_others(like: IntArray, group: IntArray) -> IntArray:
    """The same, where another group has nearly as many of them; else `UNKNOWN`."""
    told = np.flatnonzero(like != UNKNOWN)
    both = group_of(like[told], group[told]).astype(np.int64)
    often = np.bincount(both)[both]
    most = _most_of(often, like[told], int(like.max(initial=0)) + 1)[like[told]]
    told = told[often >= MOST.value * most]
    first_group = np.full(int(like.max(initial=0)) + 1, UNKNOWN)
    first_group[like[told]] = group[told]
    several = np.zeros(len(first_group), dtype=np.bool_)
    several[like[told][group[told] != first_group[like[told]]]] = True
    result = np.full(len(like), UNKNOWN, dtype=np.int64)
    result[told] = np.where(several[like[told]], like[told], UNKNOWN)
    return result


def _meeting_again(matched: Matched, like: IntArray) -> BoolArray:
    """Of which instances a rank is in a like one of another group: these do not stand side by side."""
    what = like[matched.instance], matched.place
    cell = group_of(*what).astype(np.int64)
    group = matched.group[matched.instance]
    one = np.zeros(int(cell.max(initial=0)) + 1, dtype=np.int64)
    one[cell] = group
    again = group != one[cell]
    several = np.bincount(like[matched.instance], weights=again)
    result: BoolArray = several[like] > 0
    return result


def _usual(moved_ns: IntArray, like: IntArray, group: IntArray, sequence: IntArray) -> IntArray:
    """What the faster half of like groups take: for the same number of it where all have as many, else as
    a rule.
    """
    each = group_of(like, group).astype(np.int64)
    often = np.bincount(each)[each]
    even = np.ones(int(like.max(initial=0)) + 1, dtype=np.bool_)
    least, most = np.full(len(even), 1 << 62), np.zeros(len(even), dtype=np.int64)
    np.minimum.at(least, like, often)
    np.maximum.at(most, like, often)
    even = least == most
    turn = np.where(even[like], sequence, UNKNOWN)
    middle_ns, _ = parts.medians(moved_ns, each, int(each.max(initial=0)) + 1)
    own_ns = np.where(even[like], moved_ns, middle_ns[each])
    stretch = group_of(like, turn).astype(np.int64)
    alone = np.lexsort((group, stretch))  # of a rule each group says one thing
    first = parts.begins_of(stretch[alone], group[alone])
    one_each = alone[first[:-1]]
    result = np.zeros(int(stretch.max(initial=0)) + 1, dtype=np.int64)
    of_stretch = parts.begins_of(stretch[one_each])
    result[stretch[one_each][of_stretch[:-1]]] = _least_half(own_ns[one_each], of_stretch)
    return result[stretch]


def _least_half(values: IntArray, first: IntArray) -> IntArray:
    """Of each stretch the lower of the two in the middle: of two groups the faster is the usual one."""
    ordered = sorted_within(parts.numbers(first), values)
    middle: IntArray = ordered[(first[:-1] + first[1:] - 1) // 2]
    return middle

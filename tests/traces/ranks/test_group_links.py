"""Slow ways between ranks, by groups that move the same as like groups and take longer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tests.recordings.ranks import Part, summary_of
from traces.arrays import IntArray
from traces.ranks.clocks import Aligned, Clocks
from traces.ranks.group_links import SlowGroups, slow_groups
from traces.ranks.match import match
from traces.ranks.summary import Group, GroupSource, Operation
from traces.ranks.waits import measure_waits

NODES: IntArray = np.array([0, 0, 0, 0, 4, 4, 4, 4])
RAILS: IntArray = np.array([0, 1, 2, 3, 0, 1, 2, 3])
PAIRS = ((0, 4), (1, 5), (2, 6), (3, 7))
"""Eight ranks on two nodes, in pairs across them."""


def found(
    took_us: Mapping[tuple[int, ...], float], *, nodes: IntArray = NODES, rails: IntArray = RAILS
) -> SlowGroups | None:
    """What is slow where each group scatters in so long, ten times each."""
    parts: dict[int, list[Part]] = {rank: [] for rank in range(8)}
    groups: dict[int, list[Group]] = {rank: [] for rank in range(8)}
    for number, (ranks, took) in enumerate(took_us.items()):
        for rank in ranks:
            groups[rank].append(Group(GroupSource.COMMUNICATOR, number, len(ranks)))
            own = len(groups[rank]) - 1
            parts[rank] += [
                Part(own, turn, begin, begin + took, Operation.REDUCE_SCATTER, 1_000)
                for turn in range(10)
                for begin in [10_000 * turn + 4_000 * own]
            ]
    matched = match([summary_of(rank, parts[rank], groups[rank]) for rank in range(8)])
    aligned = Aligned(matched.start_ns, matched.end_ns, Clocks(True, 0, ()))
    waits = measure_waits(matched, aligned, all_ranks_seen=True)
    nothing = np.zeros(len(matched), dtype=np.bool_)
    return slow_groups(matched, waits, matched.end_ns, 1.15, nodes, rails, without=nothing)


def alike(slow: Sequence[tuple[int, ...]], usual_us: float = 500.0) -> dict[tuple[int, ...], float]:
    return {pair: 3 * usual_us if pair in slow else usual_us for pair in PAIRS}


def test_a_way_between_two_nodes_slows_what_takes_it_and_spares_what_leaves_one_of_them() -> None:
    """On four nodes of two: ranks 0 to 3 exchange by the slow way, 4 to 7 by another, and pairs by others."""
    nodes = np.array([0, 0, 2, 2, 4, 4, 6, 6])
    fours: dict[tuple[int, ...], float] = {(0, 1, 2, 3): 1_500.0, (4, 5, 6, 7): 500.0}
    pairs: dict[tuple[int, ...], float] = {(0, 4): 200.0, (1, 5): 200.0, (2, 6): 200.0, (3, 7): 200.0}
    slow = found({**fours, **pairs}, nodes=nodes, rails=np.array([0, 1] * 4))
    assert slow is not None
    assert slow.places == (0, 1, 2, 3)
    assert len(slow.spared) == 5


def test_what_all_groups_hold_a_slow_rank_of_says_nothing_of_its_way() -> None:
    """Both fours are as slow as the rail in them: beside each other they look normal."""
    nodes, rails = np.array([0, 0, 2, 2, 4, 4, 6, 6]), np.array([0, 1] * 4)
    fours: dict[tuple[int, ...], float] = {(0, 1, 2, 3): 900.0, (4, 5, 6, 7): 900.0}
    pairs: dict[tuple[int, ...], float] = {(0, 4): 1_500.0, (2, 6): 1_500.0, (1, 5): 500.0, (3, 7): 500.0}
    slow = found({**fours, **pairs}, nodes=nodes, rails=rails)
    assert slow is not None
    assert slow.places == (0, 2, 4, 6)
    assert len(slow.spared) == 2  # the pairs of the other rail


def test_slow_groups_that_share_no_rank_show_nothing_where_nodes_are_not_known() -> None:
    assert found(alike([(0, 4), (1, 5)]), nodes=np.zeros(8, dtype=np.int64)) is None

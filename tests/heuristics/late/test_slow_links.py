"""Links that are slow: what of groups and exchanges tells them, and just below each limit what does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heuristics.late.links import _at_once, _of_exchanges, _of_groups, slowness
from tests.recordings.ranks import US, Part, array, summary_of
from traces.ranks.matching.match import match
from traces.ranks.one_run.align import Aligned, Clocks
from traces.ranks.replay.edit import Edit
from traces.ranks.summaries.summary import Group, GroupSource, Operation, RankSummary
from traces.ranks.waiting.waits import measure_waits

NODES = (0, 0, 0, 0, 4, 4, 4, 4)
TWO_A_NODE = (0, 0, 2, 2, 4, 4, 6, 6)


def run_of(ranks: Sequence[RankSummary], nodes: Sequence[int]) -> Any:
    """Ranks whose clocks are one, of which every instance is in the step that was written."""
    matched = match(ranks)
    aligned = Aligned(matched.start_ns, matched.end_ns, Clocks(True, 0, ()))
    return SimpleNamespace(
        matched=matched,
        waits=measure_waits(matched, aligned),
        step=matched.step[matched.first[:-1]],
        grid=SimpleNamespace(step_count=10),
        nodes=array(nodes),
    )


def slow_between(
    took_us: Mapping[tuple[int, ...], float],
    nodes: Sequence[int] = NODES,
    often: Mapping[int, int] | None = None,
) -> list[tuple[int, ...]]:
    """The ranks of each proposal where each group scatters in so long, once a step in most."""
    parts: dict[int, list[Part]] = {rank: [] for rank in range(8)}
    groups: dict[int, list[Group]] = {rank: [] for rank in range(8)}
    for number, (ranks, took) in enumerate(took_us.items()):
        for rank in ranks:
            groups[rank].append(Group(GroupSource.COMMUNICATOR, number, len(ranks)))
            own = len(groups[rank]) - 1
            parts[rank] += [
                Part(own, step, begin, begin + took, Operation.REDUCE_SCATTER, step=step)
                for step in range((often or {}).get(number, 10))
                for begin in [10_000 * step + 4_000 * own]
            ]
    run = run_of([summary_of(rank, parts[rank], groups[rank]) for rank in range(8)], nodes)
    return [one.places for one in _of_groups(run)]


def pairs(slow_us: float, usual_us: float = 500.0, *slow: int) -> dict[tuple[int, ...], float]:
    """Pairs across two nodes; the second takes so long, or those that are named."""
    return {(one, one + 4): slow_us if one in (slow or (1,)) else usual_us for one in range(4)}


@pytest.mark.parametrize(
    ("at", "below"),
    [
        ((pairs(575),), (pairs(574),)),  # SLOWER
        ((pairs(900), NODES, {1: 6}), (pairs(900), NODES, {1: 5})),
        ((pairs(12, 10),), (pairs(9.99, 5),)),  # LASTS
    ],
)
def test_a_group_is_slow_by_a_limit_beside_enough_that_are_like_it(at: Any, below: Any) -> None:
    assert slow_between(*at) == [(1, 5)]
    assert slow_between(*below) == []


def test_slow_groups_that_share_no_rank_are_all_meant_unless_nodes_are_not_known() -> None:
    assert slow_between(pairs(1_500, 500, 0, 1)) == [(0, 1, 4, 5)]
    assert slow_between(pairs(1_500, 500, 0, 1), [0] * 8) == []


def test_of_slow_groups_the_rank_or_the_node_is_meant_that_all_of_them_have() -> None:
    slow: dict[tuple[int, ...], float] = {(0, 2): 900.0, (1, 4): 900.0, (3, 6): 500.0, (5, 7): 500.0}
    assert slow_between(slow, TWO_A_NODE) == [(0, 1)]
    fours: dict[tuple[int, ...], float] = {
        (0, 2, 4, 6): 900.0, (1, 3, 5, 7): 500.0, (0, 3): 900.0, (1, 2): 500.0, (4, 7): 500.0,
    }  # fmt: skip
    assert slow_between(fours, TWO_A_NODE) == [(0,)]


def exchanged(
    transfer_us: Sequence[float], count: int = 6, operation: Operation = Operation.EXCHANGE
) -> list[Edit]:
    """Four ranks in exchanges that all begin at once and last so long on each."""
    ranks = [
        summary_of(
            rank,
            [Part(0, turn, 1_000 * turn, 1_000 * turn + us, operation) for turn in range(count)],
            [Group(GroupSource.COMMUNICATOR, 7, len(transfer_us))],
        )
        for rank, us in enumerate(transfer_us)
    ]
    return list(_of_exchanges(run_of(ranks, [0] * 4)))


def test_a_link_is_slow_beside_the_others_of_six_exchanges_that_are_no_latency() -> None:
    (found,) = exchanged([20, 20, 50, 20])
    assert (found.places, found.cost_ns.sum()) == ((2,), 6 * 30 * US)
    assert exchanged([20, 20, 50, 20], count=5) == []
    assert [one.places for one in exchanged([10, 10, 25, 10])] == [(2,)]
    assert exchanged([9, 9, 25, 9]) == []  # the middle is below 10 us
    assert exchanged([20, 20, 50, 20], operation=Operation.ALL_REDUCE) == []  # one ring of all
    assert exchanged([100, 100, 114, 100]) == []  # SLOWER
    assert [one.places for one in exchanged([100, 100, 115, 100])] == [(2,)]


@given(st.integers(3, 9), st.integers(1, 4), st.floats(1, 3))
def test_how_slow_a_link_is_follows_from_what_part_of_all_data_passes_it(
    size: int, behind: int, slow: float
) -> None:
    """Of n ranks k are behind it: the others send k of their n - 1 parts by it, these n - k."""
    if behind * 2 >= size:  # of half all take as long
        return
    of_them, of_others = (1 + (slow - 1) * count / (size - 1) for count in (size - behind, behind))
    seen = of_them / of_others
    found = slowness(np.array([seen]), array([size]), array([behind]))
    assert found == pytest.approx(min(slow, 2 * seen + size))
    # all data of these passes it
    assert slowness(np.array([2.5]), array([3]), array([2])) == pytest.approx(2.5)


def test_what_a_rank_moves_at_the_same_time_shares_its_way() -> None:
    moved: Any = SimpleNamespace(end_ns=array([100, 199, 150, 200]), place=array([0, 0, 1, 0]))
    slow = np.array([True, False, False, False])
    assert _at_once(moved, array([100] * 4), slow).tolist() == [True, True, False, False]

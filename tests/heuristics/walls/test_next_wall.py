"""What comes next once the verdict's wall is gone: of what is left, and only where it was looked at."""

from __future__ import annotations

from heuristics.result.judged import Verdict
from heuristics.walls.next_wall import find_next
from heuristics.walls.price import costs_of
from heuristics.walls.verdict import verdict_of
from tests.doubles.opinions import costs, rank, walls_of
from traces.measurements import RankMeasurements
from traces.missing import Missing
from traces.replay.changes.costs import Without
from traces.replay.proofs import Cost


def left(window_ns: int, **other_ns: int) -> Without:
    """A run of four steps in which the other walls cost so much, evenly."""
    each = {wall: Cost(ns, {}, (ns // 4,) * 4) for wall, ns in other_ns.items()}
    return Without(window_ns, each)


def after_communication(*ranks: RankMeasurements) -> Verdict:
    return find_next(verdict_of(()), "communication", costs_of(ranks), walls_of(ranks))


def test_the_next_wall_is_the_largest_cost_of_what_is_left() -> None:
    without = {"communication": left(600, host_overhead=120, memory=60, compute=0)}
    found = after_communication(rank(costs(400, 200, 60, without=without)))
    assert (found.next_wall, found.next_wall_frac) == ("host_overhead", 0.2)
    assert found.next_because == (
        "the next wall is host overhead: at most 20 % of what is left without communication"
    )


def test_a_wall_that_only_showed_up_behind_the_first_is_named() -> None:
    without = {"communication": left(500, host_overhead=0, memory=100, compute=0)}
    assert after_communication(rank(costs(500, 0, 20, without=without))).next_wall == "memory"


def test_a_wall_that_goes_with_the_first_is_not_next() -> None:
    without = {"communication": left(500, host_overhead=0, memory=0, compute=0)}
    found = after_communication(rank(costs(500, 300, without=without)))
    assert (found.next_wall, found.next_wall_frac) == (None, None)
    assert (
        found.next_because
        == "no other bottleneck of at least 10 % would remain if the communication overhead were removed"
    )


def test_where_a_wall_could_not_be_looked_at_none_is_only_perhaps() -> None:
    without = {"communication": left(500, host_overhead=0, memory=0)}
    found = after_communication(rank(costs(500, compute=None, without=without)))
    assert isinstance(found.next_wall, Missing)


def test_ranks_are_added_and_one_that_loses_little_counts_as_it_is() -> None:
    """600 ns left of the first rank, all 1000 of the second: 120 and 40 of 1600."""
    first = rank(
        costs(400, 200, without={"communication": left(600, host_overhead=120, memory=0, compute=0)})
    )
    second = rank(costs(50, 40))
    found = after_communication(first, second)
    assert (found.next_wall, found.next_wall_frac) == ("host_overhead", 0.1)

"""What comes next once the verdict's wall is gone: of what is left, and only where it was looked at."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heuristics.result.judged import Verdict
from heuristics.walls.costs import costs_of
from heuristics.walls.next_wall import find_next
from heuristics.walls.verdict import verdict_of
from tests.doubles.opinions import BEGUN, NOBODY, account, cost, costs, rank, walls_of, with_memory
from traces.measurements import RankMeasurements
from traces.missing import Missing
from traces.replay.changes.costs import Without
from traces.replay.proofs import Cost
from traces.sections.tables import WallId

AGAIN = rank().recompute
NONE_NEXT = "no other bottleneck of at least 10 % would remain if the communication overhead were removed"


def left(window_ns: int, **other_ns: int) -> Without:
    """A run of four steps in which the other walls cost so much, evenly."""
    each = {wall: Cost(ns, {}, (ns // 4,) * 4) for wall, ns in other_ns.items()}
    return Without(window_ns, each)


def after(first: WallId, *ranks: RankMeasurements) -> Verdict:
    return find_next(verdict_of(()), first, costs_of(ranks), walls_of(ranks))


def of(window_ns: int, *, now_ns: int = 200, **other_ns: int) -> RankMeasurements:
    """A rank that communication costs 400 ns, and the host `now_ns`; and what is left of it."""
    return rank(costs(400, now_ns, 60, without={"communication": left(window_ns, **other_ns)}))


@pytest.mark.parametrize(
    ("window_ns", "host_ns", "frac", "said"),
    [
        (600, 120, 0.2, "the next wall is host overhead: at most 20 % of what is left without communication"),
        (1_000, 100, 0.1,
         "the next wall is host overhead: at most 10 % of what is left without communication"),
        (1_000, 99, None, f"{NONE_NEXT}; the largest cost is then host overhead, 9.9 % of what is left"),
        (1_000, 10, None, f"{NONE_NEXT}; the largest cost is then host overhead, 1.0 % of what is left"),
        (1_000, 9, None, NONE_NEXT),
        (100, 120, 1.0,
         "the next wall is host overhead: at most 100 % of what is left without communication"),
        (0, 0, None, NONE_NEXT),
    ],
)  # fmt: skip
def test_the_next_wall_is_the_largest_cost_of_what_is_left(
    window_ns: int, host_ns: int, frac: float | None, said: str
) -> None:
    found = after("communication", of(window_ns, host_overhead=host_ns, memory=5, compute=0))
    assert (found.next_wall, found.next_wall_frac) == (frac and "host_overhead", frac)
    assert found.next_because == said


@pytest.mark.parametrize(("now_ns", "said"), [(100, False), (99, True)])
def test_a_wall_that_only_showed_up_behind_the_first_says_what_it_costs_today(
    now_ns: int, said: bool
) -> None:
    found = after("communication", of(500, now_ns=now_ns, host_overhead=100, memory=10, compute=0))
    assert found.next_wall == "host_overhead"
    assert found.next_because.endswith(f", though {now_ns / 10:.2g} % of the run as it is") is said


def test_where_a_wall_could_not_be_looked_at_none_is_only_perhaps() -> None:
    without = {"communication": left(500, host_overhead=0, memory=0)}
    open_ = rank(costs(500, compute=None, without=without), recompute=replace(AGAIN, at_most_ns=None))
    found = after("communication", with_memory(open_, recompute_ns=NOBODY))
    assert found.next_wall == Missing("", "time of recompute unknown: nobody looked", "look")
    assert found.next_wall_frac == found.next_wall
    assert found.next_because == f"{NONE_NEXT}, but memory, compute could not be judged"
    without = {"communication": left(500, host_overhead=100, memory=0)}
    found = after("communication", rank(costs(500, 200, compute=None, without=without)))
    assert (found.next_wall, found.next_wall_frac) == ("host_overhead", 0.2)
    assert found.next_because.endswith("; compute could not be judged")


def test_the_first_wall_is_none_that_could_not_be_judged_though_it_has_no_price() -> None:
    short = with_memory(rank(costs(memory=1)), allocator_retry_frac=1.0, peak_bytes=80)
    found = after("memory", short)
    assert (found.next_wall, "could not be judged" in found.next_because) == (None, False)


def test_ranks_are_added_and_one_that_loses_little_counts_as_it_is() -> None:
    """600 ns left of the first rank, all 800 of the second that are no start-up: 120 and 20 of 1400."""
    first = of(600, host_overhead=120, memory=0, compute=0)
    begun = account({"profiler": 200})
    found = after("communication", first, rank(costs(79, 20), account=begun))
    assert (found.next_wall, found.next_wall_frac) == ("host_overhead", 0.1)
    lost = after("communication", first, rank(costs(80, 20), account=begun))
    assert isinstance(lost.next_wall, Missing)
    assert lost.next_because == "what comes after communication is not known"
    blind = after("communication", first, rank(NOBODY))  # a rank without prices does not count
    assert (blind.next_wall, blind.next_wall_frac) == ("host_overhead", 0.2)


def test_a_cost_is_of_what_is_left_of_the_ranks_that_tell_it() -> None:
    """Compute is 60 of 600 ns; the second rank has no launch shapes, and its 600 ns say nothing of it."""
    told = rank(
        costs(400, 0, 0, 300, without={"communication": left(600, host_overhead=0, memory=0, compute=60)})
    )
    untold = rank(costs(400, compute=None, without={"communication": left(600, host_overhead=0, memory=0)}))
    found = after("communication", told, untold)
    assert (found.next_wall, found.next_wall_frac) == ("compute", 0.1)
    without = {"host_overhead": left(600, communication=60, memory=0, compute=0)}
    heard, other = rank(costs(120, 400, without=without)), left(700, communication=60)
    nameless = rank(costs(120, 400, without={"host_overhead": other}), unseen=NOBODY)
    found = after("host_overhead", heard, nameless)
    assert (found.next_wall, found.next_wall_frac) == ("communication", 0.1)


def test_start_up_is_no_part_of_what_is_left() -> None:
    """Of 1000 ns the profiler takes 100, initialisation 100; that one goes with the host."""
    without = {"communication": left(800, host_overhead=160, memory=0, compute=0)}
    host = cost(160, {"python": 60, "lazy_init": 100})
    found = after("communication", rank(costs(400, host, without=without), account=BEGUN))
    assert (found.next_wall, found.next_wall_frac) == ("host_overhead", 0.1)
    without = {"host_overhead": left(700, communication=60, memory=0, compute=0)}
    found = after("host_overhead", rank(costs(100, 400, without=without), account=BEGUN))
    assert (found.next_wall, found.next_wall_frac) == ("communication", 0.1)
    none = after("host_overhead", rank(costs(100, 400, without={"host_overhead": left(700)}), account=BEGUN))
    assert none.next_because.endswith("if the host overhead were removed")

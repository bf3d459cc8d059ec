"""What a wall costs a run of several ranks: windows unlike each other, opaque, doubted, sampled."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heuristics.run.run import WALL_IDS
from heuristics.walls.costs import costs_of
from heuristics.walls.price import UNNAMED, Price, Unpriced, price, wall_of
from tests.doubles.opinions import (
    BEGUN,
    JUDGE,
    NOBODY,
    SURE,
    UNBOUNDED,
    account,
    budget,
    cost,
    costing,
    costs,
    evidence,
    judge_communication,
    judge_host,
    rank,
    seen,
    steps_of,
    walls_of,
)
from traces.limits import HALF_A_WALL, WALL
from traces.measure.bounds import Bounds
from traces.measurements import RankMeasurements
from traces.missing import Missing
from traces.sections.tables import WallId

LONG = replace(budget(), window_ns=2_000, idle_ns=1_000)
"""Windows of 2000 ns, twice those of another rank."""
UNNAMED_80 = replace(rank().unnamed, alone_ns=80, apart_ns=40)


def priced(wall: WallId, *ranks: RankMeasurements) -> Price:
    found = price(costs_of(ranks), wall)
    assert isinstance(found, Price)
    return found


@pytest.mark.parametrize("wall", WALL_IDS)
def test_the_rank_that_pays_the_largest_part_of_its_own_windows_is_named(wall: WallId) -> None:
    """300 of 1000 ns are more than 400 of 2000, and 290 of 800 are more than both; together 990 of 3800."""
    short, long = costing(wall, 300), replace(costing(wall, 400), budget=LONG)
    begun = replace(costing(wall, 290), account=account({"profiler": 200}))
    for ranks, place in (((short, long, begun), 2), ((begun, short, long), 0)):
        found = priced(wall, *ranks)
        assert (found.ns, found.frac, found.rank) == (990, 990 / 3_800, place)


def of_replays(replays_ns: int, bounds: Bounds = UNBOUNDED) -> RankMeasurements:
    """A rank whose compute lies in graphs that were recorded whole for so much of 1000 ns."""
    by_class = {"gemm": 1_000 - replays_ns, "graph_replay": replays_ns}
    held = replace(budget(), compute_by_class_ns=by_class)
    return rank(costs(50, 50, 50, 50), budget=held, bounds=bounds)


def test_graphs_recorded_whole_for_a_tenth_of_the_windows_hide_every_wall_but_the_hosts() -> None:
    outcomes = {ns: [JUDGE[wall]([of_replays(ns)]).outcome for wall in WALL_IDS] for ns in (99, 100)}
    assert outcomes == {99: ["clear"] * 4, 100: ["unmeasurable", "unmeasurable", "clear", "unmeasurable"]}
    bounded = Bounds(90, 90, 90, 90)
    found = priced("memory", of_replays(200, bounded), rank(NOBODY, bounds=bounded))
    assert found.at_most_frac is None  # the partition does not see into them either
    assert "recorded whole" in known_reason(found)
    blind = price(costs_of([replace(of_replays(200), costs=NOBODY), rank(NOBODY, kind="kineto")]), "memory")
    assert isinstance(blind, Unpriced)
    assert blind.why.cure == "record with --cuda-graph-trace=node"  # of the first rank's recorder
    long = rank(budget=replace(budget(), window_ns=1_005))
    two = [JUDGE["memory"]([of_replays(ns), long]).outcome for ns in (200, 201)]
    assert two == ["clear", "unmeasurable"]


def known_reason(found: Price | Unpriced) -> str:
    why = found.why if isinstance(found, Unpriced) else found.at_least
    assert why is not None
    return why.reason


@pytest.mark.parametrize(("begun_ns", "busy_ns", "said"), [(900, 0, True), (904, 47, False), (904, 48, True)])
def test_after_start_up_of_nine_tenths_a_rest_of_half_work_has_a_price(
    begun_ns: int, busy_ns: int, said: bool
) -> None:
    begun = rank(account=account({"profiler": begun_ns}), budget=budget(busy_ns))
    found = price(costs_of([begun]), "memory")
    assert isinstance(found, Price) is said
    if not said:
        assert "profiler and start-up take 90 %" in known_reason(found)


def test_start_up_of_each_rank_is_taken_from_its_own_windows_alone() -> None:
    """One of two ranks initialises for 200 of 1000 ns: 88 + 92 of 1800; the host's most is 300 - 200."""
    begun = account({"lazy_init": 200})
    ranks = [rank(costs(88), account=begun), rank(costs(92))]
    assert priced("communication", *ranks).frac == 0.1
    (one,) = costs_of([rank(NOBODY, account=begun, bounds=Bounds(None, 300, None, None))]).ranks
    assert one.most_ns("host_overhead") == 100
    (none,) = costs_of([rank(NOBODY, account=begun, bounds=Bounds(None, 100, None, None))]).ranks
    assert none.most_ns("host_overhead") == 0


def test_compute_of_unknown_class_may_be_communication_beside_what_is_known_of_it() -> None:
    """30 are proven and 80 more may be: at most 110; without a replay, its bound and 80."""
    proven = rank(costs(30), unnamed=UNNAMED_80, bounds=Bounds(500, 0, 0, 0))
    found = judge_communication([proven])
    assert (found.outcome, found.at_most_frac) == ("unmeasurable", 0.11)
    doubted = rank(costs(30, at_least=NOBODY), unnamed=UNNAMED_80, bounds=Bounds(40, 0, 0, 0))
    assert judge_communication([doubted]).at_most_frac == 0.12
    blind = rank(NOBODY, unnamed=UNNAMED_80, bounds=Bounds(70, 0, 0, 0))
    assert judge_communication([blind]).at_most_frac == 0.15
    unbounded = rank(NOBODY, unnamed=UNNAMED_80, bounds=Bounds(None, 0, 0, 0))
    assert isinstance(judge_communication([unbounded]).at_most_frac, Missing)
    begun = account({"lazy_init": 600})
    (all_of_it,) = costs_of([replace(blind, account=begun, bounds=Bounds(390, 0, 0, 0))]).ranks
    assert all_of_it.most_ns("communication") == 400  # of the windows without start-up


def test_few_kernels_of_unknown_class_leave_communication_clear_and_many_never() -> None:
    few = replace(rank().unnamed, alone_ns=50)
    assert judge_communication([rank(costs(30), unnamed=few)]).outcome == "clear"
    found = judge_communication([rank(costs(10), unnamed=UNNAMED_80, bounds=Bounds(10, 0, 0, 0)), rank()])
    assert (found.outcome, found.at_most_frac) == ("unmeasurable", 0.045)
    assert "cost_frac" in seen(found)
    walls = walls_of([rank(costs(100), unnamed=UNNAMED_80, bounds=Bounds(100, 100, 100, 100))])
    assert [one.outcome for one in walls] == ["clear", "finding", "clear", "clear"]
    assert [one.at_most_frac for one in walls] == [None, 0.18, None, None]


@pytest.mark.parametrize(("apart_ns", "word"), [(39, "may be"), (40, "are probably")])
def test_kernels_that_mostly_stand_apart_are_probably_communication(apart_ns: int, word: str) -> None:
    """Of the first rank 80 of 2000 ns are too few to matter, and so are those of them that stand apart."""
    unknown = replace(UNNAMED_80, apart_ns=apart_ns)
    found = priced("communication", rank(unnamed=unknown, budget=LONG), rank(unnamed=unknown))
    assert found.at_least is not None
    assert found.at_least.path == UNNAMED
    assert known_reason(found).startswith(f"kernels of unknown class take 2.7 % and {word} communication")


def test_unknown_kernels_are_a_share_of_the_windows_without_start_up() -> None:
    assert known_reason(priced("communication", rank(unnamed=UNNAMED_80, account=BEGUN))).startswith(
        "kernels of unknown class take 10 %"
    )


def test_of_doubted_replays_the_one_that_shrinks_least_says_why() -> None:
    def doubted(frac: float, why: str) -> RankMeasurements:
        return rank(costs(proofs=replace(SURE, elastic_frac=frac), at_least=Missing("replay", why, "again")))

    sure = rank(costs(proofs=replace(SURE, elastic_frac=0.1)))
    assert known_reason(priced("memory", doubted(0.3, "more"), doubted(0.2, "least"), sure)) == "least"
    assert priced("memory", rank(), rank()).at_least is None


def test_a_price_is_proven_only_where_it_is_of_every_rank() -> None:
    """The rank without a replay has its bound of 120, the one in doubt the larger of 40 and its bound."""
    bounded, held = Bounds(120, 120, 120, 120), costs(40, 40, 40, 40, at_least=NOBODY)
    blind, doubted = rank(NOBODY, bounds=bounded), rank(held, bounds=bounded)
    proven = costing("memory", 60)
    run = costs_of([proven, blind, doubted])
    assert run.at_most_frac("memory") == 300 / 3_000
    assert costs_of([proven]).at_most_frac("memory") is None
    assert costs_of([replace(proven, bounds=bounded)]).at_most_frac("memory", proofs_hold=False) == 0.12
    heard = costs_of([replace(costing("communication", 60), bounds=bounded)])
    assert heard.at_most_frac("communication", proofs_hold=False) == 0.12
    small = Bounds(10, 10, 10, 10)
    assert costs_of([replace(doubted, bounds=small)]).at_most_frac("memory") == 0.04
    unseen = rank(costs(), unseen=NOBODY, bounds=bounded)
    assert costs_of([unseen]).at_most_frac("communication") is None
    assert costs_of([replace(unseen, costs=NOBODY, unnamed=UNNAMED_80)]).at_most_frac("memory") == 0.12


def test_without_a_price_the_most_is_of_all_windows_less_start_up() -> None:
    blind = rank(NOBODY, bounds=Bounds(60, 60, 60, 60), account=account({"profiler": 400}))
    found = judge_host([blind, replace(blind, budget=LONG)])
    assert (found.outcome, found.cost_ns, found.cost_frac) == ("clear", 120, 120 / 2_200)


@pytest.mark.parametrize(
    ("first_ns", "later_ns"),
    [(100, 4_000), (200, 3_900)],
    ids=["the second stands for both", "the first is replayed"],
)
def test_of_a_sample_only_the_first_used_step_is_left_out(first_ns: int, later_ns: int) -> None:
    """32 of 40 steps are replayed: of eight pairs of equal length the second, and all others."""
    steps = steps_of(first_ns, *[100] * 39)
    one = rank(costs(cost(310, steps=(0, *[10] * 31))), steps=steps)
    assert priced("communication", one).steady_frac == 310 / later_ns


@pytest.mark.parametrize(
    ("row", "wall"),
    [
        ("compute.gemm", "compute"), ("exposed_comm.tp", "communication"), ("exposed_copy.memset", None),
        ("blocking.tp", "communication"), ("blocking.memset", None),
        ("launch_starved.python", "host_overhead"), ("idle.launch_starved.allocator", "memory"),
        ("launch_starved.profiler", None), ("launch_latency.arrival", "host_overhead"),
        ("launch_latency.kernel_gap", None), ("moe.dispatch.forward", "communication"),
        ("moe.dispatch.recompute", "memory"), ("moe.router.backward", "compute"),
        ("moe.preprocess_and_token_sync.forward", None), ("idle", None),
    ],
)  # fmt: skip
def test_a_row_belongs_to_the_wall_whose_absence_shrinks_it(row: str, wall: WallId | None) -> None:
    assert wall_of(row) == wall


def test_the_cost_in_steady_steps_stands_under_its_own_limit() -> None:
    found = judge_communication([rank(costs(cost(400)))])
    for name, limit in (("cost_frac", WALL), ("steady_cost_frac", HALF_A_WALL)):
        one = evidence(found, name)
        assert (one.limit, one.unit, one.because) == (limit.value, limit.unit, limit.because)

"""The outcome of each wall, over one rank or several: never clear for want of looking."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec.structs import replace as replace_fields

from heuristics.result.judged import Wall
from heuristics.run.run import WALL_IDS
from heuristics.walls.memory import does_not_fit
from heuristics.walls.price import only_in_first_step
from tests.by_hand.run import Run
from tests.doubles.opinions import (
    BLIND,
    DOUBT,
    JUDGE,
    NOBODY,
    SURE,
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
from traces.measure.bounds import Bounds
from traces.measurements import RankMeasurements
from traces.missing import Missing, known
from traces.sections.rank import A2a, Span
from traces.sections.tables import WallId

US = 1_000


@pytest.mark.parametrize("wall", WALL_IDS)
def test_a_tenth_of_the_window_is_a_finding_and_less_is_clear(wall: WallId) -> None:
    found, clear = JUDGE[wall]([costing(wall, 100)]), JUDGE[wall]([costing(wall, 99)])
    assert (found.id, found.outcome, found.cost_ns, found.cost_frac) == (wall, "finding", 100, 0.1)
    assert (clear.id, clear.outcome, clear.cost_ns, clear.cost_frac) == (wall, "clear", 99, 0.099)


@pytest.mark.parametrize("wall", WALL_IDS)
def test_a_refused_replay_prices_nothing(wall: WallId) -> None:
    refused = costing(wall, 900, refused=Missing("replay", "misses by 40%", "record events"))
    found = JUDGE[wall]([refused, rank(BLIND)])  # the first says why
    assert (found.outcome, known(found.cost_ns)) == ("unmeasurable", None)
    assert (found.missing, found.cure) == (("misses by 40%",), "record events")


@pytest.mark.parametrize("wall", WALL_IDS)
def test_a_cost_that_may_be_more_is_a_finding_or_unmeasurable_and_never_clear(wall: WallId) -> None:
    large, small = (JUDGE[wall]([costing(wall, ns, at_least=DOUBT)]) for ns in (100, 99))
    assert (large.outcome, large.cost_ns) == ("finding", 100)
    assert (small.outcome, known(small.cost_ns), small.missing) == ("unmeasurable", None, (DOUBT.reason,))


def test_without_launch_shapes_only_compute_is_unmeasurable() -> None:
    walls = walls_of([rank(costs(compute=None))])
    assert [wall.outcome for wall in walls] == ["clear", "clear", "clear", "unmeasurable"]
    assert "launch shapes" in walls[3].missing[0]
    assert "kernel table" in walls[3].cure


def test_where_kernels_cannot_be_told_apart_only_communication_is_unmeasurable() -> None:
    walls = walls_of([rank(costs(communication=500), unseen=NOBODY)])
    assert [wall.outcome for wall in walls] == ["clear", "unmeasurable", "clear", "clear"]
    assert known(walls[1].cost_ns) is None
    assert walls[1].evidence == ()
    assert "--cuda-graph-trace=node" in walls[1].cure


def test_kinds_of_several_ranks_add_up() -> None:
    ranks = [
        rank(costs(communication=cost(200, {"tp": 120, "cp": 80}))),
        rank(costs(communication=cost(100, {"tp": 100}))),
    ]
    assert judge_communication(ranks).cost_by_kind_ns == {"tp": 220, "cp": 80}


def test_exposed_blocking_and_hidden_communication_stand_beside_its_cost() -> None:
    one = rank(
        costs(communication=120),
        budget=budget(600, 300, 50),
        account=account(blocking={"other_comm": 200, "memcpy_d2h": 100}),
    )
    found = judge_communication([one])
    assert evidence(found, "exposed_comm_frac").value == 0.3
    assert evidence(found, "blocking_comm_frac").value == 0.2
    assert evidence(found, "hidden_comm_frac").value == 0.05
    assert found.cost_frac == 0.12


def test_late_launches_and_what_masks_them_stand_beside_the_cost_of_the_host() -> None:
    starved = replace(account({"python": 200, "gc": 100}), masked_ns=50)
    found = judge_host([rank(costs(host_overhead=150), account=starved)])
    assert evidence(found, "launch_starved_frac").value == 0.3
    assert evidence(found, "masked_frac").value == 0.05
    assert "graph_share_frac" not in seen(found)
    graphed = [rank(detected=replace_fields(rank().detected, graph_share_frac=one)) for one in (0.7, NOBODY)]
    assert evidence(judge_host(graphed), "graph_share_frac").value == 0.7


def test_start_up_above_a_twentieth_is_left_out_of_the_windows_and_of_the_hosts_cost() -> None:
    """Of 1000 the profiler and initialisation take 200: 88 of 800 is 11 %, the host's 130 - 50 is 10 %."""
    held = account({"profiler": 150, "lazy_init": 50, "python": 80})
    host = cost(130, {"python": 120, "lazy_init": 50})
    one = rank(costs(communication=88, host_overhead=host), account=held)
    assert judge_communication([one]).cost_frac == 0.11
    found = judge_host([one])
    assert (found.cost_ns, found.cost_frac, dict(known(found.cost_by_kind_ns) or {})) == (
        80,
        0.1,
        {"python": 80},
    )


def outcomes(run: Run) -> tuple[dict[WallId, tuple[str, float | None]], dict[WallId, Wall]]:
    """Outcome and cost of each wall, in us; and the walls."""
    walls = {wall.id: wall for wall in run.judged().walls}
    costs = {id_: (wall.outcome, known(wall.cost_ns)) for id_, wall in walls.items()}
    return {id_: (outcome, ns and ns / US) for id_, (outcome, ns) in costs.items()}, walls


CLEAR = dict.fromkeys(WALL_IDS, ("clear", 0))


@pytest.mark.parametrize(("first_frees", "cost"), [(True, 120), (False, 90)])
def test_giving_memory_back_in_every_step_costs_the_wait_for_it(first_frees: bool, cost: int) -> None:
    """30 us between the two kernels of a step; in the first step too where the cache was full already."""
    run = Run()
    for place, step in enumerate(run.steps(4, every=100)):
        step.work("gemm", 0, 50)
        if place or first_frees:
            step.call("free", 10, 50)
        step.call("malloc", 50, 80)
        step.work("gemm", 80, 100, launch=80)
    costs, walls = outcomes(run)
    memory = walls["memory"]
    assert costs["memory"] == ("finding", cost)
    assert memory.cost_by_kind_ns == {"allocator": cost * US}
    assert (does_not_fit((memory,)), evidence(memory, "allocator_retry_frac").value) == (True, 1.0)


@pytest.mark.parametrize("sm_count", [132, None])
def test_grids_of_a_quarter_of_the_sms_cost_three_quarters_of_their_time(sm_count: int | None) -> None:
    """80 us at 33 of 132 blocks and 20 at 132, four times: 60 us a step could go."""
    run = Run(ahead_us=500, sm_count=sm_count)
    for step in run.steps(4, every=100):
        step.work("gemm", 0, 80, blocks=33)
        step.work("gemm", 80, 100)
    costs, walls = outcomes(run)
    if sm_count is None:
        assert costs == CLEAR | {"compute": ("unmeasurable", None)}
        assert "GPU table" in walls["compute"].cure
    else:
        assert costs == CLEAR | {"compute": ("finding", 240)}
        assert evidence(walls["compute"], "under_filled_frac").value == 0.8


def test_where_clocks_are_apart_only_the_partition_bounds_a_wall() -> None:
    run = Run(gpu_clock=9_000)
    for at in range(0, 3_200, 100):
        run.work("gemm", at, at + 60)
    costs, walls = outcomes(run)
    assert costs == CLEAR | {"host_overhead": ("unmeasurable", None)}
    assert "clocks may be apart" in walls["host_overhead"].missing[0]


@pytest.mark.parametrize("wall", WALL_IDS)
@pytest.mark.parametrize("blind", [rank(BLIND), rank(costs(refused=BLIND))], ids=["no account", "refused"])
def test_a_rank_without_costs_leaves_a_finding_and_keeps_the_rest_from_being_clear(
    wall: WallId, blind: RankMeasurements
) -> None:
    found, open_ = (JUDGE[wall]([blind, costing(wall, ns)]) for ns in (100, 99))
    assert (found.outcome, found.cost_ns, found.cost_frac) == ("finding", 100, 0.1)
    assert found.evidence[0].rank == 1
    assert (open_.outcome, known(open_.cost_ns), known(open_.cost_frac)) == ("unmeasurable", None, None)
    assert (open_.missing, open_.cure) == ((BLIND.reason,), BLIND.cure)


def in_steps(wall: WallId, *each_ns: int) -> RankMeasurements:
    """A rank of a step of 400 ns and three of 200 that a handicap costs so much each."""
    return rank(
        costs(**{wall: cost(sum(each_ns), steps=each_ns)}),  # type: ignore[arg-type]
        steps=steps_of(400, 200, 200, 200),
    )


@pytest.mark.parametrize("wall", WALL_IDS)
def test_a_cost_that_the_steps_after_the_first_hardly_pay_may_be_warm_up(wall: WallId) -> None:
    """Of 600 ns after the first step 30 are a twentieth, and 27 are not."""
    stays, warm_up = (JUDGE[wall]([in_steps(wall, *each)]) for each in ((90, 10, 10, 10), (93, 9, 9, 9)))
    for found, frac, may_be in ((stays, 0.05, False), (warm_up, 0.045, True)):
        assert (found.outcome, found.cost_frac, only_in_first_step(found)) == ("finding", 0.12, may_be)
        steady = evidence(found, "steady_cost_frac")
        assert (steady.value, steady.limit, steady.rank) == (frac, 0.05, None)


def test_the_steps_after_the_first_add_up_over_ranks() -> None:
    """Each rank leaves its own first step out: 60 of 1200 ns are a twentieth."""
    ranks = [in_steps("communication", 300, 0, 0, 0), in_steps("communication", 0, 20, 20, 20)]
    found = judge_communication(ranks)
    assert (found.outcome, evidence(found, "steady_cost_frac").value) == ("finding", 0.05)


@pytest.mark.parametrize("each_ns", [(300, 0, 0), (300, 0), (300,), ()])
def test_under_three_steps_none_is_the_usual_one(each_ns: tuple[int, ...]) -> None:
    lengths = [1_000 // len(each_ns)] * len(each_ns) if each_ns else []
    found = judge_communication(
        [rank(costs(communication=cost(300, steps=each_ns)), steps=steps_of(*lengths))]
    )
    assert (found.outcome, found.cost_ns) == ("finding", 300)
    assert ("steady_cost_frac" in seen(found)) is (len(each_ns) == 3)


def test_the_longest_all_to_all_names_its_rank_and_place() -> None:
    def sending(*lengths_ns: int) -> RankMeasurements:
        spans = tuple(Span("ep_dispatch", 400 - ns, 400, 1, None, None) for ns in lengths_ns)
        return rank(a2a=A2a(len(spans), 0, 0, None, 0, 0, None, 0, spans))

    found = judge_communication([sending(10, 30), rank(a2a=NOBODY), sending(20, 40)])
    longest = evidence(found, "longest_ep_dispatch_ns")
    assert (longest.value, longest.unit, longest.rank) == (40, "ns", 2)
    assert (longest.start_ns, longest.end_ns, longest.step) == (360, 400, 1)


def test_blocking_communication_is_told_where_every_rank_that_tells_communication_has_an_account() -> None:
    told = rank(account=account(blocking={"tp": 300}), budget=budget(600, 400))
    assert (
        evidence(judge_communication([told, rank(unseen=NOBODY, account=BLIND)]), "blocking_comm_frac").value
        == 0.3
    )
    assert "blocking_comm_frac" not in seen(judge_communication([told, rank(account=BLIND)]))


@pytest.mark.parametrize(
    ("ns", "off", "outcome"), [(80, 0.02, "unmeasurable"), (80, 0.019, "clear"), (100, 0.02, "finding")]
)
def test_waits_that_no_edge_explains_may_make_communication_a_wall(ns: int, off: float, outcome: str) -> None:
    """The rank that explains least decides; the most is then the bound of the partition."""
    proofs = replace(SURE, residual_free_error_frac=off)
    ranks = [rank(costs(ns)), rank(costs(ns, proofs=proofs))]
    found = judge_communication(ranks)
    assert found.outcome == outcome
    assert all("waits that nothing recorded explains" in said for said in found.missing)
    doubted = judge_communication([*ranks, rank(costs(ns, at_least=DOUBT))])
    assert (DOUBT.reason in doubted.missing) is (outcome == "clear")
    bounds = Bounds(90, 90, 90, 90)
    bounded = judge_communication([replace(one, bounds=bounds) for one in ranks])
    assert bounded.outcome == "clear"  # no cost is above its bound
    unnamed = replace(rank().unnamed, alone_ns=80)
    (said,) = judge_communication([replace(one, unnamed=unnamed) for one in ranks]).missing or ("kernels",)
    assert said.startswith("kernels")  # what is said already stays

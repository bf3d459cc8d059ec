"""A wall over several ranks and steps: ranks without costs, warm-up, and evidence over all ranks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heuristics.run.run import WALL_IDS
from heuristics.walls.price import only_in_first_step
from tests.doubles.opinions import (
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
    rank,
    seen,
    steps_of,
)
from traces.measure.bounds import Bounds
from traces.measurements import RankMeasurements
from traces.missing import Missing, known
from traces.sections.rank import A2a, Span
from traces.sections.tables import WallId

BLIND = Missing("replay", "clock offset: 3 ms", "record again")


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


def test_a_rank_whose_kernels_cannot_be_told_apart_keeps_communication_from_being_clear() -> None:
    found = judge_communication([costing("communication", 99), rank(unseen=NOBODY)])
    assert found.outcome == "unmeasurable"
    assert "--cuda-graph-trace=node" in found.cure


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


@pytest.mark.parametrize("each_ns", [(300, 0), (300,), ()])
def test_under_three_steps_none_is_the_usual_one(each_ns: tuple[int, ...]) -> None:
    lengths = [1_000 // len(each_ns)] * len(each_ns) if each_ns else []
    found = judge_communication(
        [rank(costs(communication=cost(300, steps=each_ns)), steps=steps_of(*lengths))]
    )
    assert (found.outcome, found.cost_ns) == ("finding", 300)
    assert "steady_cost_frac" not in seen(found)


def test_of_three_steps_the_first_may_be_warm_up() -> None:
    one = rank(costs(communication=cost(300, steps=(300, 0, 0))), steps=steps_of(400, 300, 300))
    assert only_in_first_step(judge_communication([one]))


def test_the_longest_all_to_all_names_its_rank_and_place() -> None:
    def sending(*lengths_ns: int) -> RankMeasurements:
        spans = tuple(Span("ep_dispatch", 300, 300 + ns, 1, None, None) for ns in lengths_ns)
        return rank(a2a=A2a(len(spans), 0, 0, None, 0, 0, None, 0, spans))

    found = judge_communication([sending(10, 30), rank(a2a=NOBODY), sending(20, 40)])
    longest = evidence(found, "longest_ep_dispatch_ns")
    assert (longest.value, longest.unit, longest.rank) == (40, "ns", 2)
    assert (longest.start_ns, longest.end_ns, longest.step) == (300, 340, 1)


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
    bounds = Bounds(90, 90, 90, 90)
    bounded = judge_communication([replace(one, bounds=bounds) for one in ranks])
    assert bounded.outcome == "clear"  # no cost is above its bound
    unnamed = replace(rank().unnamed, alone_ns=80)
    (said,) = judge_communication([replace(one, unnamed=unnamed) for one in ranks]).missing or ("kernels",)
    assert said.startswith("kernels")  # what is said already stays

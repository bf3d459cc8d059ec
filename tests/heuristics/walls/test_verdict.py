"""One verdict of four walls, how sure it is, where the time goes, and their place in the document."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, structs

from heuristics.judging.judgement import judge
from heuristics.result.judged import Verdict, Wall
from heuristics.walls.costs import costs_of
from heuristics.walls.verdict import find_verdict
from heuristics.walls.verdict import verdict_of as of_walls
from tests.doubles.opinions import BLIND, DOUBT, SURE, costs, rank, wall, walls, with_memory
from traces.missing import Missing, known
from traces.sections.tables import WallId


def verdict_of(*found: Wall) -> Verdict:
    return find_verdict(costs_of([rank()]), found)


def kind_of(**kinds: int) -> str | None:
    return known(verdict_of(wall("communication", 50, kinds=kinds)).kind)


def test_the_largest_finding_is_the_verdict_and_the_next_cost_runs_up() -> None:
    found = verdict_of(*walls(communication=15, host_overhead=40, compute=20))
    assert (found.wall, found.tied_with, found.runner_up) == ("host_overhead", (), "compute")
    assert found.because == (
        "without host overhead the windows would be at most 40 % shorter",
        "compute at most 20 %",
        "communication at most 15 %",
    )


def test_none_found_names_the_closest() -> None:
    found = verdict_of(*walls(communication=9.9, compute=5))
    assert (found.wall, found.kind, found.tied_with, found.confidence) == (None, None, (), None)
    assert found.runner_up == "communication"
    assert found.because[0].endswith("the closest is communication, 9.9 %")
    assert len(found.because) == 1


def test_the_error_of_prices_is_that_of_the_worst_rank_that_has_any() -> None:
    found = wall("communication", 40), wall("compute", 34)
    ranks = [rank(costs(proofs=replace(SURE, residual_free_error_frac=off))) for off in (0.07, 0.01)]
    assert find_verdict(costs_of([*ranks, rank(BLIND)]), found).tied_with == ("compute",)
    assert find_verdict(costs_of([rank(BLIND)]), found).tied_with == ()


@pytest.mark.parametrize(
    ("found", "wall_id", "fits"),
    [
        (walls(communication=60, memory=10), "memory", False),
        (walls(communication=60, memory=9), "communication", True), (walls(), None, True),
    ],
)  # fmt: skip
def test_a_run_out_of_memory_has_that_wall_first_where_it_is_a_finding(
    found: list[Wall], wall_id: WallId | None, fits: bool
) -> None:
    told = of_walls(found, out_of_memory=True)
    assert (told.wall, told.does_not_fit, told.tied_with) == (wall_id, not fits, ())
    assert (of_walls(found).does_not_fit, of_walls(found).tied_with) == (False, ())


def test_what_does_not_fit_ties_with_nothing_however_near() -> None:
    short = wall("memory", 30, "finding", retried=True)
    assert verdict_of(short, wall("communication", 30)).tied_with == ()
    assert verdict_of(wall("memory", 30), wall("communication", 30)).tied_with == ("communication",)


@pytest.mark.parametrize(
    ("percent", "said"), [(1, ("without memory the windows would be at most 1.0 % shorter",)), (None, ())]
)
def test_what_does_not_fit_comes_before_what_costs_more(percent: float | None, said: tuple[str, ...]) -> None:
    found = verdict_of(wall("memory", percent, "finding", retried=True), wall("communication", 60))
    assert (found.wall, found.kind, found.tied_with, found.runner_up) == ("memory", None, (), "communication")
    assert "what does not fit cannot be tuned" in found.because[0]
    assert found.because[1:] == (*said, "communication at most 60 %")


@pytest.mark.parametrize(("percent", "is_near"), [(1.0, True), (0.9, False), (0, False)])
def test_the_closest_of_no_walls_is_named_from_one_percent_up(percent: float, is_near: bool) -> None:
    found = verdict_of(*walls(communication=percent))
    assert ("the closest is communication" in found.because[0]) is is_near
    assert found.runner_up == ("communication" if percent else None)


@pytest.mark.parametrize(("most", "said"), [(0.2, " (at most 20 %)"), (1.0, ""), (None, "")])
def test_an_undecided_wall_says_its_most_where_that_is_less_than_all(most: float | None, said: str) -> None:
    blind = structs.replace(wall("compute", None), at_most_frac=most, missing=("nobody looked", "nor asked"))
    found = verdict_of(*walls(communication=5)[:3], blind)
    assert found.because[0].endswith(f"5.0 %; not judged: compute{said}")
    assert found.because[1] == f"compute could not be judged{said}: nobody looked"


def test_only_findings_that_cost_anything_are_listed_beside_the_verdict() -> None:
    others = wall("memory", 0, "finding"), wall("host_overhead", 9), wall("compute", 30, "unmeasurable")
    found = verdict_of(wall("communication", 20), *others)
    assert found.because == ("without communication the windows would be at most 20 % shorter",)
    assert found.runner_up == "host_overhead"
    assert verdict_of(wall("communication", 20), wall("memory", 0)).runner_up is None


@given(first=st.integers(13, 100), second=st.integers(10, 97))
def test_costs_that_are_three_points_apart_are_told_apart_however_steps_vary(first: int, second: int) -> None:
    """27 against 11 %, 54 against 11 %: a spread of steps is no error of what they cost on average."""
    found = verdict_of(wall("communication", first), wall("compute", second))
    assert bool(found.tied_with) == (abs(first - second) < 3)


def test_dispatch_and_combine_count_as_one_kind() -> None:
    assert kind_of(ep_dispatch=30, ep_combine=30, dp_reduce_scatter=50) == "ep_a2a"
    assert kind_of(ep_dispatch=20, ep_combine=20, dp_reduce_scatter=50) == "dp"
    assert kind_of(ep_control=30, ep_a2a=30, tp=50) == "ep_a2a"


def test_a_kind_outside_of_the_families_keeps_its_name() -> None:
    assert kind_of(ep_dispatch=20, tp=50) == "tp"
    assert kind_of(sendrecv_unresolved=20) == "sendrecv_unresolved"
    assert kind_of() is None


def test_hard_evidence_that_it_does_not_fit_is_the_verdict_where_nothing_could_be_priced() -> None:
    for priced in (costs(memory=50, communication=300, at_least=DOUBT), BLIND):
        short = with_memory(rank(priced), allocator_retry_frac=1.0)
        assert judge([short]).verdict.wall == "memory"


def test_the_windows_of_a_run_are_those_of_the_ranks_with_costs() -> None:
    ranks = [rank(costs(communication=300)), rank(BLIND), rank(costs(refused=DOUBT))]
    assert (judge(ranks).run.window_ns, judge([rank(), rank()]).run.window_ns) == (1_000, 2_000)


def test_walls_beside_the_verdict_are_planned_for_after_it() -> None:
    found = judge([rank(costs(compute=300, memory=400))])
    planned = [one.fix.wall for one in found.plan.fixes if one.fix.id != "COM-3"]
    assert list(dict.fromkeys(planned)) == ["memory", "compute"]


@pytest.mark.parametrize(
    ("peak", "retried", "room"),
    [(50, 0.0, "enough"), (91, 0.0, "tight"), (None, 0.0, "unknown"), (50, 1.0, "tight")],
)
def test_room_stands_beside_what_memory_costs(peak: int | None, retried: float, room: str) -> None:
    held = with_memory(
        rank(costs(memory=50)), peak_bytes=peak, capacity_bytes=100, allocator_retry_frac=retried
    )
    memory, *others = judge([held]).walls
    assert (memory.id, memory.room) == ("memory", room)
    assert {one.room for one in others} == {UNSET}


def test_no_wall_is_a_gap_only_where_one_could_not_be_judged() -> None:
    clear, blind = (judge([rank(priced)]).verdict for priced in (costs(), BLIND))
    assert (clear.wall, clear.kind, clear.confidence, clear.next_wall) == (None, None, None, None)
    assert isinstance(blind.wall, Missing)
    assert isinstance(blind.confidence, Missing)
    assert blind.kind is None
    assert isinstance(judge([rank(costs(communication=300))]).verdict.confidence, str)

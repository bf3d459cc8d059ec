"""How sure a verdict is: what keeps it from being surer, and what several ranks of a run settle."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import pytest
from msgspec import structs

from heuristics.result.judged import Reason
from heuristics.run.run import WALL_IDS
from heuristics.walls.confidence import about_others, level_of, reasons_against, with_confidence
from heuristics.walls.costs import costs_of
from heuristics.walls.verdict import verdict_of
from tests.doubles.opinions import (
    BLIND,
    NOBODY,
    SURE,
    account,
    budget,
    cost,
    costs,
    judge_communication,
    rank,
    steps_of,
    wall,
    walls,
    walls_of,
)
from tests.recordings.ranks import Work, analyse_run, together
from traces.measurements import RankMeasurements
from traces.ranks.summaries.summary import Group, GroupSource
from traces.sections.run import Run
from traces.sections.tables import WallId
from traces.steps.found import Steps, one_window


class Sure(NamedTuple):
    """Why a verdict is not surer."""

    reasons: tuple[Reason, ...]

    @property
    def because(self) -> tuple[str, ...]:
        return tuple(one.text for one in self.reasons)

    @property
    def level(self) -> str:
        return level_of(self.reasons)


def sure(about: WallId = "communication", *ranks: RankMeasurements, **percent: float | None) -> Sure:
    return Sure((*reasons_against(about, costs_of(ranks or [rank(), rank()]), walls(**percent)),))


def steps_reason(count: int) -> tuple[str, ...]:
    return sure("compute", rank(steps=steps_of(*[250] * count))).because


def test_fewer_than_three_steps_are_a_reason() -> None:
    assert steps_reason(3) == ()
    assert steps_reason(2) == ("only 2 steps",)
    assert steps_reason(1) == ("only 1 step",)
    assert steps_reason(0) == ("no steps were found, so one window",)


def test_the_rank_with_the_fewest_steps_decides() -> None:
    assert sure("compute", rank(), rank(steps=steps_of(250, 250))).because == ("only 2 steps",)


def test_one_rank_that_communicates_is_a_reason_against_communication_alone() -> None:
    speaks, hides = rank(budget=budget(999, 1)), rank(budget=budget(1_000, 0, 1))
    for one in (speaks, hides):
        assert len(sure("communication", one).because) == 1
        assert sure("compute", one).because == ()
        assert sure("communication", one, one).because == ()
    for one in (rank(), replace(speaks, unseen=NOBODY)):  # whose kernels cannot be told apart
        assert sure("communication", one).because == ()


def test_over_a_tenth_that_no_edge_explains_is_a_reason() -> None:
    just, over = (rank(account=account(undecided_ns=ns)) for ns in (100, 110))
    assert sure("compute", just).because == ()
    assert sure("compute", over).because == (
        "11 % of the window is time without compute that nothing recorded explains",
    )


def test_a_replay_that_misses_the_window_by_over_two_per_cent_is_a_reason() -> None:
    just, over = (rank(costs(proofs=replace(SURE, residual_free_error_frac=frac))) for frac in (0.02, 0.03))
    assert sure("compute", just).because == ()
    assert sure("compute", over).because == ("a replay without unexplained waits misses the window by 3.0 %",)


def test_recorded_calls_that_may_be_a_quarter_of_the_hosts_cost_are_a_reason() -> None:
    """A call or range costs 1000 ns at most; the host costs 40 000 or 39 000 of them."""
    cheap, dear = (rank(costs(host_overhead=ns), recorded_host_rows=10) for ns in (40_000, 39_000))
    assert sure("host_overhead", cheap).because == ()
    (reason,) = sure("host_overhead", dear).because
    assert reason == "recording 10 calls and ranges may itself take up to 26 % of the window"
    assert sure("compute", dear).because == ()
    (both,) = sure("host_overhead", dear, cheap).because
    assert both == "recording 20 calls and ranges may itself take up to 25 % of the window"


def test_other_walls_that_nobody_could_look_at_are_a_reason() -> None:
    assert sure("communication", compute=None).because == ("compute: not measurable from this recording",)
    assert sure("communication", compute=None, host_overhead=None).level == "medium"
    assert sure("communication", communication=None).because == ()
    others = wall("compute", 5, "unmeasurable"), wall("memory", None, "finding")
    assert [*about_others("communication", others)] == []


def test_each_reason_lowers_once_and_never_below_low() -> None:
    one = rank(steps=steps_of(250, 250))
    assert sure("compute", one).level == "medium"
    assert sure("compute", one, communication=None).level == "low"
    poor = replace(one, account=account(undecided_ns=500))
    third = sure("compute", poor, communication=None)
    assert (third.level, len(third.because)) == ("low", 3)
    assert with_confidence(verdict_of(()), (), "low").confidence == "low"  # as a result said it


def test_start_up_lowers_the_confidence() -> None:
    held = rank(costs(communication=400), account=account({"profiler": 300}))
    said = "profiler and start-up take 30 % of the window: not a steady state"
    assert sure("communication", held, communication=40).because == (said,)


NO_STEPS, OF_USER = one_window("none", "", 0, 1_000), one_window("user", "", 0, 1_000)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([OF_USER, OF_USER], ()),
        ([OF_USER, NO_STEPS], ("no steps were found, so one window",)),
        ([OF_USER, steps_of(250, 250)], ("no steps were found on 1 of 2 ranks, so one window",)),
        (
            [replace(steps_of(250, 250), unit="block"), steps_of(250, 250)],
            ("nothing shows that what repeats is a step",),
        ),
        ([replace(steps_of(250), source="user")], ("only 1 step",)),
    ],
)
def test_a_window_is_no_reason_where_the_user_chose_it_on_every_rank(
    found: list[Steps], said: tuple[str, ...]
) -> None:
    assert sure("compute", *(rank(steps=one) for one in found)).because == said


def test_only_the_verdicts_own_wall_may_be_warm_up() -> None:
    ranks = [rank(costs(200, 200, cost(300, steps=(300, 0, 0, 0)), 200))]
    asked = {about: [*reasons_against(about, costs_of(ranks), walls_of(ranks))] for about in WALL_IDS}
    assert {about for about, found in asked.items() if found} == {"memory"}
    assert [one.id for one in asked["memory"]] == ["first_step"]


def test_the_rank_with_the_worst_replay_or_account_decides_by_its_own_window() -> None:
    poor = rank(account=account(undecided_ns=200))
    assert "20 % of the window" in sure("compute", rank(account=account(undecided_ns=110)), poor).because[0]
    assert "20 % of the window" in sure("compute", poor, rank(account=account(undecided_ns=110))).because[0]
    long = replace(budget(), window_ns=2_000, idle_ns=1_000)
    assert sure("compute", rank(account=account(undecided_ns=200), budget=long)).because == ()
    begun = account({"profiler": 200}, undecided_ns=100)  # of all of the window, start-up among it
    assert [one.id for one in sure("compute", rank(account=begun)).reasons] == ["startup"]
    off = [rank(costs(proofs=replace(SURE, residual_free_error_frac=frac))) for frac in (0.01, 0.04)]
    assert "misses the window by 4.0 %" in sure("compute", *off).because[0]


def test_ranks_without_a_replay_are_counted_and_tell_nothing_of_waits_and_calls() -> None:
    blind = rank(BLIND, account=BLIND, recorded_host_rows=1_000)
    assert sure("host_overhead", blind).because == ("1 of 1 ranks could not be replayed",)
    cheap = rank(costs(host_overhead=40_000), recorded_host_rows=10)
    assert sure("host_overhead", blind, cheap).because == ("1 of 2 ranks could not be replayed",)


def test_recording_a_host_that_costs_nothing_may_take_all_of_it() -> None:
    (reason,) = sure("host_overhead", rank(recorded_host_rows=1)).because
    assert reason == "recording 1 calls and ranges may itself take up to 100 % of the window"


def test_kernels_of_unknown_class_are_one_reason_though_communication_is_undecided_for_them() -> None:
    ranks = [rank(costs(compute=200), unnamed=replace(rank().unnamed, alone_ns=80))]
    assert judge_communication(ranks).outcome == "unmeasurable"
    found = [*reasons_against("compute", costs_of(ranks), walls_of(ranks))]
    assert [one.id for one in found] == ["unknown_kernels"]
    more = [rank(unnamed=replace(rank().unnamed, alone_ns=ns, apart_ns=ns)) for ns in (80, 60)]
    few = [
        replace(one, unnamed=replace(one.unnamed, apart_ns=ns)) for one, ns in zip(more, (0, 60), strict=True)
    ]
    said = [sure("compute", *ranks).because[0] for ranks in (more, few)]
    assert ["take 7.0 % and are probably" in one for one in said] == [True, False]


def run_of(group: Group | None = None, *, world_size: int | None = 4) -> Run:
    """Four ranks, of which one is slow; in one group."""
    works = [[Work(compute=130 if one == 2 else 100, host=2)] * 30 for one in range(4)]
    kernels = [[13.0, 26.0] if one == 2 else [10.0, 20.0] for one in range(4)]
    ranks = [
        replace(
            one,
            identity=replace(one.identity, world_size=world_size),
            groups=one.groups if group is None else (group,),
        )
        for one in together(works, per_step=10, kernels_us=kernels)
    ]
    return analyse_run(ranks)


def reasons(found: Run) -> list[str]:
    speaks = rank(budget=budget(900, 100))
    sure = reasons_against("communication", costs_of([rank(), speaks] * 2), walls(communication=20.0), found)
    return [one.text for one in sure]


@pytest.mark.parametrize("world_size", [4, None, 64])
def test_whole_groups_leave_no_reason_however_many_ranks_there_are(world_size: int | None) -> None:
    assert reasons(run_of(world_size=world_size)) == []


PART = "100 % of communication time is in groups that"


@pytest.mark.parametrize(
    ("group", "world_size", "text"),
    [
        (
            Group(GroupSource.COMMUNICATOR, 7),
            None,
            "the sizes of the groups of 100 % of communication time were not recorded, so ranks of them may "
            "be missing here",
        ),
        (
            Group(GroupSource.COMMUNICATOR, 7, 8),
            8,
            f"4 of 8 ranks were recorded, and {PART} may wait for the others",
        ),
    ],
)
def test_groups_that_may_lack_a_rank_are_a_reason(group: Group, world_size: int | None, text: str) -> None:
    assert reasons(run_of(group, world_size=world_size)) == [text]


UNMATCHED = "% of communication time is in groups that could not be matched across ranks"


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ({"complete_frac": 0.9}, []),
        ({"complete_frac": 0.89}, [f"11 {UNMATCHED}"]),
        ({"complete_frac": NOBODY}, [f"100 {UNMATCHED}"]),
        ({"complete_frac": 0.5, "world_size": 5},
         [f"4 of 5 ranks were recorded, and 50 {PART[4:]} may wait for the others"]),
        ({"complete_frac": 0.5, "clocks": structs.replace(run_of().clocks, residual_ns=NOBODY)},
         ["waiting for a slow peer cannot be separated from data transfer: nobody looked"]),
    ],
)  # fmt: skip
def test_what_several_ranks_leave_open_is_one_reason(what: dict[str, object], said: list[str]) -> None:
    assert reasons(structs.replace(run_of(), **what)) == said

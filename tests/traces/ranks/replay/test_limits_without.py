"""What a replay without the cause takes away, and steps side by side: each limit with a case beyond it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.recordings.ranks import ALIKE, US, Part, array, summary_of
from traces.arrays import BoolArray
from traces.names.kernels import COMM_KINDS
from traces.ranks.clocks.clock_fit import ClockFit
from traces.ranks.matching.match import match
from traces.ranks.one_run.align import Aligned, Clocks
from traces.ranks.replay import without
from traces.ranks.replay.beneath import EVERY_KIND
from traces.ranks.replay.borders import StepBorders, mean_step_ns
from traces.ranks.replay.chains import Chains
from traces.ranks.replay.edit import Edit
from traces.ranks.replay.run import measure_run
from traces.ranks.replay.without import ReplayedStep, _begins_alone, _goes_on_ns, _queued, replay_without
from traces.ranks.rows.ends import NO_ROW, ByTime
from traces.ranks.summaries.summary import UNKNOWN, Group, GroupSource, RankSummary
from traces.ranks.waiting.side_by_side import Alike, Grid, _agreed, excess_of, grid_of
from traces.sections.cause import Cause

NAN = float("nan")
STEPS, PER_STEP = 4, 10


def test_gradients_are_queued_up_to_ten_microseconds_behind_what_was_before_them() -> None:
    scatter, tokens = COMM_KINDS.index("dp_reduce_scatter"), COMM_KINDS.index("ep_a2a")
    rows: Any = SimpleNamespace(
        matched=SimpleNamespace(kind=array([scatter] * 4 + [tokens, scatter])),
        chains=SimpleNamespace(
            start_ns=array([0, 110_000, 110_001, 90_000, 100_000, 5]),
            behind=array([NO_ROW, 0, 0, 0, 0, NO_ROW]),
        ),
        aligned=SimpleNamespace(end_ns=array([100_000, 0, 0, 0, 0, 0])),
    )
    assert _queued(rows).tolist() == [False, True, False, True, False, False]


def test_what_is_queued_does_not_wait_for_what_moved_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last of three comes after the second, whose compute hides 4 ns, and lies behind the first's 50."""
    monkeypatch.setattr(without, "_queued", lambda _: array([0, 0, 1]) > 0)
    monkeypatch.setattr(without, "_hidden", lambda *_: array([5, 4, 3]))
    monkeypatch.setattr(without, "replayed", lambda _, own_ns, *__: own_ns)
    after, behind = array([NO_ROW, 0, 1]), array([NO_ROW, NO_ROW, 0])
    run: Any = SimpleNamespace(
        chains=SimpleNamespace(after=after, behind=behind, moving_ns=array([50, 7, 30]))
    )
    for moving_ns, ends_ns in (([50, 7, 29], [105, 29, 47]), ([50, 8, 30], [100, 20, 90])):
        given = array([100, 20, 90]), array(moving_ns)
        assert _goes_on_ns(run, given, array([0] * 3) > 0).tolist() == ends_ns


def grid(later: list[int], length: list[list[float]], loader: list[list[float]]) -> Grid:
    zero = np.zeros((len(later), len(length[0])))
    return Grid(array(later), np.array(length), zero, zero, zero, zero, np.array(loader), zero)


def test_a_first_step_has_no_wait_for_data_that_others_have_where_ranks_begin_in_several() -> None:
    every = (Alike(ALIKE, (0, 1)),)
    length, loader = [[9.0, 9, 9], [NAN, 9, 9]], [[7.0, 1, 2], [NAN, 5, 2]]
    found = excess_of(grid([0, 1], length, loader), every).loader_ns
    assert np.array_equal(found, [[NAN, NAN, 0], [NAN, NAN, 0]], equal_nan=True)
    together_ = excess_of(grid([0, 0], length, loader), every).loader_ns
    assert np.array_equal(together_, [[NAN, -4, 0], [NAN, 4, 0]], equal_nan=True)
    same = excess_of(grid([1, 1], length, loader), every).loader_ns
    assert np.array_equal(same, together_, equal_nan=True)


def recorded(rank: int, *rows: tuple[int, int, int], steps: int) -> RankSummary:
    """Collectives of (group, number, step)."""
    parts = [Part(group, number, 100 * number + 40 * group, 100 * number + 40 * group + 9, step=step)
             for group, number, step in rows]  # fmt: skip
    groups = [Group(GroupSource.COMMUNICATOR, key) for key in (7, 8)]
    times = [{"start": 100 * step, "end": 100 * step + 100} for step in range(steps)]
    return summary_of(rank, parts, groups, steps=times)


def test_how_many_steps_later_a_rank_began_follows_through_those_between() -> None:
    """Rank 1 began two steps after rank 0, and rank 2, which shares nothing with 0, one before rank 1."""
    first = recorded(0, *((0, number, number) for number in range(5)), steps=5)
    second = recorded(1, (0, 1, UNKNOWN), *((0, number, number - 2) for number in (2, 3, 4)),
                      *((1, number, number - 2) for number in (2, 3)), steps=3)  # fmt: skip
    third = recorded(2, *((1, number, number - 1) for number in (2, 3)), steps=4)
    for several, later in (([first, second, third], [0, 2, 1]), ([third, second, first], [1, 2, 0])):
        found = grid_of(several, match(several))
        assert found.later.tolist() == later
        assert found.step_count == 5
    alone = recorded(0, (0, 0, UNKNOWN), steps=1), recorded(1, (0, 0, UNKNOWN), steps=2)
    assert grid_of(alone, match(alone)).later.tolist() == [0, 0]


@pytest.mark.parametrize(("ends", "common", "ranks"), [((50, 150, 150), True, 1), ((50, 150, 150), False, 2),
                                                        ((150, 250, 150), True, 2)])  # fmt: skip
def test_steps_are_those_of_ranks_that_recorded_what_was_before_where_there_are_any(
    ends: tuple[int, ...], common: bool, ranks: int
) -> None:
    """Of two ranks with steps from 100 us to 300; the first two collectives are of the first."""
    steps = [{"start": 100, "end": 200}, {"start": 200, "end": 300}]
    several = [summary_of(rank, [], steps=steps) for rank in range(2)]
    end_ns, none = array([end * US for end in ends]), array([])
    fits = tuple(ClockFit(one.identity.clock, 0, 0, 0.0) for one in several)
    aligned = Aligned(end_ns, end_ns, Clocks(True, 0, fits))
    chains = Chains(none, ByTime(array([0, 0, 1]), end_ns), none, none, none, none, none)
    length = grid([0, 0], [[100.0 * US] * 2] * 2, [[0.0] * 2] * 2)
    found = StepBorders(several, length, aligned, chains, common=common).steps_ns(end_ns)
    assert found.tolist() == [[100 * US] * 2] * ranks


def test_the_mean_step_is_that_of_the_median_rank_among_those_that_have_one() -> None:
    assert mean_step_ns(np.array([[NAN, 3], [NAN, NAN], [4, 7]])) == 4
    assert mean_step_ns(np.array([[NAN]])) == 0


def begun(*first_us: float, later: bool = True, step_us: float = 1_000) -> list[int]:
    """Places whose first collectives are free, of ranks that are alike and work so long before the first."""
    rows: Any = SimpleNamespace(
        matched=SimpleNamespace(place=array([0, 0, 1, 1, 2]), step=array([0] * 5)),
        grid=grid([int(later), 0, 0], [[step_us * US] * 2] * 3, [[0.0, 0]] * 3),
        chains=SimpleNamespace(
            after=array([NO_ROW, 0, NO_ROW, 2, NO_ROW]),
            own_ns=array([round(us * US) for us in (first_us[0], 9_999, first_us[1], 9_999, first_us[2])]),
        ),
        alike=(Alike(ALIKE, (0, 1)), Alike(ALIKE, (2,))),
        step_ns=step_us * US,
    )
    return np.flatnonzero(_begins_alone(rows)).tolist()


def test_ranks_begin_alone_where_like_ones_began_over_a_tenth_of_a_step_apart_within_steps() -> None:
    assert begun(0, 100.001, 0) == [0, 2, 4]
    assert begun(0, 100, 0) == []
    assert begun(0, 0, 500) == []  # of the other kind
    assert begun(0, 500, 0, later=False) == []


NONE, FEW, MANY = None, ReplayedStep(100, 90, np.zeros(0)), ReplayedStep(100, 80, np.zeros(0))
OWN: Any = "own"


@pytest.mark.parametrize(("cause", "skipped", "chains"), [
    (Cause.SLOW_LINK, EVERY_KIND, "own beside"), (Cause.SLOW_DEVICE, EVERY_KIND, "own"),
    (Cause.SLOW_DEVICE, (5,), "without 5"),
])  # fmt: skip
@pytest.mark.parametrize(("alone", "found", "best"), [
    ([0, 1], [FEW, MANY], MANY), ([0, 1], [MANY, FEW], MANY), ([0, 1], [NONE], NONE), ([0, 0], [FEW], FEW),
])  # fmt: skip
def test_a_replay_is_of_the_chains_of_its_cause_and_of_the_beginning_with_which_it_saves_most(
    monkeypatch: pytest.MonkeyPatch, cause: Cause, skipped: tuple[int, ...], chains: str,
    alone: list[int], found: list[ReplayedStep | None], best: ReplayedStep | None,
) -> None:  # fmt: skip
    run, seen = replace(measure_run([]), chains=OWN), list[tuple[object, list[bool]]]()

    def lasts(run: Any, _: Edit, free: BoolArray) -> ReplayedStep | None:
        seen.append((run.chains, free.tolist()))
        return found[len(seen) - 1]

    monkeypatch.setattr(without, "_lasts", lasts)
    monkeypatch.setattr(without, "chains_of", lambda *given: f"without {given[-1][0]}")
    monkeypatch.setattr(without, "with_beside", lambda chains, *_: f"{chains} beside")
    monkeypatch.setattr(without, "_begins_alone", lambda _: np.array(alone) > 0)
    edit = Edit(cause, (), np.zeros(0), lambda _: (array([]), array([])), skipped=skipped)
    assert replay_without(run, edit) is best
    assert seen == [(chains, [False, False]), (chains, [False, True])][: len(found)]


def test_medians_of_kinds_that_means_contradict_count_where_these_are_most_of_the_time() -> None:
    medians, means = np.array([[2.0, 1.0], [2.0, 1.0], [1.031, 1.0], [1.029, 1.0]]), np.ones((4, 2))
    total = np.array([[5.0, 5], [6, 5], [5, 5], [5, 5]])
    found = _agreed(medians, means, total)
    expected = np.array([[NAN, 1], [2, 1], [NAN, 1], [1.029, 1]])
    assert np.array_equal(found, expected, equal_nan=True)

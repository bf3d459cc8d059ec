"""What a replay without the cause takes away, and steps side by side: each limit with a case beyond it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.recordings.ranks import ALIKE, US, Part, Work, array, summary_of, together
from traces.names.kernels import COMM_KINDS
from traces.ranks.ends import NO_ROW
from traces.ranks.late import Suspicion, _deviation
from traces.ranks.match import match
from traces.ranks.mend import Judged, _host_ns, _late_start_ns, _mine, _with_usual_work
from traces.ranks.run import _like, judge
from traces.ranks.side_by_side import Alike, Grid, _agreed, excess_of, grid_of
from traces.ranks.summary import UNKNOWN, Fingerprint, Group, GroupSource, RankSummary
from traces.ranks.without import _begins_alone, _queued, replay_without
from traces.sections.cause import Cause
from traces.sections.run import RunWithout

NAN = float("nan")
STEPS, PER_STEP = 4, 10


def judged(works: list[list[Work]]) -> Judged:
    return judge(together(works, per_step=PER_STEP))


def test_gradients_are_queued_up_to_ten_microseconds_behind_what_was_before_them() -> None:
    scatter, tokens = COMM_KINDS.index("dp_reduce_scatter"), COMM_KINDS.index("ep_a2a")
    rows: Any = SimpleNamespace(
        together=SimpleNamespace(matched=SimpleNamespace(kind=array([scatter] * 4 + [tokens, scatter]))),
        chains=SimpleNamespace(
            start_ns=array([0, 110_000, 110_001, 90_000, 100_000, 5]),
            behind=array([NO_ROW, 0, 0, 0, 0, NO_ROW]),
        ),
        aligned=SimpleNamespace(end_ns=array([100_000, 0, 0, 0, 0, 0])),
    )
    assert _queued(rows).tolist() == [False, True, False, True, False, False]


def test_a_late_start_is_taken_away_where_the_work_since_holds_nineteen_twentieths_of_it() -> None:
    """Rank 1 begins each step 400 us late, which is all that it has beyond the others."""
    run = judged([[Work(100, loader=400 * (rank == 1 and n % PER_STEP == 0)) for n in range(40)]
                  for rank in range(4)])  # fmt: skip
    matched = run.together.matched
    begins = (matched.place == 1) & (matched.sequence[matched.instance] % PER_STEP == 0)
    for own_us, taken_us in ((500, 400), (380, 380), (379.9, 0)):
        taken = _late_start_ns(run, np.full(len(matched.place), round(own_us * US)))
        assert set(taken[begins][1:].tolist()) == {taken_us * US}
        assert set(taken[matched.place != 1].tolist()) == {0}
    more = replace(run, excess=replace(run.excess, loader_ns=run.excess.loader_ns * 2))  # 800 us of each step
    assert _late_start_ns(more, np.full(len(matched.place), 2_000 * US))[begins][1:].tolist() == [0, 0, 0]


def test_a_slow_host_of_a_stage_that_nobody_is_like_takes_its_factor_less_between_collectives() -> None:
    """Rank 3 has 60 us of its host before each collective, by twice as slow a host: 30 us less."""
    run = judged([[Work(100, host=60 if rank == 3 else 2) for _ in range(40)] for rank in range(4)])
    assert (run.suspicion.cause, run.suspicion.places) == (Cause.SLOW_HOST, (3,))
    slow = replace(run, suspicion=replace(run.suspicion, factor=2.0))
    matched, chains = slow.together.matched, slow.chains
    hosts = _host_ns(slow, chains)
    mine, comes_after = matched.place == 3, chains.after != NO_ROW
    assert set(hosts[mine & comes_after].tolist()) == {60 * US}
    assert set(hosts[~mine & comes_after].tolist()) == {2 * US}
    alone = replace(slow, role=np.where(mine, 9, 0))  # between which two no other rank works
    found = _with_usual_work(alone, chains)
    assert set(found[mine & comes_after].tolist()) == {130 * US}
    assert (found[~mine] == chains.own_ns[~mine]).all()
    usual = _with_usual_work(slow, chains)
    assert set(usual[mine & comes_after].tolist()) == {102 * US}


def test_of_a_cause_that_changes_its_rank_the_late_one_of_each_step_is_meant() -> None:
    run = judged([[Work(100) for _ in range(40)] for _ in range(4)])
    turning = replace(run, suspicion=replace(run.suspicion, by_step=(2, UNKNOWN, 0)))
    matched = run.together.matched
    step = matched.sequence[matched.instance] // PER_STEP
    expected = ((step == 0) & (matched.place == 2)) | ((step == 2) & (matched.place == 0))
    assert (_mine(turning) == expected).all()


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


def test_values_of_which_none_is_known_do_not_deviate() -> None:
    assert _deviation(np.array([NAN])) == 0
    assert _deviation(np.array([NAN, 1, 2, 9])) == pytest.approx(1.4826)


def begun(*first_us: float, later: bool = True, step_us: float = 1_000) -> list[int]:
    """Places whose first collectives are free, of ranks that are alike and work so long before the first."""
    rows: Any = SimpleNamespace(
        together=SimpleNamespace(matched=SimpleNamespace(place=array([0, 0, 1, 1, 2]), step=array([0] * 5))),
        grid=grid([int(later), 0, 0], [[step_us * US] * 2] * 3, [[0.0, 0]] * 3),
        chains=SimpleNamespace(
            after=array([NO_ROW, 0, NO_ROW, 2, NO_ROW]),
            own_ns=array([round(us * US) for us in (first_us[0], 9_999, first_us[1], 9_999, first_us[2])]),
        ),
        alike=(Alike(ALIKE, (0, 1)), Alike(ALIKE, (2,))),
    )
    return np.flatnonzero(_begins_alone(rows)).tolist()


def test_ranks_begin_alone_where_like_ones_began_over_a_tenth_of_a_step_apart_within_steps() -> None:
    assert begun(0, 100.001, 0) == [0, 2, 4]
    assert begun(0, 100, 0) == []
    assert begun(0, 0, 500) == []  # of the other kind
    assert begun(0, 500, 0, later=False) == []


def test_medians_of_kinds_that_means_contradict_count_where_these_are_most_of_the_time() -> None:
    medians, means = np.array([[2.0, 1.0], [2.0, 1.0], [1.031, 1.0], [1.029, 1.0]]), np.ones((4, 2))
    total = np.array([[5.0, 5], [6, 5], [5, 5], [5, 5]])
    found = _agreed(medians, means, total)
    expected = np.array([[NAN, 1], [2, 1], [NAN, 1], [1.029, 1]])
    assert np.array_equal(found, expected, equal_nan=True)


@pytest.mark.parametrize("name", ["has_experts", "has_embedding", "has_loss"])
def test_what_like_ranks_have_is_told_by_its_own_name(name: str) -> None:
    none = {"has_experts": False, "has_embedding": False, "has_loss": False}
    one = Alike(Fingerprint(2, 3, **none | {name: True}), (1,))
    found = _like(one, grid([0, 0], [[5.0, 9], [7, 9]], [[0.0, 0]] * 2))
    assert {key: getattr(found, key) for key in none} == none | {name: True}
    assert (found.attention_kernels, found.router_kernels, found.ranks, found.step_ns) == (2, 3, (1,), 8)


@pytest.mark.parametrize(("factor", "unmatched", "told"), [(2, 5, True), (1, 0, True), (1, 5, False)])
def test_of_a_run_with_many_collectives_unmatched_it_is_told_what_a_cause_costs_if_it_does(
    factor: float, unmatched: int, told: bool
) -> None:
    """Of ten collectives a step the first ones are of a communicator that no other rank recorded."""
    ranks = together([[Work(100, host=100)] * 40 for _ in range(4)], per_step=PER_STEP)
    for rank, one in enumerate(ranks):
        alone = np.arange(40) % PER_STEP < unmatched
        groups = (*one.groups, Group(GroupSource.COMMUNICATOR, 100 + rank, 2))
        ranks[rank] = replace(
            one, groups=groups, instances=replace(one.instances, group=alone.astype(np.int64))
        )
    slow = replace(judge(ranks), suspicion=Suspicion(Cause.SLOW_HOST, (0, 1, 2, 3), 1.0, factor=factor))
    found = replay_without(slow)
    assert isinstance(found, RunWithout) is told
    if isinstance(found, RunWithout):
        assert (found.saved_frac > 0.1) is (factor == 2)

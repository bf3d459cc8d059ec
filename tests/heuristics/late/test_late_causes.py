"""What each cause takes away, and which of them the judge believes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from heuristics.late.beside import apart, beyond_usual, deviation, participations
from heuristics.late.host import _host_ns
from heuristics.late.judge import Tried, at_least, judged_by_replay, tried
from heuristics.late.loader import _late_start_ns
from heuristics.late.run import _like
from heuristics.late.votes import judged_by_votes
from tests.recordings.ranks import US, Part, Work, summary_of, together
from traces.arrays import FloatArray
from traces.ranks.replay.edit import Edit
from traces.ranks.replay.run import MeasuredRun, measure_run
from traces.ranks.rows.ends import NO_ROW
from traces.ranks.summaries.summary import UNKNOWN, Fingerprint, Group, GroupSource
from traces.ranks.waiting.side_by_side import Alike, Grid
from traces.sections.cause import Cause

NAN = float("nan")
STEPS, PER_STEP = 4, 10


def measured(works: list[list[Work]]) -> MeasuredRun:
    return measure_run(together(works, per_step=PER_STEP))


@pytest.mark.parametrize(
    ("cost", "places"),
    [
        ([0, 0, 5, 0], (2,)),
        ([0, 5, 5, 0], (1, 2)),
        ([0, 5, 5, 5], ()),  # more than half
        ([0, NAN, 5, 0], (2,)),
        ([0, 10, 20, 30, 40, 50, 60, 178], ()),  # 30 and five times 1.4826 times 20 is 178.26
        ([0, 10, 20, 30, 40, 50, 60, 179], (7,)),
        ([9, 0], (0,)),
        ([9], ()),
        ([0, 0, 9, 9, 40], (4,)),  # of two gaps the widest
        ([-2, -2, -1, -2], ()),
    ],
)
def test_the_ranks_that_stand_apart_are_at_most_half_and_far_from_what_the_others_scatter(
    cost: list[float], places: tuple[int, ...]
) -> None:
    assert apart(np.array(cost, dtype=np.float64)) == places


def test_values_of_which_none_is_known_do_not_deviate() -> None:
    assert deviation(np.array([NAN])) == 0
    assert deviation(np.array([NAN, 1, 2, 9])) == pytest.approx(1.4826)


def edit(cost_ns: Sequence[float] | FloatArray, cause: Cause = Cause.SLOW_HOST, **more: object) -> Edit:
    made = Edit(cause, (), np.array(cost_ns), lambda chains: (chains.own_ns, chains.moving_ns))
    return replace(made, **more)  # type: ignore[arg-type]


def test_what_a_mean_is_at_least_is_below_it_by_what_steps_differ() -> None:
    values: FloatArray = np.array([8.0, 10, 12, 10])
    assert 8 < at_least(values, edit(values)) < 9
    assert at_least(np.array([10.0, 10, NAN]), edit([1])) == 10
    assert at_least(np.array([NAN]), edit([1])) == 0
    once: FloatArray = np.array([0.0, 40, 0, 0])
    assert at_least(once, edit(once)) < 0
    turns = edit(once, places=(1,), by_step=(UNKNOWN, 1, UNKNOWN, UNKNOWN))
    assert at_least(once, turns) == 10  # of the step in which it is late, a quarter of all


def pausing(host_us: dict[int, float]) -> MeasuredRun:
    return measured([[Work(990, host=host_us.get(rank, 0.0)) for _ in range(40)] for rank in range(4)])


def test_a_cause_that_costs_and_saves_a_hundredth_of_the_step_is_one() -> None:
    for host_us, cause in ((50, Cause.SLOW_HOST), (5, None)):
        found = judged_by_replay(pausing({3: host_us}))
        assert (found.edit.cause if found else None) is cause
    run = pausing({})
    assert tried(run, edit([200.0 * US] * STEPS)) is None  # of 10 ms; that takes nothing away


@pytest.mark.parametrize(("slow", "cause"), [([0, 1, 2, 3], Cause.SLOW_HOST), ([0, 1, 2], None)])
def test_a_host_that_launches_slowly_in_every_step_need_not_cost_the_same_in_each(
    slow: list[int], cause: Cause | None
) -> None:
    """0.3 of 10.3 ms, all of it in the first step."""
    run = measured([[Work(990, host=120.0 * (rank == 3 and number < PER_STEP)) for number in range(40)]
                    for rank in range(4)])  # fmt: skip
    pace_ns = np.full((4, STEPS), 5_000.0)
    pace_ns[3, slow] = 15_000
    found = judged_by_replay(replace(run, grid=replace(run.grid, pace_ns=pace_ns)))
    assert (found.edit.cause if found else None) is cause


@pytest.mark.parametrize(
    ("steps", "late_us", "cause"),
    [
        ((0, 1, 2, 3), 300, Cause.DATA_LOADER),  # of 10 ms
        ((1, 3), 1_300, Cause.DATA_LOADER),  # 0.65 of 10.65 ms
        ((1, 3), 150, None),  # 0.075 of 10.075 ms
        ((2,), 3_500, Cause.DATA_LOADER),  # 0.9 of 10.9 ms
        ((2,), 1_900, None),  # 0.475 of 10.475 ms
    ],
)
def test_what_comes_once_is_a_cause_from_a_twentieth_on_and_what_comes_in_some_steps_from_a_hundredth(
    steps: Sequence[int], late_us: float, cause: Cause | None
) -> None:
    begins = {PER_STEP * step for step in steps}
    found = judged_by_replay(
        measured([[Work(990, loader=late_us * (rank == 1 and number in begins)) for number in range(40)]
                  for rank in range(4)])
    )  # fmt: skip
    assert (found.edit.cause if found else None) is cause
    assert found is None or found.edit.places == (1,)


@pytest.mark.parametrize(("beyond", "group"), [(12, 1), (4, None)])
def test_a_stage_with_more_to_do_beside_as_many_layers_is_uneven_from_a_twentieth_on(
    beyond: int, group: int | None
) -> None:
    """Of four ranks two have the loss as well."""
    works = [[Work(compute=100 + beyond * (rank > 1), host=2)] * PER_STEP * STEPS for rank in range(4)]
    ranks = together(works, per_step=PER_STEP)
    for place in (2, 3):
        ranks[place] = replace(ranks[place], fingerprint=replace(ranks[place].fingerprint, has_loss=True))
    found = judged_by_replay(measure_run(ranks))
    assert (found.edit.group if found else None) == group


@pytest.mark.parametrize("slow", [(2, 3), (0, 1, 2)])
def test_gpus_of_a_whole_stage_are_slow_where_kernels_of_all_stages_take_longer_there(
    slow: tuple[int, ...],
) -> None:
    """The stages have as many ranks, two or three, and their kernels are the same; one lost a step."""
    count = 2 * len(slow)
    works = [[Work(compute=130 if rank in slow else 100, host=2)] * PER_STEP * STEPS for rank in range(count)]
    kernels = [[13.0 if rank in slow else 10.0] * 3 for rank in range(count)]
    ranks = together(works, per_step=PER_STEP, kernels_us=kernels)
    for place in slow:
        one, loss = ranks[place], replace(ranks[place].fingerprint, has_loss=True)
        rows = replace(one.instances, step=np.maximum(one.instances.step - 1, UNKNOWN))
        steps = one.steps.take(np.arange(1, STEPS))
        ranks[place] = replace(one, fingerprint=loss, steps=steps, instances=rows)
    found = judged_by_replay(measure_run(ranks))
    assert found is not None
    assert (found.edit.cause, found.edit.places) == (Cause.SLOW_DEVICE, slow)
    assert np.isfinite(found.cost_ns)


def test_a_rank_late_by_more_of_its_host_is_put_beside_like_ranks_between_the_same_collectives() -> None:
    run = measured([[Work(100, host=60 if rank == 3 else 2) for _ in range(40)] for rank in range(4)])
    matched, chains = run.together.matched, run.chains
    hosts = _host_ns(run, chains)
    mine, comes_after = matched.place == 3, chains.after != NO_ROW
    assert set(hosts[mine & comes_after].tolist()) == {60 * US}
    assert set(hosts[~mine & comes_after].tolist()) == {2 * US}
    found = beyond_usual(run, chains, hosts, participations(run, (3,)))
    assert set(found[mine & comes_after].tolist()) == {58 * US}
    assert set(found[~mine].tolist()) == {0}


def test_a_late_start_is_taken_away_where_the_work_since_holds_nineteen_twentieths_of_it() -> None:
    """Rank 1 begins each step 400 us late, which is all that it has beyond the others."""
    run = measured([[Work(100, loader=400 * (rank == 1 and n % PER_STEP == 0)) for n in range(40)]
                    for rank in range(4)])  # fmt: skip
    matched = run.together.matched
    begins = (matched.place == 1) & (matched.sequence[matched.instance] % PER_STEP == 0)
    for own_us, taken_us in ((500, 400), (380, 380), (379.9, 0)):
        taken = _late_start_ns(run, np.full(len(matched.place), round(own_us * US)))
        assert set(taken[begins][1:].tolist()) == {taken_us * US}
        assert set(taken[matched.place != 1].tolist()) == {0}


def test_of_a_cause_that_changes_its_rank_the_late_one_of_each_step_is_meant() -> None:
    run = measured([[Work(100) for _ in range(40)] for _ in range(4)])
    matched = run.together.matched
    step = matched.sequence[matched.instance] // PER_STEP
    expected = ((step == 0) & (matched.place == 2)) | ((step == 2) & (matched.place == 0))
    assert (participations(run, (), (2, UNKNOWN, 0)) == expected).all()


def voted(count: int, *, late: Sequence[int] = (1,), apart_us: float = 500, **spent: float) -> Tried | None:
    """Collectives each 1 ms; in turn one of the ranks is 100 us late, and did so much more before."""
    ranks = []
    for rank in range(3):
        mine = []
        for turn in range(count + 1):
            last = rank == late[turn % len(late)]
            before = {name: 50 + us * last for name, us in spent.items()} if turn else {}
            mine.append(Part(0, turn, apart_us * turn + 100 * last, apart_us * turn + 110, before=before))
        ranks.append(summary_of(rank, mine, [Group(GroupSource.COMMUNICATOR, 7, 3)]))
    return judged_by_votes(measure_run(ranks))


@pytest.mark.parametrize(
    ("late", "spent", "cause"),
    [
        ([1], {"compute": 100}, Cause.SLOW_DEVICE),
        ([1], {"compute": 50}, Cause.SLOW_DEVICE),  # half of the lateness
        *(([1], {"compute": 49}, None), ([1], {"compute": 100, "grouped": 100}, Cause.ROUTING_IMBALANCE)),
        ([1], {"compute": 0, "host": 100, "loader": 40}, Cause.SLOW_HOST),
        ([1], {"compute": 0, "host": 40, "loader": 100}, Cause.DATA_LOADER),
        *(([1, 1, 1, 0], {"compute": 100}, Cause.SLOW_DEVICE), ([1, 0], {"compute": 100}, None)),
        ([1, 1, 0, 1, 0], {"compute": 100}, None),  # of forty by chance
    ],
)
def test_without_steps_the_rank_with_most_of_the_waiting_is_named_by_what_it_did_longer(
    late: Sequence[int], spent: dict[str, float], cause: Cause | None
) -> None:
    found = voted(40, late=late, **spent)
    assert (found.edit.cause if found else None) is cause
    assert found is None or found.edit.places == (1,)


@pytest.mark.parametrize("name", ["has_experts", "has_embedding", "has_loss"])
def test_what_like_ranks_have_is_told_by_its_own_name(name: str) -> None:
    none = {"has_experts": False, "has_embedding": False, "has_loss": False}
    one = Alike(Fingerprint(2, 3, **none | {name: True}), (1,))
    zero = np.zeros((2, 2))
    found = _like(one, Grid(np.zeros(2, dtype=np.int64), np.array([[5.0, 9], [7, 9]]), *[zero] * 6))
    assert {key: getattr(found, key) for key in none} == none | {name: True}
    assert (found.attention_kernels, found.router_kernels, found.ranks, found.step_ns) == (2, 3, (1,), 8)

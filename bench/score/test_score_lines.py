"""What is asked of the diagnosis, counted over results said by hand, and the scenarios it is asked on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.score import distance, grade
from bench.score.built import is_as_built
from bench.score.corpus import FIRST_SEED, scenario_cases, steps_case
from bench.score.grade import Count
from bench.score.lines import Line, lines
from bench.score.one import Result
from bench.score.scenario import Scenario, perturbed
from bench.score.scenarios import SCENARIOS
from bench.score.test_score import QUIET, RIGHT, result
from bench.score.truth import WALLS, next_costs, right_words, truths
from bench.simulate.knobs import Knobs
from bench.simulate.recorded import View

PUBLISHED = 10_000_000 + FIRST_SEED
EVERY = [scenario for family in SCENARIOS.values() for scenario in family]


def costs(**changes: float) -> dict[str, float]:
    return QUIET | changes


@pytest.mark.parametrize(
    ("true", "words"),
    [
        (costs(communication=0.30, memory=0.26), {"communication"}),
        (costs(communication=0.30, memory=0.28), {"communication", "memory"}),
        (costs(communication=0.12), {"communication", None}),
        (costs(communication=0.08), {"communication", None}),
        (costs(communication=0.12, memory=0.10), {"communication", "memory", None}),
        (costs(communication=0.06, memory=0.06), {None}),
    ],
)
def test_close_costs_leave_more_than_one_right_word(true: dict[str, float], words: set[str | None]) -> None:
    assert right_words(true) == words


def test_retries_leave_one_word_and_a_hidden_wall_is_none() -> None:
    assert right_words(RIGHT, retries=True) == {"memory"}
    assert right_words(RIGHT, retries=True, hidden=("memory", "communication")) == {"host_overhead"}


CLOSE = costs(communication=0.30, memory=0.28)


def test_clear_runs_have_one_right_verdict_and_close_ones_more() -> None:
    clear, close = result(), result(CLOSE)
    assert grade.clear_runs([clear, close]) == [clear]
    assert grade.close_runs([clear, close]) == [close]


def test_a_tie_said_is_right_only_where_it_is_close() -> None:
    assert grade.says_right(result(CLOSE, wall="compute", tied_with=("memory",)))
    assert not grade.says_right(result(CLOSE, wall="compute"))
    assert not grade.says_right(result(wall="memory", tied_with=("communication",)))


def test_the_next_wall_is_right_by_what_the_others_cost_once_the_first_is_gone() -> None:
    later = costs(memory=0.20, compute=0.18)
    runs = [result(next_frac=later, next_wall=wall) for wall in ("memory", "compute", "communication", None)]
    assert [grade.next_is_right(run) for run in runs] == [True, True, False, False]
    assert grade.next_told([result(), *runs]) == runs
    hidden = result(next_frac=later, next_wall="compute", hidden=("memory",))
    assert grade.next_is_right(hidden)


def test_steps_are_exact_only_if_all_are_found_and_no_other_is_used() -> None:
    assert distance.steps_exact(result())
    assert not distance.steps_exact(result(steps_found=3))
    assert not distance.steps_exact(result(steps_wrong=1))


@pytest.mark.parametrize(
    ("found", "true", "holds"),
    [
        (0.20, 0.20, True),
        (0.30, 0.20, True),
        (0.31, 0.20, False),
        (0.196, 0.20, True),
        (0.19, 0.20, False),
        (0.008, 0.004, True),
        (0.010, 0.004, False),
    ],
)
def test_a_ceiling_is_no_less_than_the_truth_and_at_most_half_as_much_more(
    found: float, true: float, holds: bool
) -> None:
    one = result(RIGHT | {"compute": true}, found_frac={**RIGHT, "compute": found})
    assert distance.compute_is_ceiling(one) is holds


def test_costs_count_by_trace_and_by_wall() -> None:
    off = result(found_frac={**RIGHT, "memory": 0.08})
    silent = result(found_frac={**RIGHT, "host_overhead": None})
    found = {line.what: line.ranges for line in lines([result(), off, silent])}
    assert found["costs of communication, host, memory, all in one trace"] == Count(1, 2)
    assert found["cost of memory"] == Count(2, 3)
    assert found["cost of host_overhead"] == Count(2, 2)


def line_of(name: str, *runs: Result) -> Line:
    (found,) = (line for line in lines(runs) if line.what == name)
    return found


def test_runs_with_step_ranges_and_without_count_apart() -> None:
    bare = result(recorded={**result().recorded, "ranges": "none"}, wall="compute")
    found = line_of("verdict, where it is clear", result(), result(), bare)
    assert (found.ranges, found.bare) == (Count(2, 2), Count(0, 1))


def test_steps_count_by_what_finding_them_hangs_on() -> None:
    many = result(made={"end of step": "device", "optimizers": "two_adams", "accumulation": "32"})
    cut = result(recorded={**result().recorded, "cut": "begin"}, steps_found=1)
    runs = (result(), many, cut)
    assert line_of("steps: every whole one, no other", *runs).ranges == Count(2, 3)
    assert line_of("steps: no wait at a step's end", *runs).ranges == Count(1, 2)
    assert line_of("steps: two optimizers", *runs).ranges == Count(1, 1)
    assert line_of("steps: accumulation 1 to 4", *runs).ranges == Count(1, 2)
    assert line_of("steps: accumulation 13 to 32", *runs).ranges == Count(1, 1)
    assert line_of("steps: cut captures", *runs).ranges == Count(0, 1)


def test_a_row_that_is_off_is_named() -> None:
    off = result(rows={"compute": (0.70, 0.70), "host": (0.25, 0.20)})
    untold = result(rows={"compute": (0.70, 0.70), "host": (None, 0.20)})
    runs = (result(), off, untold)
    assert line_of("every row of the account within 2 points", *runs).ranges == Count(1, 2)
    assert line_of("the worst row, host", *runs).ranges == Count(1, 2)


def test_the_proofs_of_every_replay_are_counted() -> None:
    good = result(proofs={"residual_free_error_frac": 0.01, "elastic_frac": 0.45, "true_elastic_frac": 0.45})
    bad = result(proofs={"residual_free_error_frac": 0.03, "elastic_frac": 0.10, "true_elastic_frac": 0.45})
    silent = replace(bad, told=dict.fromkeys(WALLS, "unmeasurable"))
    by_host = result(proofs={**bad.proofs, "true_elastic_frac": 0.10})
    none = result(proofs={"residual_free_error_frac": None, "elastic_frac": None, "true_elastic_frac": 0.45})
    runs = (good, bad, silent, by_host, none)
    assert line_of("replay without unexplained waits within 2 %", *runs).ranges == Count(1, 4)
    assert line_of("bound by the GPU: elastic, or no wall clear", *runs).ranges == Count(2, 3)
    assert line_of("elastic figure within 5 points", *runs).ranges == Count(2, 4)


def test_broken_captures_and_other_families_are_in_no_line_but_their_own() -> None:
    broken = result(family="scenarios", group="broken", as_built=True, wall="compute")
    spelled = result(family="spelled", wall="compute")
    assert line_of("verdict, where it is clear", broken, spelled).ranges == Count(0, 0)
    assert line_of("scenario truly as built", broken, spelled).ranges == Count(1, 1)


def test_the_corpus_is_large_and_shows_every_wall_in_many_shapes() -> None:
    least = {
        "communication": 6, "host": 6, "memory": 6, "compute": 6, "two walls": 8, "masked": 4, "healthy": 4,
        "dense": 4, "broken": 6, "two steps": 4,
    }  # fmt: skip
    assert {family for family, few in least.items() if len(SCENARIOS[family]) < few} == set()
    assert len({scenario.name for scenario in EVERY}) == len(EVERY) >= 60
    assert {scenario.wall for scenario in EVERY} == {*WALLS, None}


def test_a_scenario_is_drawn_anew_by_each_seed_and_keeps_its_shape() -> None:
    scenario = SCENARIOS["communication"][0]
    one, other = perturbed(scenario, 1), perturbed(scenario, 2)
    assert one == perturbed(scenario, 1)
    assert one.dispatch_us != other.dispatch_us
    assert scenario.knobs.dispatch_us / 1.12 < one.dispatch_us < scenario.knobs.dispatch_us * 1.12
    assert (one.step_count, one.dispatcher) == (other.step_count, other.dispatcher)


def test_scenarios_are_recorded_with_step_ranges_and_without_unless_they_say_how() -> None:
    views = [case.view.ranges for case in scenario_cases(1) if case.name.startswith("slow Python")]
    assert views == ["steps", "none"]
    (case,) = (case for case in scenario_cases(1) if case.name.startswith("two tuned steps"))
    assert (case.view.begin_frac, case.view.end_frac) == (1.0, 1.0)


def test_half_of_the_runs_with_hard_steps_are_cut() -> None:
    cases = [steps_case(seed) for seed in range(200)]
    cut = [case for case in cases if case.view.begin_frac or case.view.end_frac]
    assert 80 < len(cut) < 120
    assert {bool(case.view.begin_frac) + 2 * bool(case.view.end_frac) for case in cut} == {1, 2, 3}


@pytest.mark.parametrize("scenario", EVERY, ids=lambda scenario: scenario.name)
def test_every_scenario_truly_is_what_it_is_built_for(scenario: Scenario) -> None:
    told, _ = truths(perturbed(scenario, PUBLISHED), scenario.view or View())
    assert is_as_built(scenario, told)


def test_a_scenario_that_is_something_else_is_noticed() -> None:
    scenario = SCENARIOS["communication"][0]
    told, _ = truths(scenario.knobs, View())
    assert not is_as_built(replace(scenario, wall="memory"), told)
    assert not is_as_built(replace(scenario, second="memory"), told)
    assert not is_as_built(replace(scenario, masked="memory"), told)
    assert not is_as_built(replace(scenario, wall=None), told)


SMALL = Knobs(step_count=3, layer_count=2, microbatch_count=1, dispatch_us=300.0, recompute="full")


def test_the_next_wall_truly_costs_what_is_saved_beyond_the_first() -> None:
    told, _ = truths(SMALL, View())
    later = next_costs(told, "communication", [0, 1, 2])
    assert set(later) == {"host_overhead", "memory", "compute"}
    first = told.costs.cost_frac("communication")
    assert 0.1 < later["memory"] < told.costs.cost_frac("memory") / (1 - first) + 0.01


def test_where_nothing_before_a_step_was_recorded_it_begins_with_its_work() -> None:
    whole, _ = truths(SMALL, View())
    cut, _ = truths(SMALL, View(begin_frac=1.0))
    working = [one.start_ns for one in whole.run.own if one.work.place.step == 1]
    assert cut.borders_ns[1] == min(working)
    assert cut.borders_ns[2:] == whole.borders_ns[2:]
    assert (list(cut.recorded), list(whole.recorded)) == ([1, 2], [0, 1, 2])

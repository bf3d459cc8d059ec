"""What simulated runs must show whatever the seed: a handful of each family, diagnosed whole."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from bench.score import grade, shown
from bench.score.corpus import Case, broken, harmless, healthy_case, on_two_gpus, spelled
from bench.score.one import Result, score
from bench.score.truth import WALLS
from bench.simulate.host_program import Engine, Synchronise
from bench.simulate.kernels import kernels_of
from bench.simulate.run import run

SEED = 10_000_000
SPELLED = ("alltoall", "deepep", "hybridep")
HIDING_ALL = ("no calls", "graphs not recorded")
HIDING_A_PART = ("graphs whole", "no GPU table", "clocks 325 ms apart", "clocks 156 ms apart")


@cache
def scored(case: Case) -> Result:
    found = score(case)
    assert not found.error
    return found


def smaller(case: Case) -> Case:
    return replace(case, knobs=replace(case.knobs, step_count=2, layer_count=3, microbatch_count=1))


def shorter(case: Case) -> Case:
    return replace(case, knobs=replace(case.knobs, step_count=2))


def of(cases: list[Case], name: str) -> Result:
    (case,) = (case for case in cases if name in (case.name, case.group))
    return scored(case)


@pytest.mark.parametrize("scenario", ["healthy", "dense"])
def test_a_run_without_a_handicap_has_no_wall(scenario: str) -> None:
    found = scored(shorter(healthy_case(SEED, scenario)))
    assert max(found.true_frac.values()) < 0.1
    assert found.wall is None
    assert "finding" not in found.told.values()


def test_the_walls_do_not_hang_on_how_the_dispatcher_spells_its_kernels() -> None:
    group = [scored(smaller(case)) for case in spelled(SEED)]
    for wall in WALLS:
        assert max(one.true_frac[wall] for one in group) - min(one.true_frac[wall] for one in group) < 0.01
    assert tuple(one.name for one in group) == SPELLED
    assert len({one.wall for one in group}) == 1
    assert len({tuple(one.told.items()) for one in group}) == 1
    assert shown.spelled_alike(group) == grade.Count(1, 1)


@pytest.mark.parametrize(("gpu", "wall"), [("H100", "communication"), ("GB200", "host_overhead")])
def test_one_model_is_held_back_by_its_links_on_one_gpu_and_by_the_host_on_the_next(
    gpu: str, wall: str
) -> None:
    found = of([smaller(case) for case in on_two_gpus(SEED)], gpu)
    assert max(found.true_frac, key=lambda one: found.true_frac[one]) == wall
    assert found.wall == wall


@pytest.mark.parametrize("wall", ["communication", "host_overhead", "compute"])
def test_what_only_looks_like_a_wall_is_none(wall: str) -> None:
    found = of([shorter(case) for case in harmless(SEED)], wall)
    assert found.true_frac[wall] < 0.1
    assert found.told[wall] != "finding"


def test_what_looks_like_a_wall_does_look_like_it() -> None:
    hidden, waiting, persistent = (shorter(case).knobs for case in harmless(SEED))
    simulated = run(hidden)
    moving = [one for one in simulated.activities if one.work.engine is Engine.COMMUNICATION]
    assert sum(one.end_ns - one.start_ns for one in moving) > 0.25 * sum(simulated.step_ns)
    simulated = run(waiting)
    waits = [call for call in simulated.executed.calls if isinstance(call.operation, Synchronise)]
    assert sum(call.end_ns - call.start_ns for call in waits) > 0.25 * sum(simulated.step_ns)
    simulated, kernels = run(persistent), kernels_of(persistent.gpu, persistent.fp8, persistent.grouped_gemm)
    computing = [one for one in simulated.activities if one.work.engine is Engine.SMS]
    staying = [one for one in computing if kernels[one.work.kernel].persistent]
    assert sum(one.end_ns - one.start_ns for one in staying) > 0.5 * sum(simulated.step_ns)


@pytest.mark.parametrize("name", HIDING_ALL)
def test_a_capture_that_hides_everything_makes_every_wall_unmeasurable(name: str) -> None:
    found = of([smaller(case) for case in broken(SEED)], name)
    assert found.hidden == WALLS
    assert max(found.true_frac.values()) > 0.1
    assert set(found.told.values()) == {"unmeasurable"}
    assert found.wall is None


@pytest.mark.parametrize("name", HIDING_A_PART)
def test_a_capture_that_hides_a_part_never_clears_a_true_wall(name: str) -> None:
    found = of([smaller(case) for case in broken(SEED)], name)
    assert found.hidden or found.veiled
    assert all(found.told[wall] == "unmeasurable" for wall in found.hidden)
    assert not [wall for wall in WALLS if found.true_frac[wall] >= 0.1 and found.told[wall] == "clear"]

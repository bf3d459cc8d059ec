"""Each family of causes truly shows its cause, by the simulator alone."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from bench.score import shown, truth
from bench.score.causes import CAUSES
from bench.score.corpus import FIRST_SEED, cause_cases, corpus
from bench.score.test_score import result
from bench.simulate.handicaps import Handicap
from bench.simulate.happened import Activity
from bench.simulate.host_program import AUTOGRAD, MAIN, Engine, Initialise, Launch, Spin, Synchronise
from bench.simulate.knobs import Knobs
from bench.simulate.recorded import View, record, recorded_steps
from bench.simulate.run import Run, run
from bench.simulate.step import program_of

SEEDS = range(3)
SMALL = Knobs(step_count=4, layer_count=2, microbatch_count=1)
three_seeds = pytest.mark.parametrize("seed", SEEDS)
MIB = 1 << 20


@cache
def drawn(family: str, seed: int) -> tuple[Knobs, View, Run]:
    knobs, view = CAUSES[family](20_000_000 + seed)
    return knobs, view, run(knobs)


def kernels(simulated: Run, kernel: str) -> list[Activity]:
    return [one for one in simulated.activities if one.work.kernel == kernel]


def large_copies(simulated: Run, engine: Engine) -> list[Activity]:
    works = (one for one in simulated.activities if one.work.engine is engine)
    return [one for one in works if one.work.size_bytes >= MIB]


def calls_and_work(view: View, simulated: Run) -> tuple[list[tuple[int, str]], set[int]]:
    """Correlation ids of launches that were recorded, in order and with their call, and of GPU work."""
    rows = record(simulated, view).rows
    tables = [f"CUPTI_ACTIVITY_KIND_{name}" for name in ("KERNEL", "MEMCPY", "MEMSET")]
    worked = {int(str(row["correlationId"])) for table in tables for row in rows.get(table, ())}
    by_id = {place + 1: call.operation for place, call in enumerate(simulated.executed.calls)}
    called = [int(str(row["correlationId"])) for row in rows["CUPTI_ACTIVITY_KIND_RUNTIME"]]
    operations = ((number, by_id[number]) for number in called)
    return [(number, one.api) for number, one in operations if isinstance(one, Launch)], worked


@three_seeds
def test_compute_waits_for_room_that_compute_of_another_stream_leaves(seed: int) -> None:
    _, _, simulated = drawn("sm room", seed)
    waiting = [one for one in simulated.activities if one.bound == "room"]
    ends = {one.end_ns: one for one in simulated.activities if one.work.engine is Engine.SMS}
    assert len(waiting) > 20
    assert all(ends[one.start_ns].work.stream != one.work.stream for one in waiting)


@three_seeds
def test_a_cut_capture_has_graph_launches_without_work_at_both_ends_only(seed: int) -> None:
    _, view, simulated = drawn("cut graphs", seed)
    launches, worked = calls_and_work(view, simulated)
    empty = [number not in worked for number, _ in launches]
    first, last = empty.index(False), len(empty) - 1 - empty[::-1].index(False)
    assert 0 < first < last < len(launches) - 1
    at_the_end = [api for number, api in launches[-empty[::-1].index(False) :]]
    assert any(api.startswith("cudaGraphLaunch") for api in at_the_end)
    assert len(recorded_steps(simulated, view)) >= 2


@three_seeds
def test_a_gather_after_the_optimizer_ends_the_step_that_launched_it(seed: int) -> None:
    _, _, simulated = drawn("exposed gather", seed)
    borders = truth.optimizer_borders_ns(simulated)[1:]
    for step, border_ns in enumerate(borders):
        ends = [
            (one.end_ns, one.work.kernel)
            for one in simulated.activities
            if one.work.place.step == step and one.work.kernel in ("adam", "nccl_all_gather")
        ]
        assert max(ends) == (border_ns, "nccl_all_gather")


@three_seeds
def test_weights_on_the_host_are_copied_per_layer_and_gone_with_the_memory_wall(seed: int) -> None:
    knobs, _, simulated = drawn("host resident", seed)
    copies = large_copies(simulated, Engine.COPY_TO_DEVICE)
    passes = knobs.step_count * knobs.microbatch_count * knobs.layer_count
    assert len(copies) == 2 * passes
    assert len({one.work.size_bytes for one in copies}) == 1
    assert large_copies(run(knobs, without=Handicap.MEMORY), Engine.COPY_TO_DEVICE) == []


@three_seeds
def test_adam_on_the_host_is_a_pause_between_its_copies(seed: int) -> None:
    knobs, _, simulated = drawn("cpu adam", seed)
    down = large_copies(simulated, Engine.COPY_TO_HOST)
    up = large_copies(simulated, Engine.COPY_TO_DEVICE)
    for step in range(knobs.step_count):
        last_ns = max(one.end_ns for one in down if one.work.place.step == step)
        first_ns = min(one.start_ns for one in up if one.work.place.step == step)
        assert first_ns - last_ns > 0.7 * knobs.cpu_adam_ms * 1_000_000
    for gone in (Handicap.MEMORY, Handicap.HOST_OVERHEAD):
        assert sum(run(knobs, without=gone).step_ns) < sum(simulated.step_ns)


def test_without_its_copies_adam_on_the_host_still_waits_for_the_gradients() -> None:
    knobs = replace(SMALL, cpu_adam_ms=5.0)
    without = run(knobs, without=Handicap.MEMORY)
    for step in range(1, knobs.step_count):
        normed = [one.end_ns for one in kernels(without, "l2norm_cleanup") if one.work.place.step == step - 1]
        later = [one.start_ns for one in without.activities if one.work.place.step == step]
        assert min(later) - max(normed) > 0.7 * 5_000_000


def test_the_first_step_alone_loads_code() -> None:
    calls = run(replace(SMALL, first_step_ms=40.0)).executed.calls
    loads = [place for place, call in enumerate(calls) if isinstance(call.operation, Initialise)]
    steps = [call.operation.works[0].place.step for call in calls if isinstance(call.operation, Launch)]
    assert len(loads) == SMALL.layer_count
    assert max(loads) < steps.index(1)


@three_seeds
def test_initialisation_lies_before_the_first_border(seed: int) -> None:
    knobs, _, simulated = drawn("initialisation", seed)
    early = [one for one in simulated.activities if one.work.place.step < 0]
    assert len(early) == knobs.initial_kernel_count
    assert simulated.borders_ns[0] == max(one.end_ns for one in early)
    assert truth.optimizer_borders_ns(simulated)[0] == simulated.borders_ns[0]


@three_seeds
def test_far_behind_its_host_the_gpu_is_never_idle_at_a_launch(seed: int) -> None:
    _, view, simulated = drawn("far ahead", seed)
    launches, worked = calls_and_work(view, simulated)
    began = {number: simulated.executed.calls[number - 1].start_ns for number, _ in launches}
    works = [one for one in simulated.activities if one.call + 1 in began and one.call + 1 in worked]
    assert min(one.start_ns - began[one.call + 1] for one in works) > 50_000
    assert any(isinstance(call.operation, Synchronise) for call in simulated.executed.calls)


@three_seeds
def test_the_host_polls_for_every_dispatch_that_is_counted(seed: int) -> None:
    knobs, _, _ = drawn("poll", seed)
    said = [one for thread in (MAIN, AUTOGRAD) for one in program_of(knobs).threads[thread]]
    notified = [one for one in said if isinstance(one, Launch) and one.mark is not None]
    assert {one.works[0].kernel for one in notified} == {"deepep_notify_dispatch"}
    assert sorted(one.mark for one in said if isinstance(one, Spin)) == sorted(
        one.mark for one in notified if one.mark is not None
    )


def test_every_cause_has_runs_on_seeds_of_its_own() -> None:
    cases = list(cause_cases(20_000_000))
    assert {case.family for case in cases} == set(CAUSES)
    assert len({case.knobs.seed for case in cases}) == len(cases)
    others = {case.knobs.seed for case in corpus(FIRST_SEED, 3) if case.family not in CAUSES}
    assert not others & {case.knobs.seed for case in cause_cases(20_000_000 + FIRST_SEED)}


def test_a_cause_is_scored_by_verdict_steps_costs_account_and_replay() -> None:
    proofs = {"residual_free_error_frac": 0.01, "elastic_frac": 0.45}
    right = replace(result(proofs=proofs), family="sm room", steps_used=4, steps_usable=4)
    unused = replace(right, steps_used=3, proofs={**proofs, "residual_free_error_frac": 0.03})
    failed = replace(right, wall=None, told={}, found_frac={}, rows={}, proofs={}, error="ValueError: no")
    (score,) = shown.cause_scores([right, unused, failed])
    assert (score.family, score.verdicts.hits, score.steps.hits, score.replays.hits) == ("sm room", 2, 1, 1)
    assert [count.hits for count in score.costs] == [2, 2, 2, 2]
    assert score.rows.of == 3


def test_a_cause_is_also_scored_by_kind_step_time_waits_and_what_must_be_unmeasurable() -> None:
    true = {"communication": 0.02, "host_overhead": 0.40, "memory": 0.0, "compute": 0.0}
    right = result(true, kind="data", step_ns=(10_000.0, 10_100.0), data_frac=(0.39, 0.40))
    proofs = {"residual_free_error_frac": 0.01, "elastic_frac": 0.45}
    right = replace(right, family="data loading", hidden=("compute",), proofs=proofs)
    silent = replace(right, told={**right.told, "compute": "unmeasurable"}, kind="python")
    off = replace(right, step_ns=(9_900.0, 10_100.0), data_frac=(0.0, 0.40))
    still = replace(right, data_frac=(0.0, 0.0))
    (score,) = shown.cause_scores([right, silent, off, still])
    found = [(one.hits, one.of) for one in (score.kinds, score.hidden, score.step_times, score.data)]
    assert found == [(3, 4), (1, 4), (3, 4), (2, 3)]

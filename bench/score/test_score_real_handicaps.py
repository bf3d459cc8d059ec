"""The families that real recordings asked for truly show what they are for, by the simulator alone."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from bench.score import truth
from bench.score.causes import CAUSES
from bench.score.true_account import REASONS, account
from bench.simulate.handicaps import Handicap
from bench.simulate.happened import Activity
from bench.simulate.host_program import LOADER, Engine, Initialise, Launch
from bench.simulate.knobs import Knobs
from bench.simulate.recorded import START_NS, View, record
from bench.simulate.run import Run, run
from bench.simulate.truth import TrueCosts

MS = 1_000_000
SMALL = Knobs(
    step_count=4, layer_count=2, microbatch_count=1, dispatcher="none", data_stall_ms=0.0,
    end_of_step="read_back",
)  # fmt: skip
three_seeds = pytest.mark.parametrize("seed", range(3))


@cache
def drawn(family: str, seed: int) -> tuple[Knobs, View, Run]:
    knobs, view = CAUSES[family](20_000_000 + seed)
    return knobs, view, run(knobs)


def told(*lengths_ms: float) -> truth.Told:
    """Steps of these lengths, nothing known of their calls."""
    small, _ = truth.truths(replace(SMALL, step_count=len(lengths_ms)), View())
    costs = TrueCosts(tuple(round(ms * MS) for ms in lengths_ms), {})
    return replace(small, costs=costs, recorded=range(len(lengths_ms)))


@pytest.mark.parametrize(
    ("lengths_ms", "typical"),
    [
        ((20, 10, 10), [1, 2]),
        ((10.4, 10, 10), [0, 1, 2]),
        ((20, 10), [0, 1]),  # one other tells nothing of what is usual
        ((20, 10, 12), [0, 1, 2]),  # others unlike
        ((20, 10, 10, 10), [1, 2, 3]),
        ((*[10] * 8, 20), [0, 1, 2, 3, 4, 5, 6, 7]),
        ((*[10] * 6, 20), [0, 1, 2, 3, 4, 5, 6]),  # of so few none is a hiccup
        ((*[10, 10, 10, 20] * 3,), list(range(12))),  # a quarter: they alternate
        ((30, *[10] * 8, 20), [1, 2, 3, 4, 5, 6, 7, 8]),
    ],
)
def test_typical_steps_are_neither_warm_up_nor_hiccup(
    lengths_ms: tuple[float, ...], typical: list[int]
) -> None:
    assert truth.typical_steps(told(*lengths_ms)) == typical


@pytest.mark.parametrize("first_step", ["loads", "allocates", "python"])
def test_of_two_steps_the_first_is_warm_up_only_where_it_initialises(first_step: str) -> None:
    knobs = replace(SMALL, step_count=2, first_step=first_step, first_step_ms=40.0)
    by_step, _ = truth.truths(knobs, View())
    assert truth.typical_steps(by_step) == ([0, 1] if first_step == "python" else [1])


def of_loader(simulated: Run) -> list[Activity]:
    calls = simulated.executed.calls
    return [one for one in simulated.activities if calls[one.call].thread == LOADER]


@three_seeds
def test_a_loader_thread_works_on_a_stream_of_its_own_that_nothing_waits_for(seed: int) -> None:
    knobs, view, simulated = drawn("helper threads", seed)
    helped, own = of_loader(simulated), simulated.own
    assert len(helped) == knobs.step_count * (1 if knobs.helper == "copies" else 7)
    assert {one.work.stream for one in helped}.isdisjoint(one.work.stream for one in own)
    assert len(helped) + len(own) == len(simulated.activities)
    threads = {row["globalTid"] for row in record(simulated, view).rows["CUPTI_ACTIVITY_KIND_RUNTIME"]}
    assert len(threads) == 3
    starts = [call.start_ns for call in simulated.executed.calls]
    assert starts == sorted(starts)


def test_helpers_end_no_wait_for_a_batch_and_the_account_adds_up() -> None:
    plain = run(replace(SMALL, data_stall_ms=20.0))
    helped = run(replace(SMALL, data_stall_ms=20.0, helper="dali", helper_kernel_us=100.0))
    for simulated in (plain, helped):
        windows = [(simulated.borders_ns[0], simulated.borders_ns[-1])]
        rows = account(simulated, windows)
        absent_ns = windows[0][1] - windows[0][0] - rows["compute"]
        assert sum(rows[reason] for reason in REASONS) == absent_ns
        assert rows["host"] == pytest.approx(3 * 20 * MS, rel=0.3)
    per_step_ns = 6 * 100_000
    before, after = (account(one, [(one.borders_ns[0], one.borders_ns[-1])]) for one in (plain, helped))
    assert after["compute"] - before["compute"] == pytest.approx(3 * per_step_ns, rel=0.4)


@three_seeds
def test_a_host_ahead_closes_a_step_before_its_gpu_work_begins(seed: int) -> None:
    knobs, _, simulated = drawn("host ahead", seed)
    closed = sorted(span.end_ns for span in simulated.executed.spans if span.kind == "step")
    for step in range(1, knobs.step_count):
        works = [one for one in simulated.own if one.work.place.step == step]
        assert closed[step] < min(one.start_ns for one in works if one.work.engine is Engine.SMS)


def test_a_hiccup_moves_its_own_step_and_no_other() -> None:
    knobs = replace(SMALL, step_count=10, hiccup_ms=30.0)
    plain, held = run(knobs), run(replace(knobs, hiccup_count=1))
    longer = [after - before for before, after in zip(plain.step_ns, held.step_ns, strict=True)]
    (slow,) = (step for step, ns in enumerate(longer) if ns > MS)
    assert longer[slow] == pytest.approx(30 * MS, rel=0.4)
    assert sum(map(abs, longer)) - longer[slow] < MS // 10
    by_step, _ = truth.truths(replace(knobs, hiccup_count=1), View())
    assert truth.typical_steps(by_step) == [step for step in range(10) if step != slow]


@pytest.mark.parametrize("workers", [1, 2, 4, 8])
def test_of_so_many_workers_each_such_step_waits_and_costs_its_wait(workers: int) -> None:
    knobs = replace(SMALL, step_count=17, data_stall_ms=40.0, loader_workers=workers)
    by_step, _ = truth.truths(knobs, View())
    waits = [span for span in by_step.run.executed.spans if span.text == "data"]
    slow = [step for step, ns in enumerate(by_step.costs.step_ns) if ns > 20 * MS]
    assert slow == list(range(workers, 17, workers))  # the first lies before all GPU work
    waited_ns = sum(span.end_ns - span.start_ns for span in waits[1:])
    cost_ns = truth.waits_for_data_frac(by_step, range(17)) * sum(by_step.costs.step_ns)
    assert cost_ns == pytest.approx(waited_ns, rel=0.02)
    assert truth.typical_steps(by_step) == list(range(17))


@pytest.mark.parametrize("one_thread", [False, True])
def test_full_recompute_runs_attention_twice_and_costs_what_it_runs_again(one_thread: bool) -> None:
    knobs = replace(SMALL, recompute="full", autograd_thread=not one_thread)
    simulated = run(knobs)
    assert len({call.thread for call in simulated.executed.calls}) == (1 if one_thread else 2)
    named = [one.work.kernel for one in simulated.activities]
    assert named.count("attention_fwd") == 2 * named.count("attention_bwd") == 16
    again_ns = sum(one.end_ns - one.start_ns for one in simulated.own if one.work.place.phase == "recompute")
    saved_ns = sum(simulated.step_ns) - sum(run(knobs, without=Handicap.MEMORY).step_ns)
    assert saved_ns == pytest.approx(again_ns, rel=0.05)


@pytest.mark.parametrize(
    ("precision", "frac"), [("fp32", 67 / 494.5), ("convolution", 67 / 989.5), ("tf32", 494.5 / 989.5)]
)
def test_products_would_take_what_bf16_takes_and_simt_gemms_what_tf32_takes(
    precision: str, frac: float
) -> None:
    """Attention in FP32 multiplies in TF32 three times."""
    knobs = replace(SMALL, precision=precision)
    before, after = run(knobs), run(knobs, without=Handicap.COMPUTE)
    pairs = zip(before.activities, after.activities, strict=True)
    for old, new in ((old, new) for old, new in pairs if old.work.block_count >= 132):
        part = old.work.kernel
        multiplies = "gemm" in part or part in ("attention_fwd", "attention_bwd")
        share = (494.5 / 3 / 989.5 if "attention" in part else frac) if multiplies else 1.0
        assert new.work.alone_ns == pytest.approx(old.work.alone_ns * share, abs=1.0)


@three_seeds
def test_an_opaque_step_is_one_graph_row(seed: int) -> None:
    knobs, view, simulated = drawn("opaque graphs", seed)
    rows = record(simulated, view).rows
    replays = rows["CUPTI_ACTIVITY_KIND_GRAPH_TRACE"]
    assert len(replays) == knobs.step_count
    assert len({row["graphId"] for row in replays}) == 1
    assert "CUPTI_ACTIVITY_KIND_KERNEL" not in rows
    starts = [int(str(row["start"])) - START_NS for row in replays]
    computing = (one.start_ns for one in simulated.own if one.work.engine is Engine.SMS)
    assert starts[0] == min(computing)  # the step begins with its batch before
    assert all(
        simulated.borders_ns[step] <= start < simulated.borders_ns[step + 1]
        for step, start in enumerate(starts)
    )


@three_seeds
def test_start_up_is_over_before_the_first_step(seed: int) -> None:
    knobs, _, simulated = drawn("start-up", seed)
    calls = [call for call in simulated.executed.calls if isinstance(call.operation, Initialise)]
    launches = [call for call in simulated.executed.calls if isinstance(call.operation, Launch)]
    slow = [*calls, *(call for call in launches if call.end_ns - call.start_ns > 50 * MS)]
    assert len(slow) == len(calls) + 1
    assert sum(call.end_ns - call.start_ns for call in slow) == pytest.approx(knobs.startup_ms * MS, rel=0.25)
    assert max(call.end_ns for call in slow) <= simulated.borders_ns[0]

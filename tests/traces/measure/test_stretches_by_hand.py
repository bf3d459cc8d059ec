"""Bounds, data, frees and steps of hand-made runs: what lies at a border, on another stream or thread."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.by_hand.run import US, Run
from traces.measure.bounds import Bounds
from traces.measure.rates import _precision
from traces.missing import Missing, known
from traces.names.operators import Dtype
from traces.sections.rank import A2a
from traces.sections.tables import ReasonLane
from traces.sizes.operator_work import OperatorWork

MIB = 1 << 20


def test_bounds_of_a_run_that_waits_for_communication_offload_and_small_grids() -> None:
    """Of each 100 us: 40 of compute, 10 of it on 33 of 132 SMs; 20 of all-reduce alone; 30 of offload."""
    run = Run()
    for step in run.steps(4, every=100):
        step.work("gemm", 0, 30)
        step.work("gemm", 30, 40, blocks=33)
        step.work("all_reduce", 40, 60, stream=20)
        for place, kind in enumerate(("d2h", "d2h", "h2d", "h2d")):
            at = 60 + 8 * place
            step.work(kind, at, at + 7, stream=9, size_bytes=MIB)
    found = run.measured().bounds
    used = len(run.steps_found())
    assert (found.communication, found.compute) == (20_000 * used, 7_500 * used)
    assert found.memory == 28_000 * used
    small = Run()
    for step in small.steps(4, every=100):
        step.work("gemm", 0, 90)
        step.work("d2h", 90, 99, size_bytes=MIB - 1)
    assert small.measured().bounds.memory == 0


def test_allocator_calls_bound_memory_by_what_they_keep_waiting_or_without_an_account_by_all_that_waits() -> (
    None
):
    for launched, name, expected_us in (
        (True, "malloc", 30),
        (False, "malloc", 20 * 40 - 40),
        (False, "sync", 0),
        (False, "", 20 * 40 - 40),  # no call was recorded
    ):
        run = Run()
        for at in range(0, 2_000, 100):
            run.work("gemm", at, at + 60, launched=launched, **({"launch": at - 2} if launched else {}))
        if name:
            run.call(name, 160, 190)
        found = run.measured().bounds.memory
        assert found is not None
        if launched:
            assert found == run.account().get("launch_starved.allocator", 0) * 1_000 == expected_us * 1_000
        else:
            assert found == expected_us * 1_000


@pytest.mark.parametrize(
    ("dtype", "name", "expected"),
    [
        *(("bf16", "anything", "bf16"), ("fp16", "anything", "bf16"), ("fp8", "anything", "fp8")),
        ("fp32", "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize32x32x8", "tf32"),
        ("fp32", "ampere_sgemm_128x64_tn", "fp32"),
        ("fp32", "fmha_cutlassF_f32_aligned_64x64_rf_sm80(AttentionKernel<float, arch::Sm80>::Params)", None),
        ("fp32", "unnamed_kernel", None),  # which may be TF32 on an H100
    ],
)
def test_the_format_of_a_product_of_fp32_is_in_the_name_of_its_kernel(
    dtype: Dtype, name: str, expected: str | None
) -> None:
    run = Run()
    run.work("gemm", 0, 10)
    assert _precision(OperatorWork("aten::mm", dtype, 1, 1), name, run.rank()) == expected


def test_a_step_shows_each_stream_what_was_cut_and_when_it_was_launched() -> None:
    run = Run()
    for step in run.steps(3, every=100):
        step.work("gemm", 0, 60)
        step.work("all_reduce", 50, 95, stream=20)
        step.range("forward", -5, 40)
        step.call("sync", 55, 95)
    found = run.measured().timeline
    lanes = {lane.stream: lane for lane in found.lanes}
    assert sorted(lanes) == [7, 20]
    assert (known(found.step), found.end_ns - found.start_ns) == (1, 100_000)
    assert isinstance(found.reasons, ReasonLane)
    assert found.reasons.at_ns[0] >= 0
    assert len({found.names[one] for lane in found.lanes for one in lane.name}) == 2
    for lane in lanes.values():
        launches = [known(one) for one in lane.launch_ns]
        assert all(isinstance(one, int) and one < at for one, at in zip(launches, lane.at_ns, strict=True))
    unlaunched = Run()
    for start, end in ((0, 60), (20, 20)):
        unlaunched.work("gemm", start, end, launched=False)
    (lane,) = unlaunched.measured(window=(10, 50)).timeline.lanes
    assert (lane.at_ns, lane.length_ns, isinstance(lane.launch_ns[0], Missing)) == ((0,), (40_000,), True)


def test_what_the_account_lays_on_expert_traffic_is_its_blocking_time() -> None:
    """A dispatch of 50 to 160 us hides 50 under compute; compute waits for the last 8."""
    run = Run()
    run.work("gemm", 0, 100)
    run.on(stream=20).work("dispatch", 50, 160)
    run.wait(20, by=7, recorded=42, waits=45)
    run.work("gemm", 170, 200, launch=150)
    found = run.measured().a2a
    assert isinstance(found, A2a)
    assert (found.payload_ns, found.exposed_ns, found.hidden_ns) == (110_000, 60_000, 50_000)
    assert found.blocking_ns == 8_000


def test_a_small_kernel_that_the_window_cuts_counts_with_what_lies_within() -> None:
    run = Run()
    run.work("gemm", 0, 100)
    run.work("gemm", 100, 200, blocks=66)
    assert run.measured(window=(0, 150)).bounds.compute == 25 * US
    assert run.measured(window=(199.998, 200)).bounds.compute == 1  # of 2 ns


def test_compute_is_bounded_by_its_grid_in_a_faster_format_and_without_a_grid_not_at_all() -> None:
    """Half of the SMs, and FP32 at half the rate of TF32: a quarter of 100 us is left."""
    run = Run(sm_count=None)
    run.recording.gpu("NVIDIA RTX A6000", 84, (8, 6))
    run.work("ampere_sgemm_128x64_tn", 0, 100, blocks=42)
    assert run.measured().bounds.compute == 75 * US
    run.recording.rows["CUPTI_ACTIVITY_KIND_KERNEL"][0]["gridX"] = None
    assert run.measured().bounds.compute is None


def test_graphs_hide_communication_but_what_is_seen_is_bounded() -> None:
    run = Run()
    run.work("gemm", 0, 100)
    run.work("all_reduce", 100, 120, stream=20)
    run.work("graph", 120, 220)
    bounds = run.measured().bounds
    assert replace(bounds, host_overhead=0) == Bounds(None, 0, None, None, 20 * US)
    assert bounds.host_overhead is not None


def test_graphs_of_one_process_that_show_no_work_hide_nothing_of_another() -> None:
    run = Run()
    for number in (0, 1):
        of = run.process(number)
        of.work("gemm", 0, 100)
        of.work("gemm", 120, 200, launch=110)
    run.process(0).call("graph_launch", 50, 52)
    told = {"launch_starved.python": 10, "launch_starved.launch": 2, "launch_latency.arrival": 8}
    assert run.account(1) == told
    with pytest.raises(LookupError, match="CUDA graph launches show no work"):
        run.account(0)


def test_communication_outside_the_window_stretches_nothing_in_it() -> None:
    """16 blocks of the all-reduce on 132 SMs: of 200 us beside it GEMMs lose up to 16/132."""
    run = Run()
    for start in (200, 300, 400, 500):
        run.work("gemm", start, start + 100)
        run.work("all_reduce", start + 50, start + 100, stream=20)
    assert run.measured(window=(200, 600)).bounds.communication_seen == 24_240
    assert run.measured(window=(200, 250)).bounds.communication_seen == 0


CONV, EMPTY, BACK = "aten::convolution", "aten::empty", "autograd::engine::evaluate_function: ReluBackward0"
CONVOLVE = "igemm_fwd_gtcx3_nhwc_bf16_bx0"


@pytest.mark.parametrize(
    ("operators", "foreign_frac", "retry_frac"),
    [
        ([(CONV, "gemm"), (EMPTY, "free free cudaStreamIsCapturing malloc"), (CONV, "gemm")], 0.0, 1.0),
        ([(CONV, "malloc gemm free")] * 2, 1.0, 0.0),
        ([(CONV, CONVOLVE), *((CONV, f"{'free malloc ' * n}{CONVOLVE}") for n in (1, 2))], 1.0, 0.0),
        ([(CONV, CONVOLVE), (CONV, f"malloc free malloc {CONVOLVE}")], 0.0, 1.0),
        ([(EMPTY, "malloc"), (CONV, "gemm"), (BACK, "free"), (EMPTY, "malloc"), (CONV, "gemm")], 1.0, 0.0),
        ([(CONV, "gemm")], 0.0, 0.0),
    ],
    ids=["full cache", "workspace", "taken anew", "asked first", "no cache", "nothing is freed"],
)
def test_only_frees_that_make_room_for_an_allocation_are_retries_of_the_cache(
    operators: list[tuple[str, str]], foreign_frac: float, retry_frac: float
) -> None:
    """Four steps of operators in turn, each a range with its calls, 10 us each."""
    run, at = Run(), 0
    for step in range(4):
        begin = at
        for name, calls in operators:
            first = at
            for call in calls.split():
                if call in ("gemm", CONVOLVE):
                    run.work(call, at + 5, at + 9, launch=at)
                else:
                    run.call(call, at, at + 8)
                at += 10
            run.range(name, first, at - 1)
        run.range(f"iteration {step}", begin, at)
        at += 10
    memory = run.measured().memory
    assert memory.foreign_frees_frac == foreign_frac
    assert known(memory.allocator_retry_frac) == retry_frac


@pytest.mark.parametrize(("at", "retry_frac"), [(40, 1.0), (50, 1.0), (51, 0.0)])
def test_room_is_made_for_a_step_up_to_its_last_launch(at: int, retry_frac: float) -> None:
    run = Run()
    for number, step in enumerate(run.steps(3, every=100)):
        step.work("gemm", 10, 20, launch=0)
        step.work("gemm", 60, 70, launch=50, thread=1)
        step.call("free", 40, 42)
        step.call("malloc", at + (not number), at + 2)  # too late in the first step
    assert known(run.measured().memory.allocator_retry_frac) == retry_frac

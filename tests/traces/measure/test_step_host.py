"""The host in a timeline: launches, calls and ranges as recorded, and no text that may be private."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.simulate.recording import Recording
from tests.recordings.launches import GEMM, rank_of
from traces.measure.step_timeline import (
    OTHER_ROWS,
    Texts,
    host_kinds,
    host_lanes,
    measure_timelines,
)
from traces.missing import Missing
from traces.names.ranges import public_call, public_range
from traces.steps.found import Step, Steps, from_steps, one_window

Export = Callable[..., Path]
BLIND = Missing("account", "clocks apart", "record again")


def every(length_ns: int, count: int) -> Steps:
    return from_steps(
        "user", "the test's", tuple(Step(n, n * length_ns, (n + 1) * length_ns) for n in range(count))
    )


def test_calls_and_ranges_of_a_thread_lie_in_lanes_by_their_depth_and_are_cut_at_the_step(
    export: Export,
) -> None:
    """In us; a launch takes 2."""
    recording = Recording()
    recording.range("forward", 50_000, 180_000)
    recording.range("mlp", 120_000, 140_000)
    recording.range("attention", 150_000, 170_000)
    recording.kernel(GEMM, 130_000, 150_000, launch_ns=125_000)
    recording.call("cudaEventRecord_v3020", 160_000, 165_000)
    rank, window = rank_of(export(recording)), one_window("none", "all", 100_000, 200_000)
    shown = measure_timelines(rank, window, BLIND)[0]
    lanes = [
        (lane.kind, lane.depth, lane.at_ns, [shown.names[one] for one in lane.name]) for lane in shown.host
    ]
    assert lanes == [
        ("ranges", 0, (0,), ["forward"]),
        ("ranges", 1, (20_000, 50_000), ["mlp", "attention"]),
        ("calls", 0, (25_000, 60_000), ["cudaLaunchKernel", "cudaEventRecord"]),
    ]
    assert [lane.length_ns for lane in shown.host] == [(80_000,), (20_000, 20_000), (2_000, 5_000)]
    assert shown.host_left_out == 0


def test_of_too_many_rows_the_longest_stay_and_the_others_are_counted(export: Export) -> None:
    recording = Recording()
    recording.kernel(GEMM, 10, 50, launch_ns=5)
    for place in range(10):
        recording.call("cudaEventRecord_v3020", 3_000 + 100 * place, 3_001 + 100 * place + place)
    rank = rank_of(export(recording))
    lanes, left_out = host_lanes(rank, host_kinds(rank.columns), (2_500, 9_000), Texts(), 4)
    assert sum(len(lane.at_ns) for lane in lanes) == 4
    assert [lane.length_ns for lane in lanes] == [(7, 8, 9, 10)]
    assert left_out == 6


def test_other_steps_share_their_rows_and_count_what_they_leave_out(export: Export) -> None:
    recording, most = Recording(), int(OTHER_ROWS.value) // 2
    for step in range(3):
        for place in range(most + 10):
            recording.kernel(GEMM, step * 100_000 + 20 * place, step * 100_000 + 20 * place + 5 + place % 2)
    found = measure_timelines(rank_of(export(recording)), every(100_000, 3), BLIND)
    assert found[0].left_out == 0
    for other in found[1]:
        assert (other.left_out, len(other.lanes[0].at_ns)) == (10, most)
        assert sum(length_ns == 5 for length_ns in other.lanes[0].length_ns) == most // 2 - 5


@pytest.mark.parametrize(
    "text",
    [
        "aten::add_, seq = 17, op_id = 4",
        "autograd::engine::evaluate_function: AddmmBackward0",
        "Optimizer.step#FusedAdam.step",
        "FSDP::pre_forward (encoder.block.0.layer.1)",
        "layer_3f-layer_5b",
        "iteration 1002",
        "ncclAllReduce",
        "nvte_cublas_gemm_v2",
        "## forward ##",
    ],
)
def test_a_range_that_frameworks_or_training_loops_write_is_named(text: str) -> None:
    assert public_range(text) == text.partition(", seq")[0]


@pytest.mark.parametrize(
    "text",
    [
        "/home/somebody/data",
        "forward of somebody",
        "step 10.98.97.96",
        "rank@host-7",
        "C:\\train",
        "load data.somebody",
        "token 1234567",
        "aten::add/home/somebody",
        "42",
        "",
        "Optimizer.step#SecretLab.step",
    ],
)
def test_a_range_with_a_word_that_nobody_knows_has_no_name(text: str) -> None:
    assert public_range(text) is None


def test_a_call_is_known_by_its_form_and_has_no_version() -> None:
    assert public_call("cudaLaunchKernel_v7000") == "cudaLaunchKernel"
    assert public_call("cuMemcpyAsync_v2_ptsz") == "cuMemcpyAsync"
    assert public_call("hunter2") is None

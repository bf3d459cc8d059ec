"""What is listed of steps: kernels, their order, a ledger, timelines of GPU and host, cut at borders."""

from __future__ import annotations

import numpy as np
import pytest

from bench.simulate.recording import Recording
from tests.by_hand.run import Run
from tests.places import Export
from tests.recordings.launches import ADAM, GEMM, NO_ACCOUNT, NORM, SENDRECV, rank_of
from traces.account.account import absent_pieces, measure_account
from traces.account.device import find_queueing
from traces.columns import NULL
from traces.intervals import Spans, spans
from traces.measure.kernel_table import NO_NAME, measure_kernels
from traces.measure.ledger import LedgerBorders, measure_ledger, per_step_ns
from traces.measure.sequence import measure_sequence
from traces.measure.step_timeline import NumberedTexts, host_kinds, host_lanes, measure_timelines
from traces.missing import Missing, known
from traces.names.ranges import public_call, public_range
from traces.sections.tables import KernelsLeftOut, KernelTable, LedgerRow, Sequence
from traces.steps.found import Step, Steps, from_steps, one_window
from traces.timeline import RankTimeline


def test_kernels_are_counted_by_name_and_grid_the_most_work_first(export: Export) -> None:
    recording = Recording()
    recording.kernel(GEMM, 0, 100, grid=(8, 1, 1))
    recording.kernel(GEMM, 100, 220, grid=(8, 1, 1), block=(64, 1, 1))
    recording.kernel(GEMM, 220, 230, grid=(4, 2, 1), block=(1, 2, 4))
    recording.kernel(SENDRECV, 230, 280, grid=(24, 1, 1), stream=20)
    table = measure_kernels(rank_of(export(recording)), spans((0, 300)))
    found = [(row.name, row.grid, row.count, row.work_ns, row.std_ns) for row in table.rows]
    assert found == [
        (GEMM, (8, 1, 1), 2, 220, 10),
        (SENDRECV, (24, 1, 1), 1, 50, 0),
        (GEMM, (4, 2, 1), 1, 10, 0),
    ]
    assert [row.key for row in table.rows] == ["compute.gemm", "comm.sendrecv_unresolved", "compute.gemm"]
    assert [known(row.block) for row in table.rows] == [None, (128, 1, 1), (1, 2, 4)]  # of two, all alike


def test_only_time_in_the_windows_is_work(export: Export) -> None:
    recording = Recording()
    recording.kernel(GEMM, 0, 100)
    recording.kernel(NORM, 100, 200)
    recording.kernel(NORM, 300, 400)
    rank = rank_of(export(recording))
    table = measure_kernels(rank, spans((99, 150)))
    assert [(row.name, row.count, row.work_ns) for row in table.rows] == [(NORM, 1, 50), (GEMM, 1, 1)]
    assert measure_kernels(rank, spans((210, 290))) == KernelTable((), KernelsLeftOut(0, 0, 0))


def test_what_is_beyond_the_list_is_counted_and_long_names_that_begin_alike_are_two(export: Export) -> None:
    recording, most = Recording(), 600
    for place in range(most + 5):
        recording.kernel(f"kernel_{place:0400d}", 10 * place, 10 * place + (9 if place < most else 2))
    table = measure_kernels(rank_of(export(recording)), spans((0, 10 * most + 50)))
    assert [*map(len, {row.name for row in table.rows})] == [312] * most
    assert table.left_out == KernelsLeftOut(5, 5, 10)


def test_a_name_as_long_as_may_be_stays_and_work_without_one_is_said_to_have_none(export: Export) -> None:
    recording, whole = Recording(), "x" * 300
    recording.kernel(whole, 0, 20)
    recording.rows["CUPTI_ACTIVITY_KIND_KERNEL"][0]["gridY"] = -1
    rank = rank_of(export(recording))
    found = measure_kernels(rank, spans((0, 20))).rows
    assert [(row.name, isinstance(row.grid, Missing)) for row in found] == [(whole, True)]
    rank.activities.name[:] = -1
    assert [row.name for row in measure_kernels(rank, spans((0, 20))).rows] == [NO_NAME]


def _sequence(rank: RankTimeline, steps: Steps) -> Sequence:
    found = measure_sequence(rank, steps)
    assert not isinstance(found, Missing)
    return found


def test_layers_are_a_loop_whose_runs_hold_the_work_of_all_passes(export: Export) -> None:
    recording = Recording()
    for layer in range(4):
        at = 1_000 + 100 * layer
        recording.kernel(GEMM, at, at + 30, launch_ns=at - 500)
        recording.kernel(NORM, at + 40, at + 50, launch_ns=at - 490)
    recording.kernel(ADAM, 1_500, 1_700, launch_ns=1_200)
    found = _sequence(rank_of(export(recording)), every(2_000, 1))
    assert [found.kinds[of].name for of in found.of] == [GEMM, NORM, ADAM]
    assert found.work_ns == (4 * 30, 4 * 10, 200)
    assert (found.loops.first_run, found.loops.run_count, found.loops.times) == ((0,), (2,), (4,))
    assert found.step == 0


def test_kernels_of_the_typical_step_take_as_long_as_in_the_mean_of_all(export: Export) -> None:
    """A GEMM of 10, 20 and 60 ns in steps of 100, of which the first is the typical one."""
    recording = Recording()
    for at, length in ((0, 10), (100, 20), (200, 60)):
        recording.kernel(GEMM, at, at + length)
    assert _sequence(rank_of(export(recording)), every(100, 3)).work_ns == (30,)


def test_a_step_of_more_than_four_thousand_runs_is_missing(export: Export) -> None:
    for count, told in ((4_000, True), (4_001, False)):
        recording = Recording()
        for place in range(count):
            recording.kernel(f"kernel_{place}", 10 * place, 10 * place + 5)
        found = measure_sequence(rank_of(export(recording, f"{count}.sqlite")), every(100_000, 1))
        assert (known(found) is not None) is told


def test_where_a_launch_is_unknown_what_runs_stands_in_order_of_its_start_and_a_size_may_be_unknown() -> None:
    run = Run()
    run.work("gemm", 20, 30, launch=5)
    run.work("norm", 10, 15, launch=6, stream=20)
    for at in (40, 60):
        run.work("h2d", at, at + 10, launched=False)
    for at in (80, 85):
        run.work("memset", at, at + 5, size_bytes=9)
    run.work("gemm", 110, 120)  # after the window
    rank = run.rank()
    rank.columns.copies.size_bytes[0] = NULL
    found = _sequence(rank, one_window("none", "all", 0, 100_000))
    assert known(found.step) is None
    kinds = [found.kinds[of] for of in found.of]
    assert [one.key.partition(".")[2] for one in kinds] == ["norm", "gemm", "memcpy_h2d", "memset"]
    assert [known(one.size_bytes) for one in kinds] == [None, None, None, 18]
    assert [isinstance(one.size_bytes, Missing) for one in kinds] == [False, False, True, False]
    assert found.work_ns == (5_000, 10_000, 20_000, 10_000)


def test_what_is_launched_from_the_first_forward_name_to_the_last_of_autograd_is_forward() -> None:
    """GEMMs before, between and after, one of them after autograd's first; the last launched runs first."""
    run = Run()
    for place, name in enumerate(["gemm", "norm", "gemm", "norm_backward", "gemm", "add", "gemm", "adam"]):
        thread, start = int(name in ("norm_backward", "add")), 0 if name == "adam" else 10 * place + 10
        run.work(name, start, start + 10, thread=thread, launch=place)
    rank = run.rank()
    rank.columns.thread_names[run.recording.global_id(1000, 1001)] = "pt_autograd_0"
    found = _sequence(rank, every(100_000, 1))
    phases = [str(found.kinds[of].phase) for of in found.of]
    assert phases == ["None", "forward", "forward", "backward", "forward", "backward", "None", "optimizer"]


def per_step(rows: tuple[LedgerRow, ...], group: str, begin: str = "") -> list[int]:
    """The rows of a group whose name begins so, added up by step."""
    mine = [row.per_step_ns for row in rows if row.group == group and row.row.startswith(begin)]
    return [sum(step) for step in zip(*mine, strict=True)]


def test_a_kernel_across_a_border_counts_in_both_steps(export: Export) -> None:
    """Steps of 100 ns. GEMM 0 to 130, SendRecv 120 to 160, norm 170 to 180, nothing to 200, a norm."""
    recording = Recording()
    recording.kernel(GEMM, 0, 130, launch_ns=-50)
    recording.kernel(SENDRECV, 120, 160, launch_ns=-40, stream=20)
    recording.kernel(NORM, 170, 180, launch_ns=-30)
    recording.kernel(NORM, 200, 210, launch_ns=-20)
    rank = rank_of(export(recording))
    steps = from_steps("user", "the test's", (Step(0, 0, 100), Step(1, 100, 200)))
    absent = absent_pieces(measure_account(rank, steps.windows, find_queueing(rank)))
    rows = measure_ledger(rank.activities, steps, absent, NO_ACCOUNT)
    budget = {row.row: (row.count, row.per_step_ns) for row in rows if row.group == "budget"}
    idle = [row for row in budget if row.startswith("idle.")]
    assert {row: said for row, said in budget.items() if row not in idle} == {
        "compute.gemm": (1, (100, 30)),
        "compute.norm": (1, (0, 10)),
        "exposed_comm.sendrecv_unresolved": (1, (0, 30)),
    }
    assert idle
    assert per_step(rows, "budget", "idle.") == [0, 30]
    assert per_step(rows, "absent") == [0, 60]
    blocking = {row.row for row in rows if row.group == "absent" and row.row.startswith("blocking.")}
    assert blocking <= {"blocking.sendrecv_unresolved"}


def test_a_set_of_instants_is_split_at_borders_that_touch() -> None:
    held: Spans = spans((0, 10), (20, 30))
    assert per_step_ns(held, LedgerBorders(np.array([5, 25]), np.array([25, 26]))).tolist() == [10, 1]


def test_without_steps_the_window_is_shown_and_without_an_account_no_reasons(export: Export) -> None:
    recording = Recording()
    recording.kernel(GEMM, 0, 40)
    rank = rank_of(export(recording))
    shown = measure_timelines(rank, one_window("none", "all", 0, 100), NO_ACCOUNT)[0]
    assert isinstance(shown.step, Missing)
    assert (shown.start_ns, shown.end_ns, shown.reasons) == (0, 100, NO_ACCOUNT)
    windows = Steps("none", "two", (), spans((10, 20), (30, 60)))
    shown = measure_timelines(rank, windows, NO_ACCOUNT)[0]
    assert (shown.start_ns, shown.end_ns) == (10, 60)


def test_what_is_too_much_to_show_is_cut_at_a_time_and_counted(export: Export) -> None:
    recording, most = Recording(), 12_000
    for place in range(most + 3):
        recording.kernel(GEMM, 10 * place, 10 * place + 8)
    shown = measure_timelines(rank_of(export(recording)), one_window("none", "all", 0, 10**6), NO_ACCOUNT)[0]
    assert (shown.left_out, shown.end_ns, len(shown.lanes[0].at_ns)) == (3, 10 * most, most)


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
    for start, end in ((90_000, 100_000), (200_000, 210_000)):  # before it and after it
        recording.range("optimizer", start, end)
    recording.range("mlp", 120_000, 140_000)
    recording.range("attention", 150_000, 170_000)
    recording.kernel(GEMM, 130_000, 150_000, launch_ns=125_000)
    recording.call("cudaEventRecord_v3020", 160_000, 165_000)
    rank, window = rank_of(export(recording)), one_window("none", "all", 100_000, 200_000)
    shown = measure_timelines(rank, window, NO_ACCOUNT)[0]
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
    lanes, left_out = host_lanes(rank, host_kinds(rank.columns), (2_500, 9_000), NumberedTexts(), 4)
    assert sum(len(lane.at_ns) for lane in lanes) == 4
    assert [lane.length_ns for lane in lanes] == [(7, 8, 9, 10)]
    assert left_out == 6


def test_other_steps_share_their_rows_and_count_what_they_leave_out(export: Export) -> None:
    recording, most = Recording(), 2_500
    for step in range(3):
        for place in range(most + 10):
            recording.kernel(GEMM, step * 100_000 + 20 * place, step * 100_000 + 20 * place + 5 + place % 2)
    found = measure_timelines(rank_of(export(recording)), every(100_000, 3), NO_ACCOUNT)
    assert found[0].left_out == 0
    for other in found[1]:
        assert (other.left_out, len(other.lanes[0].at_ns)) == (10, most)
        assert sum(length_ns == 5 for length_ns in other.lanes[0].length_ns) == most // 2 - 5


@pytest.mark.parametrize(
    "text",
    [
        *("autograd::engine::evaluate_function: AddmmBackward0", "Optimizer.step#FusedAdam.step"),
        *("FSDP::pre_forward (encoder.block.0.layer.1)", "layer_3f-layer_5b", "iteration 1002"),
        *("ncclAllReduce", "## forward ##"),
    ],
)
def test_a_range_that_frameworks_or_training_loops_write_is_named(text: str) -> None:
    assert public_range(text) == text.partition(", seq")[0]


@pytest.mark.parametrize(
    "text",
    [
        *("/home/somebody/data", "forward of somebody", "step 10.98.97.96", "rank@host-7", "C:\\train"),
        *("load data.somebody", "token 1234567", "aten::add/home/somebody", "42", ""),
        *("Optimizer.step#SecretLab.step", "torch.corp.internal", "gpu-worker-12"),
    ],
)
def test_a_range_with_a_word_that_nobody_knows_has_no_name(text: str) -> None:
    assert public_range(text) is None


def test_a_call_is_known_by_its_form_and_has_no_version() -> None:
    assert public_call("cudaLaunchKernel_v7000") == "cudaLaunchKernel"
    assert public_call("cuMemcpyAsync_v2_ptsz") == "cuMemcpyAsync"
    assert public_call("hunter2") is None

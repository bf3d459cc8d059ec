"""Programs that begin in the recording: short ones are judged, their kernels compute, calls name the step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import diagnoser
from reports.content.names import names_apart
from tests.by_hand.run import Run, written


def program(
    *calls: str,
    kernels: int = 4,
    memory_at: float = 5,
    every: float = 100,
    busy: float = 90,
    of: str = "solve",
) -> Run:
    """A solver that takes memory, then launches its kernels one by one; it makes these calls too."""
    run = Run(unit="ms")
    run.recording.gpu(sm_count=132)
    run.recording.gpu(sm_count=132)  # whoever else may be on the machine
    run.call("malloc", memory_at, memory_at + 1)
    for place, name in enumerate(calls):
        run.call(name, 10 + place, 10.5 + place)
    for place in range(kernels):
        run.work(f"{of}(float *)", 100 + every * place, 100 + every * place + busy)
    return run


def screen(run: Run) -> str:
    with written(run) as paths:
        return " ".join(diagnoser.analyze(paths, ask_megatron=False).text().split())


def outcomes(run: Run) -> dict[str, str]:
    return {name: outcome for name, (outcome, _) in run.walls().items()}


def test_a_short_program_is_judged_where_it_took_its_memory_before_its_first_kernel() -> None:
    assert set(outcomes(program()).values()) == {"clear"}
    cut = program(memory_at=150)  # between its kernels: it may be cut
    assert set(outcomes(cut).values()) == {"unmeasurable"}


@pytest.mark.parametrize(
    ("calls", "communication"),
    [((), "clear"), (("cudaStreamCreate",), "clear"), (("cudaIpcOpenMemHandle",), "unmeasurable"),
        (("cudaDeviceEnablePeerAccess",), "unmeasurable"), (("ncclCommInitRank",), "unmeasurable")],
)  # fmt: skip
def test_unknown_kernels_communicate_with_nobody_unless_a_call_reaches_another_gpu(
    calls: tuple[str, ...], communication: str
) -> None:
    for name in ("solve", "exchange"):  # whatever it is called
        assert outcomes(program(*calls, kernels=20, of=name))["communication"] == communication


def test_a_short_program_whose_first_calls_take_longer_than_its_work_is_not_judged() -> None:
    run = program(kernels=2, every=1)
    run.call("cuInit", 6, 98)  # the work lasts from 100 to 191
    assert set(outcomes(run).values()) == {"unmeasurable"}
    told = (
        "on the GPU the program takes 95",
        "Look inside solve targets 100 % A launch of it has 16,896 threads",  # 132 x 128
        "Most of the time is compute: solve",
    )
    assert [text for text in told if text not in screen(run)] == []


def test_kernels_of_another_process_may_be_whom_they_communicate_with() -> None:
    run = program(kernels=20)
    run.process(1).work("solve(float *)", 100, 2_000)
    assert outcomes(run)["communication"] == "unmeasurable"


def test_a_program_of_its_own_kernels_is_bound_by_them_and_they_are_looked_into() -> None:
    text = screen(program(kernels=20, every=100, busy=99))
    assert "BOUND BY ITS OWN KERNELS" in text
    assert "Look inside solve" in text
    assert "apart from the inside of solve" in text
    assert "Nothing in this recording calls for a change" not in text


@pytest.mark.parametrize(
    ("of", "said"),
    [("at::native::vectorized_elementwise_kernel<4>", "norms and the like take 99 %: each passes over"),
        ("gemv2T_kernel", "matrix and a vector take 99 %"), ("bn_fw_inf_kernel", "the like take 99 %")],
)  # fmt: skip
def test_kernels_that_move_more_than_they_compute_are_bound_by_bandwidth(of: str, said: str) -> None:
    text = screen(program(kernels=20, every=100, busy=99, of=of))
    assert "BOUND BY MEMORY BANDWIDTH" in text
    assert said in text
    assert "targets 99 %" in text
    assert "BOUND BY MEMORY" not in screen(program(kernels=20, every=100, busy=99, of="sgemm_128x64_tn"))


@pytest.mark.parametrize(
    ("busy", "said"), [(85, "MOSTLY COMPUTE Attention 86 %. Beside it: host"), (70, "SLOWED BY host")]
)
def test_compute_by_class_leads_where_no_wall_costs_a_quarter(busy: float, said: str) -> None:
    assert said in screen(program(kernels=20, every=100, busy=busy, of="flash_fwd_kernel"))


def awaited(late: float = 0, **about: Any) -> Run:
    """The host waits for each kernel: launched every 100 ms, it ends 99 ms later and begins so late."""
    run = program(kernels=0)
    for place in range(20):
        launch = 100 + 100 * place
        run.work("solve(float *)", launch + late, launch + 99, launch=launch, **about)
        run.call("cudaStreamSynchronize", launch + 1, launch + 99.5)
    return run


def test_work_that_is_launched_and_begins_late_is_held_back_on_the_gpu() -> None:
    text = screen(awaited(late=80))
    assert "Find what holds launched work back on the GPU" in text
    assert "Launched work is held back on the GPU, idle for 80 % of the time" in text
    assert "what the host does while" not in text


def test_own_kernels_of_few_blocks_want_more_of_them_first() -> None:
    text = screen(awaited(late=0.1, blocks=1))
    assert text.index("Launch own kernels in more blocks") < text.index("Profile the main kernels")


def test_copies_that_take_more_than_the_wall_that_is_proven_stand_beside_it() -> None:
    run = program(kernels=20, every=100, busy=50)  # of 1,950 the host is late for 19 x 20
    for place in range(20):
        run.work("h2d", 150 + 100 * place, 180 + 100 * place, pageable=True)
    text = screen(run)
    assert "Exposed copies take 30 % of the time" in text
    assert "Memory 600 30 %" in text  # what copies take alone is the most that they cost
    assert text.index("Copy less, from pinned memory") < text.index("Find what the host does")


@pytest.mark.parametrize(
    ("pageable", "back", "step"),
    [(True, 190, "Copy less, from pinned memory"), (False, 190, "Copy ahead on a stream of its own"),
        (False, 150, "Keep data on the GPU from step to step")],
)  # fmt: skip
def test_a_call_that_waits_for_copies_is_no_cause_of_them(pageable: bool, back: int, step: str) -> None:
    run = program(kernels=20, every=100, busy=10)
    for place in range(20):
        run.work("h2d", 110 + 100 * place, back + 100 * place, launch=110 + 100 * place, pageable=pageable)
        if back < 190:
            run.work("d2h", back + 100 * place, 190 + 100 * place, launch=110 + 100 * place)
        run.call("cudaStreamSynchronize", 111 + 100 * place, 190 + 100 * place)
    text = screen(run)
    assert "BOUND BY COPIES Exposed copies take 80 % of the time" in text
    assert f"1 {step}" in text


def test_a_result_that_is_read_back_each_round_is_read_less_often() -> None:
    run = program(kernels=20, every=100, busy=40)
    for place in range(20):
        begin = 130 + 100 * place
        run.work("d2h", begin + 11, begin + 12, launch=begin, size_bytes=8)
        run.call("cudaStreamSynchronize", begin + 5, begin + 65)
    text = screen(run)
    assert "1 Read results back less often" in text
    assert "1 copy of 8 B back to the host in each block" in text


def test_kernels_that_differ_behind_the_width_of_a_line_are_told_apart() -> None:
    alike = "solve_the_equations_of_the_system_by_"
    assert names_apart([f"{alike}rows", f"{alike}lines", "a"]) == {
        f"{alike}rows": "solve_the_e...rows",
        f"{alike}lines": "solve_the_e...lines",
        "a": "a",
    }


@pytest.mark.parametrize(
    ("name", "title"),
    [("cudaMalloc", "Take memory once"), ("cudaStreamSynchronize", "Take out calls that wait"),
        ("MPI_Recv", "Exchange between processes"), ("cuModuleLoadData", "start-up")],
)  # fmt: skip
def test_the_call_that_the_gpu_waits_in_names_the_step(name: str, title: str) -> None:
    run = program(kernels=20, every=100, busy=40)
    for place in range(20):
        begin = 130 + 100 * place
        if name.startswith("MPI"):
            run.range(name, begin, begin + 50)
        else:
            run.call(name, begin, begin + 50)
    assert title in screen(run)


def capturing(second: str) -> dict[str, Any]:
    run = program(kernels=2, every=1_000, busy=10)
    run.call("cudaStreamBeginCapture_v10000", 200, 201)
    run.call(second, 800, 801)
    run.range("gc", 300, 400)
    return dict(run.account(window=(0, 1_110)))


def test_what_the_host_does_while_it_captures_a_graph_is_start_up() -> None:
    captured, plain = map(capturing, ("cudaStreamEndCapture_v10000", "cudaStreamBeginCapture_v10000"))
    assert plain.pop("launch_starved.gc") == 100
    assert captured == plain | {"launch_starved.lazy_init": plain["launch_starved.lazy_init"] + 100}


def rounds(count: int, kernels: int, busy: float) -> Run:
    """The host reads a result after each so many kernels."""
    run = program(kernels=0)
    for place in range(count * kernels):
        run.work("solve(float *)", 100 + 10 * place, 100 + 10 * place + busy)
        if place % kernels == kernels - 1:
            run.work("d2h", 109 + 10 * place, 109.5 + 10 * place)
    return run


@pytest.mark.parametrize(
    ("count", "kernels", "busy", "solves", "said"),
    [(12, 4, 3, 0, "12 blocks"), (4, 12, 9, 0, "no steps found"), (12, 4, 3, 400, "12 blocks"),
        (12, 4, 3, 500, "no steps found")],
)  # fmt: skip
def test_blocks_are_compared_where_they_hold_most_of_the_same_work_and_all_that_was_recorded_else(
    count: int, kernels: int, busy: float, solves: int, said: str
) -> None:
    """12 x 4 kernels of 9 in base, before one of another kind, are 432."""
    sides = replace(rounds(12, 4, busy=9), name="base"), rounds(count, kernels, busy)
    for side in sides[: bool(solves)]:
        side.work("prepare(float *)", 700, 700 + solves)
    with written(*sides) as (base, new):
        text = diagnoser.compare(base, new).text()
    assert said in text

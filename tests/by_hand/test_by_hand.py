"""Three hand-made runs of ten lines: two processes, two streams, uneven ranks; and what is said of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.by_hand.names import KERNELS
from tests.by_hand.run import Run, ranks
from tests.places import ROOT
from traces.names.kernels import classify_kernel


def test_the_work_and_the_syncs_of_another_process_explain_no_gap_of_this_one() -> None:
    run = Run()
    first, second = run.process(0), run.process(1, device=0)
    first.work("gemm", 0, 100)
    first.work("gemm", 200, 300)
    second.work("gemm", 0, 250)
    second.call("device_sync", 50, 260)
    # of 100-200 the first has 90 before its launch call, 2 in it, and 8 until the kernel starts
    starved = {"launch_starved.python": 90, "launch_starved.launch": 2}
    assert run.account(0) == {**starved, "launch_latency.arrival": 8}
    assert (run.budget(0)["idle"], run.budget(1)) == (100, {"compute.gemm": 250})


@pytest.mark.parametrize(("told_to_wait", "process"), [(True, 0), (True, 1), (False, 0)])
def test_a_dispatch_of_another_stream_holds_who_was_told_to_wait(told_to_wait: bool, process: int) -> None:
    run = Run().process(process)
    run.work("gemm", 0, 100)
    run.on(stream=20).work("dispatch", 50, 160)
    if told_to_wait:
        run.wait(20, by=7, recorded=42, waits=45)
    run.work("gemm", 170, 200, launch=150)
    assert run.budget() == {"compute.gemm": 130, "exposed_comm.ep_dispatch": 60, "idle": 10}
    host = {"launch_starved.python": 50, "launch_starved.launch": 2}  # 100-150, and the call
    held = {"blocking.ep_dispatch": 8, "launch_latency.kernel_gap": 10}
    late = {"launch_latency.arrival": 16, "dependency_stalled": 2}  # up to twice the usual 8 us on its way
    assert run.account() == host | (held if told_to_wait else late)
    assert run.account().masked == (52 if told_to_wait else 0)


def test_of_uneven_ranks_the_one_that_computes_longer_makes_the_other_wait() -> None:
    run = ranks(2)
    for rank, compute in zip(run, (90, 50), strict=True):
        for step in rank.steps(8, every=100):
            step.work("gemm", 0, compute)
            step.work("all_reduce", compute, 100, stream=20)
    assert [rank.budget()["exposed_comm.all_reduce"] for rank in run] == [8 * 10, 8 * 50]
    found = run[0].document(run[1])["run"]
    assert (found["late"]["rank"], found["late"]["cost_ns"]) == (0, 40_000)
    assert [one["waited_ns"] for one in found["ranks"]] == [0, 40_000]  # in a step, as the median


def test_every_word_is_a_kernel_that_rules_name() -> None:
    classes = {word: classify_kernel(name).class_ for word, name in KERNELS.items()}
    assert "other" not in classes.values()
    moves = {"all_reduce", "all_gather", "reduce_scatter", "send_recv", "dispatch", "combine"}
    assert {word for word, one in classes.items() if one == "comm"} == moves | {"layout", "token_counts"}


def test_a_shifted_clock_moves_nothing_that_is_told() -> None:
    run = Run(unit="ms", clock=5_000)
    for step in run.steps(3, every=100):
        step.work("gemm", 0, 90)
    assert run.steps_found() == [(0, 90), (90, 190), (190, 290)]
    assert run.rank().activities.start_ns.min() == 5_000_000_000


def test_what_had_not_ended_when_the_recording_was_cut_is_not_in_it() -> None:
    run = Run()
    for step in run.steps(3, every=100):
        step.work("gemm", 0, 90)
    run.cut(-50, 260)
    assert run.steps_found() == [(0, 90), (90, 190)]
    assert run.budget() == {"compute.gemm": 180, "idle": 10}


def test_the_example_of_contributing_holds_as_it_is_written() -> None:
    section = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Add a hand-made run")[2]
    names: dict[str, Callable[[], None]] = {}
    exec(section.split("```")[1].removeprefix("python"), names)  # our own text
    (example,) = (name for name in names if name.startswith("test_"))
    names[example]()

"""The account of time without compute: one rule each with its exceptions, and each limit at its edge."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from bench.simulate.recording import Row
from tests.by_hand.run import Run
from tests.recordings.replay import begun
from traces.account.producers import find_producers

US = 1_000


def test_a_sync_whose_work_still_runs_is_blocking_and_its_return_is_starved() -> None:
    run = begun()
    run.work("send_recv", 100, 160, launch=20, stream=20)
    run.call("device_sync", 30, 170)
    run.work("gemm", 190, 250, launch=(180, 185))
    # 100-160 all-to-all runs, 160-170 the call returns, 170-180 cold start, 180-185 launch, 185-190 arrival
    starved = {"launch_starved.sync": 20, "launch_starved.launch": 5, "launch_latency.arrival": 5}
    assert run.account() == starved | {"blocking.sendrecv_unresolved": 60}
    assert run.account().masked == 0


def test_a_chain_is_followed_through_a_kernel_that_took_no_time() -> None:
    run = begun()
    run.work("h2d", 101, 141, launch=20)
    run.work("gemm", 142, 142, launch=22)
    run.work("d2h", 143, 183, launch=24)
    run.work("gemm", 184, 250, launch=26)
    held = {"blocking.memcpy_h2d": 40, "blocking.memcpy_d2h": 40}
    assert run.account() == held | {"launch_latency.kernel_gap": 4}


def test_without_an_event_repetition_infers_the_producer() -> None:
    run = Run()
    for step in range(30):
        part = run.at(1_000 * step)
        part.work("gemm", 10, 100, launch=0)
        part.work("send_recv", 20, 150 + step, launch=2, stream=20)
        part.work("norm", 152 + step, 200, launch=4)
    found = run.account(window=(10, 200))
    assert found == {"blocking.sendrecv_unresolved": 50, "launch_latency.kernel_gap": 2}
    assert found.decided == {"inferred": 52}


def test_what_a_launch_decides_is_recorded_though_a_producer_was_inferred() -> None:
    """Until 100 compute, to 150 an exchange behind which the norm begins each time, launched at 200."""
    run = Run()
    for step in range(30):
        part = run.at(1_000 * step)
        part.work("gemm", 10, 100, launch=0)
        part.work("send_recv", 20, 150 + step % 3, launch=2, stream=20)
        part.work("norm", 206, 300, launch=(200, 202))
    found = run.account(window=(10, 300))
    assert found["launch_latency.arrival"] == 4
    assert (found.masked, found.decided) == (50, {"recorded": 106})
    inferred = find_producers(run.rank()).inferred[2]
    assert inferred[0]  # what ended last


def test_a_thread_that_launches_nothing_holds_no_launch() -> None:
    run = begun()
    run.call("sync", 20, 150, thread=2)
    run.work("gemm", 200, 260, launch=(190, 195))
    starved = {"launch_starved.python": 90, "launch_starved.launch": 5}
    assert run.account() == starved | {"launch_latency.arrival": 5}


def test_time_after_the_last_kernel_is_trailing() -> None:
    assert begun().account(window=(0, 150)) == {"trailing": 50}


def test_a_window_that_ends_in_a_wait_is_explained_by_the_kernel_after_it() -> None:
    run = begun()
    run.work("gemm", 200, 300, launch=(180, 190))
    assert run.account(window=(0, 150)) == {"launch_starved.python": 50}


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("executor_utils::NVRTC", "lazy_init"), ("FusionKernelRuntime::compileFusionParallel", "lazy_init"),
        ("entire_frame_compile", "lazy_init"), ("XlaCompile:#module=jit_step#", "lazy_init"),
        ("save_checkpoint", "checkpoint"), ("load-dist-ckpt", "checkpoint"),
        ("checkpoint saving", "checkpoint"), ("## validation ##", "evaluation"),
        ("eval step 3", "evaluation"), ("log_metrics", "logging"), ("## metrics:publish ##", "logging"),
        ("enumerate(DataLoader)#_Iter.__next__", "data"), ("gc generation 2", "gc"),
        ("save_checkpoint: gc generation 2", "gc"), ("CompiledFunctionBackward", None),
        ("Torch-Compiled Region: 0/0", None), ("CheckpointFunctionBackward", None),
        ("autograd::engine::evaluate_function: MulBackward0", None), ("aten::log_softmax", None),
        ("forward", None), ("MPI_Waitall", "host_comm"), ("shmem_barrier_all", "host_comm"),
        ("MPI_Init_thread", None), ("MPI_File_read", None),
    ],
)  # fmt: skip
def test_a_range_that_names_what_the_host_does_outweighs_python(text: str, cause: str | None) -> None:
    run = begun()
    run.range(text, 120, 180)
    run.work("gemm", 200, 260, launch=(190, 200))
    named = {f"launch_starved.{cause}": 60} if cause else {}
    python = 30 if cause else 90
    assert run.account() == named | {"launch_starved.python": python, "launch_starved.launch": 10}


def test_clocks_apart_are_said_not_accounted() -> None:
    run = Run(sm_count=None, gpu_clock=-156_000).at(1_000_000)
    for start in range(0, 3_200, 100):
        run.work("gemm", start, start + 50, launch=start - 10)
    with pytest.raises(LookupError, match=r"clock offset.*about -156 ms"):
        run.account()


def test_without_launches_there_is_no_account() -> None:
    run = Run()
    run.work("gemm", 0, 100, launched=False)
    with pytest.raises(LookupError, match="launch"):
        run.account()


KERNELS_BETWEEN = 20


def starved(run: Run, place: int = 0, **how: Any) -> dict[str, float]:
    """What the host is said to have done, by cause, of all late launches but for their calls."""
    found = run.account(place, **how)
    causes = {name.partition(".")[2]: time for name, time in found.items() if name.startswith("launch_s")}
    return {name: time for name, time in causes.items() if name != "launch"}


def os_call(run: Run, start: float, end: float, thread: int = 0, process: int = 0) -> None:
    pid = 1000 * (process + 1)
    gid = run.recording.global_id(pid, pid + thread)
    row: Row = {"start": run.ns(start), "end": run.ns(end), "globalTid": gid, "nameId": "poll"}
    run.recording.rows.setdefault("OSRT_API", []).append(row)


WEAKEST_FIRST = ("os_wait", "evaluation", "logging", "data", "checkpoint", "lazy_init", "gc", "profiler")


RANGES = {"evaluation": "evaluate", "logging": "log_metrics", "lazy_init": "nvrtc"}


def paused(*order: str, **where: int) -> dict[str, float]:
    """What is said of a pause in which one thing after the other begins, every 10 from 110, to end at 190."""
    run = begun()
    for place, cause in enumerate(order):
        begin = 110 + 10 * place
        if cause == "os_wait":
            os_call(run, begin, 190, **where)
        elif cause == "profiler":
            run.flush(begin, 190, **where)
        else:
            run.range(RANGES.get(cause, cause), begin, 190, **where)
    run.work("gemm", 200, 300, launch=(190, 195))
    return starved(run)


def test_of_what_is_known_of_a_pause_the_strongest_counts_whichever_began_first() -> None:
    assert paused(*WEAKEST_FIRST) == dict.fromkeys(WEAKEST_FIRST, 10) | {"python": 10}
    for weak, strong in pairwise(WEAKEST_FIRST):
        assert paused(strong, weak) == {strong: 80, "python": 10}


def test_what_another_thread_or_process_does_is_nothing_that_this_thread_waits_for() -> None:
    assert paused(*WEAKEST_FIRST, thread=1) == paused(*WEAKEST_FIRST, process=1) == {"python": 90}


def test_within_a_call_only_the_profiler_has_its_own_time() -> None:
    run = begun()
    run.call("malloc", 110, 170)
    os_call(run, 112, 120)
    run.range("gc", 120, 140)
    run.flush(150, 160)
    run.work("gemm", 200, 300, launch=(190, 195))
    assert starved(run) == {"allocator": 50, "profiler": 10, "python": 10 + 20}


@pytest.mark.parametrize(
    ("back", "launch", "found"),
    [
        (110, 160, {"sync": 10 + 50}),
        (110, 161, {"sync": 10 + 50, "python": 1}),
        (110, 159, {"sync": 10 + 49}),
        (100, 160, {"sync": 50, "python": 10}),  # returns as compute ends
        (90, 160, {"python": 60}),  # while compute runs, nothing is cold
    ],
)
def test_a_cold_start_lasts_fifty_microseconds_at_most(
    back: float, launch: float, found: dict[str, float]
) -> None:
    run = begun()
    run.call("sync", 20, back)
    run.call("cuStreamSynchronize", 25, back - 1)  # of the driver, within it
    run.work("gemm", launch + 10, 300, launch=(launch, launch + 2))
    assert starved(run) == found


def test_a_cold_start_ends_with_the_next_synchronisation_of_its_thread_alone() -> None:
    run = begun()
    run.call("sync", 20, 110)
    run.call("sync", 120, 130)
    run.call("sync", 20, 112, thread=1)
    run.call("malloc", 135, 145)
    run.call("sync", 270, 280)
    run.work("gemm", 300, 400, launch=(290, 295))
    # 100-110 the call, cold to 120, the call to 130, cold to 180 but for the allocation, and from 270
    assert starved(run) == {"sync": 10 + 10 + 10 + 40 + 20, "allocator": 10, "python": 90}


def test_a_thread_that_was_handed_the_launch_starts_cold_after_its_own_call_alone() -> None:
    run = begun()
    run.call("sync", 20, 110)
    run.work("gemm", 300, 400, launch=(290, 295), thread=1)
    # the first thread decides until its call returned at 110; the second was never in one
    assert starved(run) == {"sync": 10, "python": 180}


def test_a_pause_under_a_range_outweighs_a_cold_start_and_an_os_call_does_not() -> None:
    run = begun()
    run.call("sync", 20, 110)
    os_call(run, 112, 130)
    run.range("gc", 140, 150)
    run.work("gemm", 200, 300, launch=(155, 160))
    assert starved(run) == {"sync": 10 + 30 + 5, "gc": 10}


def test_a_call_of_another_process_hands_nothing_over() -> None:
    run = begun()
    run.process(1).work("gemm", 0, 50)
    run.process(1).call("malloc", 110, 180)
    run.work("gemm", 300, 400, launch=(290, 295))
    assert starved(run) == {"python": 190}


def test_until_its_last_call_returned_the_other_thread_decides() -> None:
    run = begun()
    run.work("norm", 95, 96, launch=80, thread=1, stream=9)
    run.call("malloc", 110, 150, thread=1)
    run.range("gc", 120, 180)  # of the thread that launches: before 150 it is not asked
    run.work("gemm", 300, 400, launch=(290, 295))
    assert starved(run) == {"python": 10 + 110, "allocator": 40, "gc": 30}


def test_a_thread_that_is_still_in_its_call_at_the_launch_holds_nobody() -> None:
    run = begun()
    run.work("norm", 95, 96, launch=80, thread=1, stream=9)
    run.call("malloc", 110, 292, thread=1)
    run.work("gemm", 300, 400, launch=(290, 295))
    assert starved(run) == {"python": 190}


def exchanging(
    out: tuple[int, int] = (1 << 20, 1 << 20),
    back: tuple[int, ...] = (1 << 20, 1 << 20),
    between: str = "",
    backward: str = "norm_backward",
    last: int = 0,
    **about: Any,
) -> Run:
    """Copies to the host, launched until 110, and back from 160 on, in a training step; a kernel at 180."""
    run = begun()
    run.work(backward, 80, 90, launch=70)
    if between:
        run.work(between, 130, 131, launch=(125, 128))
    for place, size in enumerate(out):
        run.work("d2h", 100 + 5 * place, 104 + 5 * place, launch=(90 + 10 * place, 100 + 10 * place),
                 size_bytes=size)  # fmt: skip
    for place, size in enumerate(back):
        at = 160 + 5 * place
        run.work("h2d", at + 3, at + 6, launch=(at, at + 5), size_bytes=size, **about)
    run.call("malloc", 172, 175)  # so that this thread decides until then
    run.work("gemm", 200, 260, launch=(180, 190), thread=last)
    return run


MIB = 1 << 20


@pytest.mark.parametrize(
    ("run", "optimizes"),
    [
        (exchanging(), True),
        (exchanging(out=(MIB - 1, MIB)), False),  # one is too small to be a gradient, one is no several
        (exchanging(back=(MIB - 1, MIB)), False),
        (exchanging(out=(2 * MIB, 2 * MIB)), True),  # gradients in 32 bits, weights in 16
        *((exchanging(out=(2 * MIB, 2 * MIB + 1)), False), (exchanging(back=(2 * MIB, 2 * MIB)), True)),
        *((exchanging(back=(2 * MIB, 2 * MIB + 1)), False), (exchanging(back=(MIB, MIB, MIB)), True)),
        (exchanging(back=(MIB,)), False),  # weights are several
        (exchanging(thread=1), False),  # another thread's copies are other work
        (exchanging(thread=1, last=1), False),  # though the one's are its last, and the other's its first
        (exchanging(between="adam"), True),  # the GPU may step its part meanwhile
        (exchanging(between="send_recv"), False),
        (exchanging(between="gemm"), False),
        (exchanging(backward="gemm"), False),  # this is no training
    ],
)
def test_the_optimizer_runs_on_the_cpu_where_as_many_bytes_go_out_and_come_back(
    run: Run, optimizes: bool
) -> None:
    found = starved(run, window=(140, 160))
    assert found == ({"cpu_optimizer": 20} if optimizes else {"python": 20})


def feeding(pause: float = 2_001, between: int = KERNELS_BETWEEN, passes: int = 4) -> Run:
    """Four passes, each a pause, an input copy of 10 us and so many kernels of 100, launched behind it."""
    run = Run()
    at = 0.0
    for _ in range(passes):
        at += pause
        run.work("h2d", at, at + 10, launch=(at, at + 10))
        for number in range(between):
            begin = at + 10 + 100 * number
            run.work("gemm", begin, begin + 100, launch=(at + 10 + number, at + 11 + number))
        at += 10 + 100 * between
    run.call("event_record", at + 5_000, at + 5_001)  # nothing is launched after it
    return run


@pytest.mark.parametrize(
    ("how", "cause"),
    [
        ({}, "data"),
        ({"between": 16, "passes": 2}, "data"),
        ({"between": 15}, "python"),  # too few kernels for a pass
    ],
)
def test_a_pause_before_what_is_copied_once_a_pass_is_a_wait_for_data(
    how: dict[str, Any], cause: str
) -> None:
    run = feeding(**how)
    assert set(starved(run)) == {cause}


@pytest.mark.parametrize(("pause", "cause"), [(2_001, "data"), (2_000, "python")])
def test_a_wait_for_data_is_a_pause_of_over_two_milliseconds(pause: float, cause: str) -> None:
    """From the last launch's return, at 30 of the pass, to the copy's: 1,980 of it under the kernels."""
    run = feeding(pause=pause - 1_980)
    assert starved(run) == {cause: 3 * (pause - 1_980)}


def test_a_pause_before_other_work_is_no_wait_for_data_though_a_copy_comes_later() -> None:
    run = Run()
    for turn in range(4):
        at = 10_000 * turn
        run.work("norm", at, at + 10, launch=(at, at + 1))
        run.work("h2d", at + 10, at + 20, launch=(at + 2, at + 3))
        for number in range(KERNELS_BETWEEN):
            run.work("gemm", at + 20 + 100 * number, at + 120 + 100 * number, launch=at + 4 + 2 * number)
    assert set(starved(run)) == {"python"}


def test_a_step_that_is_one_graph_begins_with_its_wait_for_the_batch() -> None:
    """Four steps of 40 ms: 10 ms of pause, 1 of input copy, 28 of one graph and 1 of a copy to the host."""
    run = Run(unit="ms")
    for step in map(run.at, range(0, 160, 40)):
        step.work("h2d", 10, 11, launch=(10, 11))
        step.work("graph", 11, 39)
        step.work("d2h", 39, 40, launch=(11, 40), size_bytes=64)
    assert run.measured().steps.source == "graph"
    # the first one begins with its batch: nothing was before
    assert run.steps_found() == [(10, 40), (40, 80), (80, 120), (120, 160)]
    assert run.account()["launch_starved.data"] == 30


@pytest.mark.parametrize(
    ("pauses", "single"),
    [
        ((5_000, 0, 0, 0, 0), 5_000),
        ((5_000, 1_981, 3_000, 0, 0), 9_981),  # of three first calls, one of 2,000 and one before the middle
        ((5_001, 0, 0, 0, 482), 5_001),  # 19 us more under the kernel before: 5,020 and 501
        ((5_001, 0, 0, 0, 483), 0),  # comes again, a tenth as long
        ((0, 0, 0, 0, 5_000), 0),  # half of the launches were over
        ((1_970, 0, 0, 0, 0), 0),  # 1,989: less than 2 ms
    ],
)
def test_a_pause_of_a_first_call_that_never_comes_again_is_initialisation(
    pauses: tuple[int, ...], single: int
) -> None:
    run, at = Run(), 0
    for pause in (0, *pauses):
        run.work("gemm", at + pause + 10, at + pause + 20, launch=(at + pause, at + pause + 1))
        at += pause + 20
    found = starved(run)
    assert found.get("lazy_init", 0) == single
    assert found.get("python", 0) == sum(pauses) - single


@pytest.mark.parametrize(("later", "first", "single"), [
    (90, 5_000, 5_000), (500, 4_920, 4_920), (500, 4_919, 0), (0, 2_009, 2_009), (0, 2_008, 0),  # 2 ms
])  # fmt: skip
def test_what_lies_before_the_first_launch_of_a_kernel_and_before_no_later_one_is_initialisation(
    later: int, first: int, single: int
) -> None:
    """A norm comes three times: after one pause, none, and another; a third kernel comes once."""
    run, at = Run(), 0
    several = [("gemm", 0), ("norm", first), ("gemm", 0), ("norm", 0), ("norm", later), ("attention", first)]
    for name, pause in several:
        run.work(name, at + pause + 10, at + pause + 20, launch=(at + pause, at + pause + 1))
        at += pause + 1
    assert starved(run).get("lazy_init", 0) == max(0, single - 18)  # the GEMM before runs 18 longer


@pytest.mark.parametrize(("count", "loading", "single"), [
    (3, False, 0), (3, True, 5_003), (2, False, 5_000),
])  # fmt: skip
def test_a_host_that_pauses_between_all_phases_of_a_program_loads_nothing_unless_a_call_does(
    count: int, loading: bool, single: int
) -> None:
    """Up to three kernels, three times each, 5 ms apart; a call within the first pause loads."""
    run, at = Run(), 0
    for name in ("gemm", "norm", "attention")[:count]:
        for launch in (at, at + 2, at + 4):
            run.work(name, launch + 1, launch + 2, launch=(launch, launch + 1))
        at += 5_006
    if loading:
        run.call("cuModuleLoadData", 1_000, 1_000)
    assert starved(run).get("lazy_init", 0) == single


def test_a_range_of_a_first_call_says_what_its_pause_was() -> None:
    run = Run()
    for at in (0, 9_000, 9_020, 9_040, 9_060):
        run.work("gemm", at + 10, at + 20, launch=(at, at + 1))
    run.range("evaluation", 20, 9_000)
    assert set(starved(run)) == {"evaluation"}


def test_who_waits_for_another_process_in_a_pause_of_a_first_call_waits_for_what_that_initialises() -> None:
    run = Run()
    for at in (0, 9_000, 9_020, 9_040, 9_100):
        run.work("gemm", at + 10, at + 20, launch=(at, at + 1))
    for begin, end in ((20, 9_000), (9_060, 9_100)):
        run.range("MPI_Waitall", begin, end)
    assert starved(run) == {"lazy_init": 8_980, "host_comm": 40}


@pytest.mark.parametrize(("copied", "data"), [(8_000, 20_990), (7_999, 0)])
def test_a_pause_within_whose_last_2_ms_another_thread_copied_the_batch_is_a_wait_for_data(
    copied: int, data: int
) -> None:
    """Three steps of 20 kernels; a loader's thread copies the batch before each, launched at 10,000."""
    run, at = Run(), 0
    for _ in range(3):
        run.work("h2d", at + 9_010, at + 9_100, launch=(at + copied, at + copied + 5), thread=7, stream=9)
        for number in range(KERNELS_BETWEEN):
            begin = at + 10_010 + 20 * number
            run.work("gemm", begin, begin + 20, launch=at + 10_000 + 2 * number)
        at += 10_010 + 20 * KERNELS_BETWEEN
    run.range("forward", 7_999, 8_001)  # with which the thread begins
    assert starved(run).get("data", 0) == data

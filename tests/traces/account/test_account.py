"""The account of time without compute: one hand-made run per rule, in round numbers."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.by_hand.run import Run
from traces.account.account import Account, measure_account
from traces.account.device import find_queueing
from traces.account.producers import find_producers
from traces.intervals import spans
from traces.limits import Limit
from traces.measure.budget import measure_budget

US = 1_000


def begun() -> Run:
    """A run whose first kernel runs 0-100, launched at -10: the clocks agree."""
    run = Run()
    run.work("gemm", 0, 100)
    return run


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


def test_a_host_that_polls_waits_for_the_kernel_and_comes_late_by_its_read() -> None:
    """DeepEP's counts: nothing is called between their kernel's launch and its end, 100-150 of each layer."""
    run = begun()
    for layer in (run.at(1_000), run.at(2_000), run.at(3_000)):
        layer.work("gemm", 0, 100)
        layer.work("token_counts", 100, 150, launch=2, stream=20)
        layer.work("gemm", 180, 990, launch=(170, 175))
    host = {"launch_starved.token_count_sync": 20, "launch_starved.launch": 5, "launch_latency.arrival": 5}
    assert run.account(window=(1_000, 1_990)) == host | {"blocking.ep_control": 50}


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("executor_utils::NVRTC", "lazy_init"),
        ("FusionKernelRuntime::compileFusionParallel", "lazy_init"),
        ("entire_frame_compile", "lazy_init"),
        ("XlaCompile:#module=jit_step#", "lazy_init"),
        ("save_checkpoint", "checkpoint"),
        ("load-dist-ckpt", "checkpoint"),
        ("checkpoint saving", "checkpoint"),
        ("## validation ##", "evaluation"),
        ("eval step 3", "evaluation"),
        ("log_metrics", "logging"),
        ("## metrics:publish ##", "logging"),
        ("enumerate(DataLoader)#_Iter.__next__", "data"),
        ("gc generation 2", "gc"),
        ("save_checkpoint: gc generation 2", "gc"),
        ("CompiledFunctionBackward", None),
        ("Torch-Compiled Region: 0/0", None),
        ("CheckpointFunctionBackward", None),
        ("autograd::engine::evaluate_function: MulBackward0", None),
        ("aten::log_softmax", None),
        ("forward", None),
    ],
)
def test_a_range_that_names_what_the_host_does_outweighs_python(text: str, cause: str | None) -> None:
    run = begun()
    run.range(text, 120, 180)
    run.work("gemm", 200, 260, launch=(190, 200))
    named = {f"launch_starved.{cause}": 60} if cause else {}
    python = 30 if cause else 90
    assert run.account() == named | {"launch_starved.python": python, "launch_starved.launch": 10}


def test_without_launches_there_is_no_account() -> None:
    run = Run()
    run.work("gemm", 0, 100, launched=False)
    with pytest.raises(LookupError, match="launch"):
        run.account()


OTHER_CALLS = [None, "sync", "malloc", "free", "event_record"]
work = st.tuples(
    st.sampled_from(["gemm", "gemm", "send_recv", "d2h", "h2d"]),
    st.integers(0, 3),  # stream
    st.integers(1, 60),  # after the last launch
    st.integers(1, 30),  # length of the launch call
    st.integers(0, 80),  # wait before it starts
    st.integers(0, 90),  # length
    st.sampled_from(OTHER_CALLS),
    st.integers(0, 2),  # thread
    st.booleans(),  # launch recorded
)


@given(
    st.lists(work, min_size=1, max_size=30),
    st.lists(st.integers(-50, 3_000), min_size=2, max_size=2, unique=True),
)
def test_the_account_always_adds_up(
    rows: list[tuple[str, int, int, int, int, int, str | None, int, bool]], window: list[int]
) -> None:
    run = begun()
    host, free = 0, dict.fromkeys(range(4), 100)
    for name, stream, after, call, wait, length, other, thread, launched in rows:
        host += after
        start = max(free[stream], host) + wait
        place: dict[str, Any] = {"stream": 7 + stream, "thread": thread, "launched": launched}
        run.work(name, start, start + length, launch=(host, host + call), **place)
        free[stream], host = start + length, host + call
        if other:
            run.call(other, host + 1, host + after, thread=thread)
            host += after
    rank, chosen = run.rank(), spans((min(window) * US, max(window) * US))
    found, budget = (
        measure_account(rank, chosen, find_queueing(rank)),
        measure_budget(rank.activities, chosen),
    )
    assert isinstance(found, Account)
    assert found.total_ns == budget.window_ns - budget.compute_ns
    assert sum(found.decided_ns.values()) == found.total_ns
    assert found.masked_ns <= sum(found.launch_starved_ns.values())
    with patch("traces.account.account.AT_ONCE", Limit(2, "pieces", "a test's")):
        assert measure_account(rank, chosen, find_queueing(rank)) == found
    assert min([*found.launch_starved_ns.values(), *found.blocking_ns.values(), 1]) > 0

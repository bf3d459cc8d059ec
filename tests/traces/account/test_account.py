"""The account of time without compute: one hand-built recording per rule, in round numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.simulate.export import write_export
from bench.simulate.recording import Recording
from traces.account.account import Account, measure_account
from traces.account.device import find_queueing
from traces.formats.open import read_trace
from traces.intervals import Spans, spans
from traces.limits import Limit
from traces.measure.budget import measure_budget
from traces.missing import Missing
from traces.timeline import RankTimeline, build

Export = Callable[..., Path]
US = 1_000
GEMM = "nvjet_tst_128x256_64x4_2x1_v_bz_TNT"
SENDRECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)"
GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
ADAM = "multi_tensor_apply_kernel<at::native::FusedOptimizerTensorListMetadata<4>, FusedAdamMathFunctor<>>"
NORM_BACKWARD = "transformer_engine::normalization::rmsnorm_bwd_tuned_kernel"
SYNC = "cudaStreamSynchronize_v3020"
DEVICE_SYNC = "cudaDeviceSynchronize_v3020"
NOTIFY = "void deep_ep::intranode::notify_dispatch<(int)8>(const int *, int *)"


class Said:
    """A recording in microseconds whose first kernel runs 0-100, launched at -10: the clocks agree."""

    def __init__(self) -> None:
        self.recording = Recording()
        self.kernel(GEMM, 0, 100, launch=(-10, -8))

    def kernel(self, name: str, start: int, end: int, launch: tuple[int, int], **where: int) -> int:
        return self.recording.kernel(
            name,
            start * US,
            end * US,
            launch_ns=launch[0] * US,
            launch_end_ns=launch[1] * US,
            **where,  # type: ignore[arg-type]
        )

    def copy(
        self, kind: str, start: int, end: int, launch: tuple[int, int], size_bytes: int = 1 << 20
    ) -> int:
        begin, back = launch
        return self.recording.copy(
            kind, start * US, end * US, size_bytes=size_bytes, launch_ns=begin * US, launch_end_ns=back * US
        )

    def call(self, name: str, start: int, end: int, **where: int) -> int:
        return self.recording.call(name, start * US, end * US, **where)


def rank_of(path: Path) -> RankTimeline:
    (rank,) = build(read_trace(path)).ranks
    return rank


def account(export: Export, said: Said, window: Spans | None = None) -> Account:
    rank = rank_of(export(said.recording))
    rows = rank.activities
    window = window or spans((int(rows.start_ns.min()), int(rows.end_ns.max())))
    result = measure_account(rank, window, find_queueing(rank))
    assert isinstance(result, Account)
    budget = measure_budget(rows, window)
    assert result.total_ns == budget.window_ns - budget.compute_ns
    assert sum(result.decided_ns.values()) == result.total_ns
    return result


def us(parts: dict[str, int]) -> dict[str, float]:
    return {key: ns / US for key, ns in parts.items()}


def test_python_holds_the_launch_back(export: Export) -> None:
    said = Said()
    said.kernel(GEMM, 200, 300, launch=(180, 190))
    found = account(export, said)
    # 100-180 no call, 180-190 in the launch call, 190-200 on its way (8 us are usual here)
    assert us(dict(found.launch_starved_ns)) == {"launch": 10, "python": 80}
    assert (found.arrival_ns, found.dependency_stalled_ns) == (10 * US, 0)
    assert us(dict(found.decided_ns)) == {"recorded": 100, "inferred": 0, "none": 0}


def test_waiting_beyond_twice_the_usual_latency_is_stalled(export: Export) -> None:
    said = Said()
    for step in range(1, 5):
        said.kernel(GEMM, 100 + 100 * step, 190 + 100 * step, launch=(95 + 100 * step, 98 + 100 * step))
    said.kernel(GEMM, 650, 700, launch=(600, 602))
    found = account(export, said)
    # the usual arrival is 2 us, so up to 5 us are latency: of 602-650 the rest is stalled
    assert us(dict(found.launch_starved_ns)) == {"launch": 14, "python": 120}
    assert found.dependency_stalled_ns == 43 * US
    assert found.decided_ns["none"] == 43 * US


def test_a_gap_between_dependent_kernels_is_latency(export: Export) -> None:
    said = Said()
    said.kernel(GEMM, 103, 200, launch=(10, 12))
    found = account(export, said)
    assert (found.kernel_gap_ns, found.total_ns) == (3 * US, 3 * US)


def test_a_sync_whose_work_still_runs_is_blocking_and_its_return_is_starved(export: Export) -> None:
    said = Said()
    said.kernel(SENDRECV, 100, 160, launch=(20, 22), stream=20)
    said.call(DEVICE_SYNC, 30, 170)
    said.kernel(GEMM, 190, 250, launch=(180, 185))
    found = account(export, said)
    # 100-160 all-to-all runs, 160-170 the call returns, 170-180 cold start, 180-185 launch, 185-190 arrival
    assert us(dict(found.blocking_ns)) == {"sendrecv_unresolved": 60}
    assert us(dict(found.launch_starved_ns)) == {"sync": 20, "launch": 5}
    assert (found.arrival_ns, found.masked_ns) == (5 * US, 0)


def behind_a_gather(waits: bool = False, named: int | None = None) -> Said:
    """All has ended but a gather, 100-160 on its own stream, when the host synchronises with one."""
    said = Said()
    said.kernel(GATHER, 100, 160, launch=(20, 22), stream=24)
    if waits:
        said.call("cudaStreamWaitEvent_v3020", 24, 26)
    number = said.call(SYNC, 30, 170)
    if named is not None:
        said.recording.synchronisation("stream", 30 * US, 170 * US, correlation_id=number, stream=named)
    said.kernel(GEMM, 190, 250, launch=(180, 185))
    return said


@pytest.mark.parametrize("named", [None, 7])
def test_a_gather_of_another_stream_holds_nobody_who_synchronises_with_his_own(
    export: Export, named: int | None
) -> None:
    found = account(export, behind_a_gather(named=named))
    # 100-180 in the call and cold, 180-185 launch; under 60 of it the gather ran
    assert us(dict(found.launch_starved_ns)) == {"sync": 80, "launch": 5}
    assert (dict(found.blocking_ns), found.masked_ns) == ({}, 60 * US)


@pytest.mark.parametrize("how", [{"waits": True}, {"named": 24}])
def test_it_holds_who_synchronises_with_its_stream_or_one_that_may_wait_for_it(
    export: Export, how: dict[str, Any]
) -> None:
    found = account(export, behind_a_gather(**how))
    assert us(dict(found.blocking_ns)) == {"other_comm": 60}
    assert (us(dict(found.launch_starved_ns)), found.masked_ns) == ({"sync": 20, "launch": 5}, 0)


@pytest.mark.parametrize(("next_kernel", "named"), [("_permute_kernel", True), (GEMM, False)])
def test_the_read_of_token_counts_is_named_where_tokens_are_routed(
    export: Export, next_kernel: str, named: bool
) -> None:
    said = Said()
    said.copy("d2h", 100, 104, launch=(20, 22), size_bytes=256)
    said.call(SYNC, 30, 120)
    said.kernel(next_kernel, 130, 200, launch=(125, 128))
    found = account(export, said)
    assert us(dict(found.blocking_ns)) == {"memcpy_d2h": 4}
    sync = "token_count_sync" if named else "sync"
    assert us(dict(found.launch_starved_ns)) == {sync: 21, "launch": 3}


def test_a_kernel_of_another_stream_that_ends_while_the_call_returns_does_not_rename_the_read(
    export: Export,
) -> None:
    said = Said()
    said.copy("d2h", 100, 104, launch=(20, 22), size_bytes=256)
    said.kernel(GEMM, 90, 112, launch=(10, 12), stream=20)
    said.call(SYNC, 30, 120)
    said.kernel("_permute_kernel", 130, 200, launch=(125, 128))
    assert us(dict(account(export, said).launch_starved_ns)) == {"token_count_sync": 13, "launch": 3}


def test_of_two_that_run_the_one_that_ends_last_holds_the_launch(export: Export) -> None:
    said = Said()
    said.kernel(SENDRECV, 95, 140, launch=(10, 12), stream=20)
    said.copy("h2d", 120, 170, launch=(13, 14))
    said.call("cudaDeviceSynchronize_v3020", 20, 180)
    said.kernel(GEMM, 195, 250, launch=(190, 192))
    found = account(export, said)
    assert us(dict(found.blocking_ns)) == {"sendrecv_unresolved": 20, "memcpy_h2d": 50}


def test_a_long_chain_of_producers_is_followed_to_its_end(export: Export) -> None:
    said = Said()
    for place in range(12):
        said.recording.copy(
            "d2d",
            (100 + 10 * place) * US,
            (109 + 10 * place) * US,
            size_bytes=64,
            launch_ns=20 * US,
            stream=7,
        )
    said.kernel(GEMM, 220, 250, launch=(30, 31))
    found = account(export, said)
    assert us(dict(found.blocking_ns)) == {"memcpy_d2d": 108}
    assert (found.kernel_gap_ns, found.dependency_stalled_ns) == (12 * US, 0)


def test_a_chain_is_followed_through_a_kernel_that_took_no_time(export: Export) -> None:
    said = Said()
    said.copy("h2d", 101, 141, launch=(20, 21))
    said.kernel(GEMM, 142, 142, launch=(22, 23))
    said.copy("d2h", 143, 183, launch=(24, 25))
    said.kernel(GEMM, 184, 250, launch=(26, 27))
    found = account(export, said)
    assert us(dict(found.blocking_ns)) == {"memcpy_h2d": 40, "memcpy_d2h": 40}
    assert (found.kernel_gap_ns, found.dependency_stalled_ns) == (4 * US, 0)


def test_a_blocking_copy_waits_for_itself_not_for_one_that_ends_while_it_returns(export: Export) -> None:
    said = Said()
    said.recording.copy("d2h", 105 * US, 165 * US, size_bytes=1 << 20, launch_ns=10 * US, stream=30)
    said.copy("d2d", 110, 160, launch=(20, 170))
    said.kernel(GEMM, 180, 250, launch=(172, 176))
    found = account(export, said)
    # 100-110 in the call before its copy, 110-160 the copy, 160-170 the call's end, then python and launch
    assert us(dict(found.blocking_ns)) == {"memcpy_d2d": 50}
    assert us(dict(found.launch_starved_ns)) == {"launch": 24, "python": 2}


def test_a_pageable_copy_blocks_while_it_runs(export: Export) -> None:
    said = Said()
    said.copy("h2d", 110, 180, launch=(20, 190))
    said.kernel(GEMM, 200, 260, launch=(192, 196))
    found = account(export, said)
    # 100-110 in the call before its copy, 110-180 the copy, 180-190 the call's end, then python and launch
    assert us(dict(found.blocking_ns)) == {"memcpy_h2d": 70}
    assert us(dict(found.launch_starved_ns)) == {"launch": 24, "python": 2}
    assert found.arrival_ns == 4 * US


def test_a_full_queue_blocks_on_the_work_in_it(export: Export) -> None:
    said = Said()
    for number in range(1_010):
        said.kernel(GEMM, 1_000 + number, 1_001 + number, launch=(number // 20, number // 20 + 1))
    said.kernel(SENDRECV, 2_010, 2_100, launch=(60, 61), stream=20)
    # the launch could not return before the all-to-all had drained: over 1000 launches were in flight
    said.kernel(GEMM, 2_110, 2_200, launch=(62, 2_105))
    found = account(export, said, spans((2_010 * US, 2_200 * US)))
    assert us(dict(found.blocking_ns)) == {"sendrecv_unresolved": 90}
    assert us(dict(found.launch_starved_ns)) == {"launch": 5}
    assert found.arrival_ns == 5 * US


def test_a_long_launch_into_an_empty_queue_is_the_hosts(export: Export) -> None:
    said = Said()
    said.kernel(SENDRECV, 100, 150, launch=(20, 21), stream=20)
    said.kernel(GEMM, 200, 260, launch=(30, 195))
    found = account(export, said)
    assert us(dict(found.launch_starved_ns)) == {"launch": 95}
    assert dict(found.blocking_ns) == {}


def test_a_late_launch_behind_a_running_collective_is_starved_and_masked(export: Export) -> None:
    said = Said()
    said.kernel(SENDRECV, 100, 180, launch=(20, 21))  # on the kernel's own stream: its producer
    said.kernel(GEMM, 200, 260, launch=(150, 160))
    found = account(export, said)
    # 100-150 python, 150-160 launch, both while the producer ran; then it blocks to 180; then the gap
    assert us(dict(found.launch_starved_ns)) == {"launch": 10, "python": 50}
    assert found.masked_ns == 60 * US
    assert us(dict(found.blocking_ns)) == {"sendrecv_unresolved": 20}
    assert found.kernel_gap_ns + found.dependency_stalled_ns == 20 * US


@pytest.mark.parametrize("by_sync_id", [True, False])
def test_a_recorded_event_makes_another_stream_the_producer(export: Export, by_sync_id: bool) -> None:
    said = Said()
    said.kernel(SENDRECV, 50, 180, launch=(10, 12), stream=20)
    record = said.call("cudaEventRecord_v3020", 13, 14)
    wait = said.call("cudaStreamWaitEvent_v3020", 15, 16)
    said.kernel(GEMM, 182, 260, launch=(20, 22))
    gid = said.recording.global_id(1000)
    common = {"globalPid": gid, "contextId": 1, "eventId": 5, "eventSyncId": 77 if by_sync_id else None}
    events = said.recording.rows.setdefault("CUPTI_ACTIVITY_KIND_CUDA_EVENT", [])
    events.append({**common, "streamId": 20, "correlationId": record})
    syncs = said.recording.rows.setdefault("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", [])
    syncs.append(
        {**common, "start": 15 * US, "end": 16 * US, "streamId": 7, "correlationId": wait, "syncType": 2}
    )
    found = account(export, said)
    assert us(dict(found.blocking_ns)) == {"sendrecv_unresolved": 80}
    assert found.kernel_gap_ns == 2 * US
    assert found.decided_ns["recorded"] == 82 * US


def test_without_an_event_repetition_infers_the_producer(export: Export) -> None:
    recording = Recording()
    for step in range(30):
        at = 1_000 * step
        recording.kernel(GEMM, (at + 10) * US, (at + 100) * US, launch_ns=at * US)
        recording.kernel(SENDRECV, (at + 20) * US, (at + 150 + step) * US, launch_ns=(at + 2) * US, stream=20)
        recording.kernel("rms_norm", (at + 152 + step) * US, (at + 200) * US, launch_ns=(at + 4) * US)
    rank = rank_of(export(recording))
    found = measure_account(rank, spans((10 * US, 200 * US)), find_queueing(rank))
    assert isinstance(found, Account)
    assert us(dict(found.blocking_ns)) == {"sendrecv_unresolved": 50}
    assert found.decided_ns["inferred"] == 52 * US


def test_autograds_first_launch_waits_for_the_main_thread(export: Export) -> None:
    said = Said()
    said.call(SYNC, 20, 120)
    said.kernel(GEMM, 200, 260, launch=(190, 195), tid=1001)
    found = account(export, said)
    # the main thread's sync returned at 120; from there autograd's thread decides
    assert found.launch_starved_ns["sync"] == 20 * US
    assert found.launch_starved_ns["python"] == 70 * US


def test_within_a_graph_replay_nothing_is_said(export: Export) -> None:
    said = Said()
    number = said.kernel(GEMM, 200, 220, launch=(150, 160), api="cudaGraphLaunch_v10000")  # type: ignore[arg-type]
    for start, end in ((225, 240), (260, 300)):
        said.recording.kernel(GEMM, start * US, end * US, correlation_id=number, graph_node_id=start)
    said.recording.kernel(SENDRECV, 240 * US, 255 * US, correlation_id=number, graph_node_id=1, stream=20)
    found = account(export, said)
    # the first node is judged by its graph launch; 220-225 and 255-260 lie between nodes, 240-255 under one
    assert us(dict(found.launch_starved_ns)) == {"launch": 10, "python": 50}
    assert found.graph_opaque_ns == 10 * US
    assert us(dict(found.blocking_ns)) == {"sendrecv_unresolved": 15}
    assert found.arrival_ns + found.dependency_stalled_ns == 40 * US


def test_time_after_the_last_kernel_is_trailing(export: Export) -> None:
    said = Said()
    found = account(export, said, spans((0, 150 * US)))
    assert found.trailing_ns == found.total_ns == 50 * US


def test_a_window_that_ends_in_a_wait_is_explained_by_the_kernel_after_it(export: Export) -> None:
    said = Said()
    said.kernel(GEMM, 200, 300, launch=(180, 190))
    found = account(export, said, spans((0, 150 * US)))
    assert us(dict(found.launch_starved_ns)) == {"python": 50}


def test_allocation_profiler_and_loader_have_their_names(export: Export) -> None:
    said = Said()
    said.call("cudaMalloc_v3020", 100, 110)
    said.call("cuModuleLoadData", 110, 130)
    said.recording.range("enumerate(DataLoader)#_Iter.__next__", 130 * US, 150 * US)
    said.recording.range("gc generation 2", 150 * US, 170 * US)
    said.kernel(GEMM, 200, 260, launch=(190, 200))
    found = account(export, said)
    assert us(dict(found.launch_starved_ns)) == {
        "allocator": 10,
        "lazy_init": 20,
        "data": 20,
        "gc": 20,
        "python": 20,
        "launch": 10,
    }


def test_a_host_that_polls_waits_for_the_kernel_and_comes_late_by_its_read(export: Export) -> None:
    """DeepEP's counts: nothing is called between their kernel's launch and its end, 100-150 of each layer."""
    said = Said()
    for at in (1_000, 2_000, 3_000):
        said.kernel(GEMM, at, at + 100, launch=(at - 10, at - 8))
        said.kernel(NOTIFY, at + 100, at + 150, launch=(at + 2, at + 4), stream=20)
        said.kernel(GEMM, at + 180, at + 990, launch=(at + 170, at + 175))
    found = account(export, said, spans((1_000 * US, 1_990 * US)))
    assert found.blocking_ns == {"ep_control": 50 * US}
    assert found.launch_starved_ns == {"token_count_sync": 20 * US, "launch": 5 * US}
    assert found.arrival_ns == 5 * US


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
def test_a_range_that_names_what_the_host_does_outweighs_python(
    export: Export, text: str, cause: str | None
) -> None:
    said = Said()
    said.recording.range(text, 120 * US, 180 * US)
    said.kernel(GEMM, 200, 260, launch=(190, 200))
    found = us(dict(account(export, said).launch_starved_ns))
    assert found == ({cause: 60, "python": 30, "launch": 10} if cause else {"python": 90, "launch": 10})


def offloading(size_bytes: int = 1 << 20, back: int = 2, between: bool = False, trains: bool = True) -> Said:
    """Two copies out, launched until 110, and some back from 160 on; then a kernel launched at 180."""
    said = Said()
    said.kernel(NORM_BACKWARD if trains else GEMM, 80, 90, launch=(70, 72))
    for at in (100, 110):
        said.copy("d2h", at, at + 9, launch=(at - 12, at), size_bytes=size_bytes)
    if between:
        said.kernel(SENDRECV, 130, 131, launch=(128, 130))
    for place in range(back):
        at = 160 + 5 * place
        said.copy("h2d", at + 3, at + 6, launch=(at, at + 5), size_bytes=size_bytes)
    said.kernel(GEMM, 200, 260, launch=(180, 190))
    return said


def test_the_cpu_steps_the_optimizer_between_its_copies(export: Export) -> None:
    window = spans((119 * US, 190 * US))
    assert us(dict(account(export, offloading(), window).launch_starved_ns)) == {
        "cpu_optimizer": 41,
        "python": 10,
        "launch": 20,
    }


def test_the_gpu_may_step_its_part_of_the_optimizer_meanwhile(export: Export) -> None:
    said = offloading()
    said.kernel(ADAM, 125, 126, launch=(120, 124))
    found = us(dict(account(export, said, spans((126 * US, 158 * US))).launch_starved_ns))
    assert found["cpu_optimizer"] == 32


@pytest.mark.parametrize(
    "unlike", [{"size_bytes": 1000}, {"back": 1}, {"back": 5}, {"between": True}, {"trains": False}]
)
def test_few_or_small_copies_or_work_between_are_no_optimizer(export: Export, unlike: dict[str, int]) -> None:
    found = account(export, offloading(**unlike), spans((119 * US, 160 * US)))  # type: ignore[arg-type]
    assert "cpu_optimizer" not in found.launch_starved_ns
    assert found.launch_starved_ns["python"] >= 30 * US


@pytest.mark.parametrize("apart_ms", [-156, 325, 823])
def test_clocks_apart_are_said_not_accounted(export: Export, apart_ms: int) -> None:
    recording = Recording()
    for step in range(32):
        at = 10**9 + 100 * US * step
        recording.kernel(GEMM, at + apart_ms * 10**6, at + apart_ms * 10**6 + 50 * US, launch_ns=at - 10 * US)
    rank = rank_of(export(recording))
    found = measure_account(rank, spans((0, 2 * 10**9)), find_queueing(rank))
    assert isinstance(found, Missing)
    assert "clock offset" in found.reason
    assert f"about {apart_ms} ms" in found.reason


def test_without_launches_there_is_no_account(export: Export) -> None:
    recording = Recording()
    recording.kernel(GEMM, 0, 100)
    rank = rank_of(export(recording))
    assert isinstance(measure_account(rank, spans((0, 200)), find_queueing(rank)), Missing)


work = st.lists(
    st.tuples(
        st.sampled_from([GEMM, GEMM, SENDRECV, "d2h", "h2d"]),
        st.integers(0, 3),  # stream
        st.integers(1, 60),  # after the last launch
        st.integers(1, 30),  # length of the launch call
        st.integers(0, 80),  # wait before it starts
        st.integers(0, 90),  # length
        st.sampled_from([None, SYNC, "cudaMalloc_v3020", "cudaFree_v3020", "cudaEventRecord_v3020"]),
        st.integers(0, 2),  # thread
        st.booleans(),  # launch recorded
    ),
    min_size=1,
    max_size=30,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(work, st.lists(st.integers(-50, 3_000), min_size=2, max_size=2, unique=True))
def test_the_account_always_adds_up(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, int, int, int, int, int, str | None, int, bool]],
    window: list[int],
) -> None:
    said = Said()
    host, free = 0, dict.fromkeys(range(4), 100)
    for name, stream, after, call, wait, length, other, thread, recorded in rows:
        host += after
        launch: Any = {"launch_ns": host * US, "launch_end_ns": (host + call) * US} if recorded else {}
        start = max(free[stream], host) + wait
        place: Any = {"stream": 7 + stream, "tid": 1000 + thread}
        if name in ("d2h", "h2d"):
            said.recording.copy(name, start * US, (start + length) * US, size_bytes=64, **launch, **place)
        else:
            said.recording.kernel(name, start * US, (start + length) * US, **launch, **place)
        free[stream], host = start + length, host + call
        if other:
            said.call(other, host + 1, host + after, tid=1000 + thread)
            host += after
    path = tmp_path_factory.mktemp("random") / "run.sqlite"
    write_export(path, said.recording)
    rank = rank_of(path)
    chosen = spans((min(window) * US, max(window) * US))
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

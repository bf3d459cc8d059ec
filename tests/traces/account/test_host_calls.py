"""Host calls: what each does to its thread, which initialise once, which lie in others, whom each follows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.by_hand.run import Run
from traces.account.calls import (
    POLL,
    CallKind,
    HostCalls,
    _last_returned,
    call_kinds,
    host_calls,
    kinds_of_calls,
    outermost,
)
from traces.arrays import IntArray
from traces.timeline import RankTimeline

US = 1_000
Span = tuple[int, int]


def array(*values: int) -> IntArray:
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (CallKind.SYNC, "cudaStreamSynchronize_v3020 cuCtxSynchronize hipDeviceSynchronize"),
        (CallKind.LAUNCH, "cudaLaunchKernel_v7000 cuLaunchKernelEx cudaGraphLaunch_v10000 hipLaunchKernel"),
        (CallKind.LAUNCH, "hipModuleLaunchKernel hipExtModuleLaunchKernel"),  # loads no module
        (CallKind.INIT, "cuModuleLoadData cuLibraryLoadData cudaStreamBeginCapture_v10000 cuInit"),
        (CallKind.INIT, "cudaGraphInstantiate_v12000 cudaGraphCreate cudaFuncGetAttributes"),
        (CallKind.INIT, "cudaFuncSetAttribute_v9000"),
        (CallKind.FREE, "cudaFree_v3020 cuMemFree_v2 hipFree"),
        (CallKind.ALLOCATE, "cudaFreeAsync_v11020 cuMemFreeAsync hipFreeAsync"),  # waits for nothing
        (CallKind.ALLOCATE, "cudaMalloc_v3020 cudaMallocAsync_v11020 cuMemAlloc_v2 hipHostFree"),
        (CallKind.ALLOCATE, "cudaHostAlloc_v3020 cudaHostRegister cuMemCreate cuMemMap cuMemUnmap"),
        (CallKind.ALLOCATE, "cuMemSetAccess cuMemRelease cuMemAddressReserve"),
        (CallKind.COPY, "cudaMemcpyAsync_v3020 cuMemcpyHtoDAsync_v2 hipMemcpyWithStream"),
        (CallKind.OTHER, "cudaMemsetAsync_v3020 cudaEventRecord_v3020 cudaStreamWaitEvent_v3020"),
    ],
)
def test_a_call_is_told_by_its_name(kind: CallKind, names: str) -> None:
    several = tuple(names.split())
    assert call_kinds(several).tolist() == [*[kind] * len(several), CallKind.OTHER]


def test_a_poll_of_host_memory_synchronises_and_a_name_that_only_holds_its_words_does_not() -> None:
    assert call_kinds((POLL, f"no {POLL}")).tolist() == [CallKind.SYNC, CallKind.OTHER, CallKind.OTHER]


def kinds_of(run: Run, name: str) -> list[CallKind]:
    """Of each call of a name, in order of start."""
    rank = run.rank()
    calls, kinds = rank.columns.calls, kinds_of_calls(rank)
    mine = np.flatnonzero([rank.columns.call_names[code].startswith(name) for code in calls.name.tolist()])
    return [CallKind(kinds[row]) for row in mine[np.argsort(calls.start_ns[mine])].tolist()]


def eight_launches() -> Run:
    """Launched at -10, 9,990, ... 69,990; from 39,990 on is the second half."""
    run = Run()
    for turn in range(8):
        run.work("gemm", 10_000 * turn, 10_000 * turn + 100)
    return run


@pytest.mark.parametrize(
    ("lengths", "at", "process", "kind"),
    [
        ((1_000,), 5_000, 0, CallKind.INIT),
        ((999,), 5_000, 0, CallKind.ALLOCATE),  # a millisecond is the least
        ((1_000, 99), 5_000, 0, CallKind.INIT),
        ((1_000, 100), 5_000, 0, CallKind.ALLOCATE),  # not over ten times a later one
        ((1_000, 99, 100, 99), 5_000, 0, CallKind.ALLOCATE),  # the longest of them counts
        ((1_000,), 39_980, 0, CallKind.INIT),  # before the launch that begins the second half
        ((1_000,), 39_995, 0, CallKind.ALLOCATE),
        ((1_000,), 5_000, 1, CallKind.ALLOCATE),  # another process' start is no matter of this one's
    ],
)
def test_a_long_call_that_never_comes_again_initialises(
    lengths: tuple[int, ...], at: int, process: int, kind: CallKind
) -> None:
    run = eight_launches()
    first, *later = lengths
    run.call("malloc", at, at + first, process=process)
    for turn, length in enumerate(later):
        run.call("malloc", 45_000 + 2_000 * turn, 45_000 + 2_000 * turn + length)
    assert kinds_of(run, "cudaMalloc") == [kind, *[CallKind.ALLOCATE] * len(later)]


@pytest.mark.parametrize(
    ("lengths", "kinds"),
    [
        ((1_000, 99, 99), "i l l"),
        ((1_000, 100, 100), "l l l"),  # usually a tenth
        ((1_000, 20, 500), "l l l"),  # as a median of 260
        ((999, 2, 2), "l l l"),
        ((2, 1_000, 2), "l l l"),  # what loads is the first
        ((1_000,), "i"),  # launched once: held against the usual launch, of 2
    ],
)
def test_the_first_launch_of_a_kernel_loads_it_where_it_is_far_longer_than_the_next(
    lengths: tuple[int, ...], kinds: str
) -> None:
    run = eight_launches()
    for turn, length in enumerate(lengths):
        at = 2_000 + 10_000 * turn
        run.work("norm", at + length + 5, at + length + 10, launch=(at, at + length))
    asked = [CallKind.INIT if letter == "i" else CallKind.LAUNCH for letter in kinds.split()]
    found = kinds_of(run, "cudaLaunchKernel")
    norms = [2 * turn + 1 for turn in range(len(lengths))]
    assert [found[place] for place in norms] == asked
    assert {found[place] for place in range(len(found)) if place not in norms} == {CallKind.LAUNCH}


def test_each_kernel_is_held_against_its_own_later_launches() -> None:
    run = eight_launches()
    for place, name in enumerate(("norm", "add", "attention")):
        for turn, length in enumerate((1_000, 100, 100)):
            at = 2_000 + 10_000 * turn + 1_500 * place
            run.work(name, at + length + 5, at + length + 10, launch=(at, at + length))
    assert set(kinds_of(run, "cudaLaunchKernel")) == {CallKind.LAUNCH}


def test_without_launches_no_call_is_known_to_come_again() -> None:
    run = Run()
    run.work("gemm", 0, 10, launched=False)
    run.call("malloc", 0, 2_000)
    assert kinds_of(run, "cudaMalloc") == [CallKind.ALLOCATE]


@pytest.mark.parametrize(
    ("calls", "kept"),
    [
        ([(0, 10, 1), (2, 8, 1)], [0]),
        ([(2, 8, 1), (0, 10, 1)], [1]),
        ([(0, 10, 1), (2, 8, 2)], [0, 1]),  # of another thread
        ([(0, 10, 1), (10, 20, 1)], [0, 1]),  # begins as the other returns
        ([(0, 10, 1), (9, 20, 1)], [0]),
        ([(0, 10, 1), (0, 5, 1)], [0]),  # of equal starts the longer holds the other
        ([(0, 5, 1), (0, 10, 1)], [1]),
        ([(0, 100, 1), (10, 20, 1), (30, 40, 1), (100, 110, 1)], [0, 3]),
        ([], []),
    ],
)
def test_a_call_within_another_of_its_thread_is_one_with_it(
    calls: list[tuple[int, int, int]], kept: list[int]
) -> None:
    starts, ends, threads = (array(*(one[side] for one in calls)) for side in range(3))
    assert np.flatnonzero(outermost(starts, ends, threads)).tolist() == kept


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 5)), max_size=8))
def test_each_call_follows_the_one_that_returned_last_before_it(lengths: list[Span]) -> None:
    calls = sorted((start, start + length) for start, length in lengths)
    starts, ends = (array(*(one[side] for one in calls)) for side in (0, 1))
    followed = [
        max(((calls[other][1], other) for other in range(place) if calls[other][1] <= start), default=(0, -1))
        for place, (start, _) in enumerate(calls)
    ]
    assert _last_returned(starts, ends).tolist() == [place for _, place in followed]


def test_a_nested_call_is_held_by_the_outer_one_of_its_own_thread() -> None:
    start, end, thread = array(0, 5, 20), array(10, 15, 30), array(1, 2, 1)
    none = array(0, 0, 0)
    calls = HostCalls(start, end, thread, none, none, none, none, none)
    asked = [(1, -1), (1, 0), (1, 3), (1, 10), (1, 11), (1, 20), (1, 31), (2, 3), (2, 5), (2, 15), (3, 5)]
    found = calls.at(array(*(one for one, _ in asked)), array(*(at for _, at in asked)))
    assert found.tolist() == [-1, 0, 0, 0, -1, 2, -1, -1, 1, 1, -1]


def shown(rank: RankTimeline, *spans: Span) -> list[tuple[float, float]]:
    found = host_calls(rank, *((US * since, US * until) for since, until in spans))
    assert found.before.tolist() == [-1, *range(len(found) - 1)]
    return list(zip((found.start_ns // US).tolist(), (found.end_ns // US).tolist(), strict=True))


def test_of_the_calls_those_in_a_span_and_the_last_before_it_are_shown() -> None:
    run = Run()
    run.work("gemm", 500, 600, launch=(0, 2))
    for at in (10, 20, 30, 40, 50, 60):
        run.call("malloc", at, at + 5)
    rank = run.rank()
    assert shown(rank, (31, 44)) == [(20, 25), (30, 35), (40, 45)]
    assert shown(rank, (35, 40)) == [(30, 35)]  # returned as the span began; the next begins as it ends
    assert shown(rank, (34, 41)) == [(20, 25), (30, 35), (40, 45)]
    assert shown(rank, (-5, 1)) == [(0, 2)]
    assert shown(rank, (66, 70)) == [(60, 65)]


def test_of_two_spans_no_call_follows_one_of_the_span_before() -> None:
    run = Run()
    run.work("gemm", 500, 600, launch=(0, 2))
    run.work("gemm", 600, 700, launch=(44, 45), thread=1)
    for at in (10, 20, 50, 60):
        run.call("malloc", at, at + 5)
    found = host_calls(run.rank(), (9 * US, 16 * US), (54 * US, 66 * US))
    # 0 and 10 of the first span, of the second 44, which another thread called before it, 50 and 60
    assert (found.start_ns // US).tolist() == [0, 10, 44, 50, 60]
    assert found.own_before.tolist() == [-1, 0, -1, -1, 3]
    assert found.before[3:].tolist() == [2, 3]


@pytest.mark.parametrize(("end", "follows"), [(10, 0), (11, 1), (9, 0)])
def test_of_calls_that_returned_at_once_a_call_follows_that_of_its_own_thread(end: int, follows: int) -> None:
    run = Run()
    run.work("gemm", 500, 600, launch=(0, 10))
    run.work("gemm", 600, 700, launch=(5, end), thread=1)
    run.call("malloc", 12, 14)
    assert host_calls(run.rank(), (-5 * US, 100 * US)).before.tolist() == [-1, -1, follows]


def test_only_calls_of_threads_that_launch_are_the_hosts() -> None:
    run = Run()
    run.work("gemm", 500, 600, launch=(0, 2))
    run.work("gemm", 600, 700, launch=(4, 6), thread=1)
    run.call("malloc", 10, 20, thread=2)
    run.call("malloc", 10, 20, process=1)
    found = host_calls(run.rank(), (-5 * US, 100 * US))
    assert (found.start_ns // US).tolist() == [0, 4]
    assert found.pause_ns.tolist() == [0, 2 * US]
    assert found.own_before.tolist() == [-1, -1]

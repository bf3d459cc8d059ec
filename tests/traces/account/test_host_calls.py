"""Host calls and pieces of time: what each call does to its thread, and who holds an instant."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tests.by_hand.run import Run
from traces.account.account import Account, absent_pieces
from traces.account.calls import POLL, CallKind, HostCalls, call_kinds, host_calls, kinds_of_calls
from traces.account.host import captures
from traces.account.pieces import Pieces, cut, tile
from traces.arrays import IntArray
from traces.missing import Missing
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
    calls, (kinds, _) = rank.columns.calls, kinds_of_calls(rank)
    mine = np.flatnonzero([rank.columns.call_names[code].startswith(name) for code in calls.name.tolist()])
    return [CallKind(kinds[row]) for row in mine[np.argsort(calls.start_ns[mine])].tolist()]


def eight_launches() -> Run:
    """Launched at -10, 9,990, ... 69,990; from 39,990 on is the second half; copies and a call that wait."""
    run = Run()
    for turn in range(8):
        run.work("gemm", 10_000 * turn, 10_000 * turn + 100)
    for launch in ((3_000, 4_500), (66_000, 66_002)):
        run.work("d2h", 80_000, 80_010, launch=launch)
    run.call("sync", 60_000, 60_900)
    return run


@pytest.mark.parametrize(
    ("lengths", "at", "process", "kind"),
    [
        ((1_000,), 5_000, 0, CallKind.INIT),
        ((999,), 5_000, 0, CallKind.ALLOCATE),  # a millisecond is the least
        ((1_000, 99), 5_000, 0, CallKind.INIT),
        ((1_000, 100), 5_000, 0, CallKind.ALLOCATE),  # not over ten times a later one
        ((1_000, 99, 100, 99), 5_000, 0, CallKind.ALLOCATE),  # the longest of them counts
        ((1_000,), 39_990, 0, CallKind.INIT),  # no later than the launch that begins the second half
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
    assert kinds_of(run, "cudaMemcpy") == [CallKind.COPY] * 2


@pytest.mark.parametrize(("then", "kinds"), [
    ("gemm", (CallKind.FREE, CallKind.ALLOCATE)), ("norm", (CallKind.INIT, CallKind.INIT)),
])  # fmt: skip
def test_what_is_freed_and_taken_between_kernels_that_ran_before_is_no_first_use(
    then: str, kinds: tuple[CallKind, CallKind]
) -> None:
    run = eight_launches()
    run.work(then, 8_500, 8_600)
    run.call("free", 5_000, 6_000)
    run.call("malloc", 6_000, 8_000)
    assert (*kinds_of(run, "cudaFree"), *kinds_of(run, "cudaMalloc")) == kinds


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
        begin = at + length + 5 if turn else 90_000  # the first to be launched runs last
        run.work("norm", begin, begin + 5, launch=(at, at + length), stream=8)
    asked = [CallKind.INIT if letter == "i" else CallKind.LAUNCH for letter in kinds.split()]
    found = kinds_of(run, "cudaLaunchKernel")
    norms = [2 * turn + 1 for turn in range(len(lengths))]
    assert [found[place] for place in norms] == asked
    assert {found[place] for place in range(len(found)) if place not in norms} == {CallKind.LAUNCH}


def test_without_launches_no_call_is_known_to_come_again() -> None:
    run = Run()
    run.work("gemm", 0, 10, launched=False)
    run.call("malloc", 0, 2_000)
    assert kinds_of(run, "cudaMalloc") == [CallKind.ALLOCATE]


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


def test_a_capture_lasts_from_the_call_that_begins_it_to_the_end_of_its_threads_next() -> None:
    run = Run()
    run.work("gemm", 500, 600)
    for name, at, thread in (("Begin", 10, 0), ("End", 20, 1), ("End", 30, 0), ("Begin", 40, 0)):
        run.call(f"cudaStream{name}Capture_v10000", at, at + 5, thread=thread)
    found = captures(run.rank().columns)
    assert (found.start_ns.tolist(), found.end_ns.tolist()) == ([10 * US], [35 * US])


def pieces(*some: Span) -> Pieces:
    starts, ends = (array(*(one[side] for one in some)) for side in (0, 1))
    return Pieces(starts, ends, 10 + np.arange(len(some)))


def told(some: Pieces) -> list[tuple[int, int, int]]:
    return list(zip(some.start_ns.tolist(), some.end_ns.tolist(), some.kernel.tolist(), strict=True))


def test_an_instant_belongs_to_the_innermost_span_that_holds_it() -> None:
    """Calls of which each holds another or none, written in any order, and pieces that they cut."""
    asked = [(-2, 3), (3, 9), (9, 10), (12, 20)]
    for turn in range(300):
        draw, at, calls = Random(turn), 0, list[Span]()
        for _ in range(draw.randrange(4)):
            outer = at + draw.randrange(3)
            inner = outer + draw.randrange(3)
            back = inner + draw.randrange(1, 4)
            at = back + draw.randrange(3)
            calls += [(outer, at), (inner, back)]
        draw.shuffle(calls)
        start, end = (array(*(one[side] for one in calls)) for side in (0, 1))
        found, label = cut(pieces(*asked), tile(start, end, np.arange(len(calls)), -1))
        said: dict[tuple[int, int], Span | None] = {}
        for (since, until, kernel), place in zip(told(found), label.tolist(), strict=True):
            said |= {(at, kernel): calls[place] if place >= 0 else None for at in range(since, until)}
        for number, piece in enumerate(asked):
            for at in range(*piece):
                holding = [one for one in calls if one[0] <= at < one[1]]
                innermost = max(holding, key=lambda one: (one[0], -one[1]), default=None)
                assert said.pop((at, 10 + number)) == innermost
        assert not said


def test_what_is_clipped_to_nothing_is_left_out() -> None:
    some = pieces((0, 10), (10, 20), (20, 30), (30, 40))
    assert told(some.clipped(array(2, 10, 30, 35), array(8, 10, 40, 40))) == [(2, 8, 10), (35, 40, 13)]


def account(**about: object) -> Account:
    bare: dict[str, object] = {"launch_starved_ns": {}, "blocking_ns": {}, "decided_ns": {}}
    names = ("arrival_ns", "kernel_gap_ns", "graph_opaque_ns", "dependency_stalled_ns", "trailing_ns")
    return Account(**(bare | dict.fromkeys((*names, "masked_ns"), 0) | about))  # type: ignore[arg-type]


def test_a_host_without_time_saves_what_is_its_own_but_not_what_the_profiler_does() -> None:
    found = account(
        launch_starved_ns={"python": 1, "profiler": 1_000, "launch": 2},
        blocking_ns={"memcpy_d2h": 4, "ep_dispatch": 10_000},
        arrival_ns=8, kernel_gap_ns=16, masked_ns=32,
        graph_opaque_ns=100_000, dependency_stalled_ns=200_000, trailing_ns=400_000,
        decided_ns={"recorded": 178_758, "inferred": 357_515, "none": 178_758},
    )  # fmt: skip
    assert found.host_most_ns == 1 + 2 + 4 + 8 + 16 + 32
    assert account().host_most_ns == 0
    assert found.total_ns == 1_003 + 10_004 + 8 + 16 + 700_000  # what is masked is part of the starved
    absent = found.absent
    assert (absent.graph_opaque, absent.dependency_stalled, absent.trailing) == (100_000, 200_000, 400_000)
    assert (absent.launch_latency.arrival, absent.launch_latency.kernel_gap) == (8, 16)
    assert (absent.launch_starved, absent.blocking) == (found.launch_starved_ns, found.blocking_ns)


def test_shares_of_what_decided_are_of_all_time_without_compute_and_none_of_none() -> None:
    found = account(trailing_ns=100, decided_ns={"recorded": 50, "inferred": 30, "none": 20})
    assert (found.decided_by.recorded, found.decided_by.inferred, found.decided_by.none) == (0.5, 0.3, 0.2)
    assert account(decided_ns={"recorded": 0, "inferred": 0, "none": 0}).decided_by.none == 0.0


def test_pieces_of_bare_figures_and_of_no_account_are_missing() -> None:
    reason = Missing("absent_ns", "clocks", "again")
    assert absent_pieces(reason) is reason
    bare = absent_pieces(account())
    assert isinstance(bare, Missing)
    assert bare.reason == "only sums are known"

"""Where evidence on communication is worth nothing: another stream, thread, communicator, direction."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.recordings.launches import (
    ADAM,
    ATTENTION,
    FILL,
    GATHER,
    GEMM,
    GROUPED,
    NORM,
    NORM_BACKWARD,
    PERMUTE,
    ROUTER,
    SCATTER,
    SENDRECV,
    SORT,
    UNPERMUTE,
    Line,
    kinds,
    rank_of,
    told,
)  # fmt: skip
from tests.recordings.payloads import collective, init, send, with_payloads
from traces.resolve.communication import communication_of, stab
from traces.resolve.communicators import Parts
from traces.resolve.kinds import ENOUGH, resolve_kinds, spread_frac
from traces.resolve.nccl_calls import CallPayloads, communicators_in, groups_of
from traces.resolve.neighbours import launch_order
from traces.resolve.ranges import enclosing_ranges
from traces.timeline import RankTimeline

Export = Callable[..., Path]
CAST = "transformer_engine::quantize_kernel"
ALL_TO_ALL = "ncclDevKernel_AllToAll(ncclDevKernelArgsStorage<(unsigned long)4096>)"
DISPATCH, COMBINE = (f"void deep_ep::intranode::{one}<(int)8>(int4 *)" for one in ("dispatch", "combine"))


def of(export: Export, line: Line) -> RankTimeline:
    return rank_of(with_payloads(export(line.recording), line.blob_at))


def test_a_copy_in_a_group_of_sends_is_no_all_to_all(export: Export) -> None:
    line = Line()
    line.all(PERMUTE)
    for place, text in enumerate(("ncclGroupStart", "ncclSend", "ncclRecv")):
        line.recording.range(text, 20_000 + 10 * place, 20_005 + 10 * place, domain=1, registered=True)
    line.recording.range("ncclGroupEnd", 20_500, 24_000, domain=1, registered=True)
    line.recording.copy("p2p", 25_000, 35_000, size_bytes=8, launch_ns=21_000, stream=20, to_device=1)
    line.now = 40
    line.all(GROUPED)
    assert kinds(of(export, line)) == ["other_comm"]


def test_gathers_around_the_permute_are_no_dispatcher_while_an_exchange_is_open(export: Export) -> None:
    for exchanges in (False, True):
        line = Line()
        for _ in range(2):
            line.all(NORM, ROUTER)
            line.run(GATHER, stream=24)
            line.all(PERMUTE, GROUPED, UNPERMUTE)
            line.run(SCATTER, stream=24)
            line.all(NORM)
            if exchanges:
                line.run(SENDRECV, stream=30)
                line.all(NORM)
        found = [
            kind
            for kind in kinds(rank_of(export(line.recording, f"{exchanges}.sqlite")))
            if "send" not in kind
        ]
        assert found == (["other_comm"] * 4 if exchanges else ["ep_dispatch", "ep_combine"] * 2)


@pytest.mark.parametrize(
    ("odd", "expected"),
    [
        (0, ["ep_dispatch", "ep_combine"] * 10),
        (2, ["ep_dispatch", "ep_combine"] * 10 + ["other_comm"] * 2),  # 20 of 22 are nine tenths
        (3, ["other_comm"] * 23),
    ],
)
def test_a_stream_is_a_dispatchers_where_nine_tenths_of_it_stand_around_the_permute(
    export: Export, odd: int, expected: list[str]
) -> None:
    line = Line()
    for _ in range(10):
        line.all(NORM, ROUTER)
        line.run(GATHER, stream=24)
        line.all(PERMUTE, GROUPED, UNPERMUTE)
        line.run(SCATTER, stream=24)
    for _ in range(odd):
        line.all(NORM, GEMM)
        line.run(GATHER, stream=24)
    line.all(NORM)
    assert kinds(rank_of(export(line.recording))) == expected


def test_what_is_no_expert_traffic_keeps_its_operation_wherever_it_stands(export: Export) -> None:
    line = Line()
    line.all(PERMUTE)
    line.run(GATHER, stream=7)
    line.all(GROUPED)
    line.run(GATHER, stream=7)
    line.all(UNPERMUTE)
    assert [row[:2] for row in told(rank_of(export(line.recording)))] == [("other_comm", "all_gather")] * 2


def test_gathers_alone_or_on_a_stream_of_compute_are_no_dispatcher(export: Export) -> None:
    for gathers, stream in ((True, 24), (False, 24), (True, 7)):
        line = Line()
        for _ in range(2):
            line.all(NORM, ROUTER)
            line.run(GATHER if gathers else SCATTER, stream=stream)
            line.all(PERMUTE, GROUPED, UNPERMUTE)
            if stream == 7:
                line.run(SCATTER, stream=stream)
        line.all(NORM)
        assert set(kinds(rank_of(export(line.recording, f"{gathers}{stream}.sqlite")))) == {"other_comm"}


def test_a_range_decides_where_two_sends_and_two_receives_do_not(export: Export) -> None:
    line = Line()
    line.all(ROUTER, GEMM)
    begin = line.now
    line.group(2, 2)
    line.recording.range("nccl:all_to_all", begin * 1_000, begin * 1_000 + 4_500)
    line.all(GEMM)
    assert [row[:2] for row in told(rank_of(export(line.recording, "range.sqlite")))] == [("ep_a2a", "a2a")]


def test_what_stands_beside_the_optimizer_names_its_own_stream_and_communicator_alone(export: Export) -> None:
    """A gather after Adam, a scatter before; others of that communicator, that stream, neither."""
    line = Line()
    line.all(NORM_BACKWARD)
    line.call("ncclReduceScatter", collective(7, 8), SCATTER, stream=24)
    line.all(ADAM)
    line.call("ncclAllGather", collective(8, 8), GATHER, stream=28)
    line.all(NORM)
    for communicator, stream in ((7, 30), (9, 28), (9, 31)):
        line.call("ncclAllGather", collective(communicator, 8), GATHER, stream=stream)
        line.all(NORM, GEMM)
    assert [row[0] for row in told(of(export, line))] == [
        "dp_reduce_scatter", "dp_all_gather", "dp_all_gather", "other_comm", "other_comm",
    ]  # fmt: skip


def test_threads_have_their_own_groups_and_ranges(export: Export) -> None:
    """The group and the range of one thread stand around the launch of another, and say nothing of it."""
    line = Line()
    line.all(ROUTER, GEMM)
    begin = line.now * 1_000
    texts = ["ncclGroupStart", *["ncclSend"] * 4, *["ncclRecv"] * 4]
    for place, text in enumerate(texts):
        line.recording.range(text, begin + 10 * place, begin + 10 * place + 5, domain=1, tid=1001)
    line.recording.range("ncclGroupEnd", begin + 500, begin + 4_000, domain=1, tid=1001)
    line.recording.range("moe_dispatch forward", begin, begin + 4_500, tid=1001)
    line.run(SENDRECV, stream=20)
    line.run(GEMM, tid=1001)
    assert kinds(rank_of(export(line.recording))) == ["sendrecv_unresolved"]


@pytest.mark.parametrize(
    ("text", "layer", "backward"),
    [
        ("layers.12.mlp", 12, 12),
        ("layer_99999f", 99_999, 99_999),
        ("layer_3f-layer_99999b", 3, 99_999),
        ("layer_3f-layer_100000b", 3, 3),
        ("layers.100000", -1, -1),
        ("player 3", -1, -1),
    ],
)
def test_a_layer_is_named_by_up_to_five_digits(export: Export, text: str, layer: int, backward: int) -> None:
    line = Line()
    line.within(text, DISPATCH)
    found = enclosing_ranges(communication_of(rank_of(export(line.recording))))
    assert (found.layer.tolist(), found.layer_backward.tolist()) == ([layer], [backward])


def test_a_name_tells_the_phase_before_a_range_does(export: Export) -> None:
    line = Line()
    line.within("moe backward", "void hybrid_ep::dispatch_kernel<8, true>(P)")
    line.within("moe backward", DISPATCH)
    assert [row[2] for row in told(rank_of(export(line.recording)))] == ["fwd", "bwd"]


@pytest.mark.parametrize(
    ("between", "kind"),
    [((), "ep_dispatch"), ((FILL, CAST), "ep_dispatch"), ((NORM,), "sendrecv_unresolved")],
)
def test_fills_and_casts_stand_between_anything_and_a_norm_parts_it(
    export: Export, between: tuple[str, ...], kind: str
) -> None:
    line = Line()
    line.all(PERMUTE, *between)
    line.run(SENDRECV, stream=20)
    line.all(*between, GROUPED)
    assert kinds(rank_of(export(line.recording))) == [kind]


@pytest.mark.parametrize(
    ("before", "name", "after", "phase"),
    [
        (NORM, DISPATCH, NORM_BACKWARD, "bwd"),  # of what comes next
        (NORM_BACKWARD, DISPATCH, NORM, "fwd"),
        (NORM, COMBINE, NORM_BACKWARD, "fwd"),  # of what came before
        (NORM_BACKWARD, COMBINE, NORM, "bwd"),
        (NORM, ALL_TO_ALL, NORM, "fwd"),
        (NORM, ALL_TO_ALL, NORM_BACKWARD, None),  # neighbours that disagree
    ],
)
def test_the_phase_is_that_of_the_side_to_which_an_exchange_belongs(
    export: Export, before: str, name: str, after: str, phase: str | None
) -> None:
    line = Line()
    line.all(GROUPED, before)
    line.run(name, stream=20)
    line.all(after)
    assert [row[2] for row in told(rank_of(export(line.recording)))] == [phase]


def test_a_range_tells_the_phase_before_a_notify_does(export: Export) -> None:
    line = Line()
    line.run("void deep_ep::intranode::cached_notify_dispatch<(int)8>(int *)", stream=20)
    line.within("moe forward", DISPATCH)
    assert [row[2] for row in told(rank_of(export(line.recording)))] == ["bwd", "fwd"]


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (ROUTER, GROUPED, "ep_dispatch"),
        (PERMUTE, GEMM, "ep_dispatch"),
        (GEMM, UNPERMUTE, "ep_combine"),
        (ATTENTION, GROUPED, "sendrecv_unresolved"),
        (ROUTER, GEMM, "sendrecv_unresolved"),
        (GROUPED, GEMM, "sendrecv_unresolved"),
        (PERMUTE, UNPERMUTE, "sendrecv_unresolved"),
    ],
)
def test_an_exchange_needs_expert_work_on_both_sides(
    export: Export, before: str, after: str, kind: str
) -> None:
    """Those that are nothing at once stand beside a pipeline's, so that their stream tells nothing more."""
    line = Line()
    line.all(NORM, before)
    line.run(SENDRECV, stream=20)
    line.all(after, NORM)
    line.run(SENDRECV, stream=20)
    line.all(NORM)
    assert kinds(rank_of(export(line.recording)))[0] == kind


@pytest.mark.parametrize(
    ("text", "phase"),
    [
        ("moe_dispatch forward", "fwd"),
        ("dispatch(F)", "fwd"),
        ("combine(W)", "bwd"),
        ("moe_dispatch forward of backward", None),  # both are named
        ("CheckpointFunctionBackward moe_dispatch", None),  # which runs forward again
    ],
)
def test_a_range_says_the_phase_where_it_names_one(export: Export, text: str, phase: str | None) -> None:
    line = Line()
    line.within(text)
    line.all(GEMM)
    assert [row[2] for row in told(rank_of(export(line.recording)))] == [phase]


def test_a_group_has_one_peer_where_all_of_its_calls_name_that(export: Export) -> None:
    line = Line()
    line.all(GEMM)
    for sends_to, receives_from in ((5, 5), (5, 6)):
        begin = line.now * 1_000 + 10
        line.blob_at |= {begin: send(7, 8, sends_to), begin + 10: send(7, 8, receives_from)}
        line.group(1, 1)
    found = groups_of(communication_of(of(export, line)))
    assert found.peer.tolist() == [5, -1]
    assert (found.send_count.tolist(), found.receive_count.tolist()) == ([1, 1], [1, 1])


def test_ranks_of_a_communicator_are_those_that_its_own_calls_agree_on(export: Export) -> None:
    line = Line()
    line.call("ncclCommInitRank", init(7, 4, rank=2))
    line.call("ncclCommInitRank", init(8, 4))
    line.call("ncclCommDestroy", init(8, 2))  # counts others: nothing is known of 8
    line.call("ncclAllGather", collective(9, 0), GATHER)
    line.recording.range("ncclCommInitRank", 400_000, 401_000, domain=1, registered=True, pid=2_000)
    line.blob_at[400_000] = init(6, 4)  # of another process
    found = communicators_in(of(export, line))
    assert [*zip(found.hashes.tolist(), found.rank_count.tolist(), found.own_rank.tolist(), strict=True)] == [
        (7, 4, 2), (8, -1, 0), (9, -1, -1),
    ]  # fmt: skip
    assert found.rank_count_of(np.array([0, -1])).tolist() == [4, -1]
    begins = np.array([30_000, 30_000, 31_000])
    ends = np.array([34_000, 34_001, 34_000])
    calls = found.of_calls(int(line.recording.global_id(1000, 1000)), begins, ends)
    assert (calls.communicator.tolist(), calls.size_bytes.tolist()) == ([2, -1, -1], [0, -1, -1])
    assert calls.peer.tolist() == [-1] * 3


def test_parts_agree_where_half_are_told_and_all_of_those_alike() -> None:
    parts = Parts(np.array([0, 0, 0, 0, 1, 1, 2]), np.array([7, 8, 9]), np.array([True, True, False]))
    among = np.array([True, True, True, True, True, True, True])
    assert parts.agreed(np.array([3, 3, -1, -1, 3, 2, 3]), among).tolist() == [3, 3, 3, 3, -1, -1, -1]
    assert parts.agreed(np.array([3, -1, -1, -1, 3, -1, 3]), among).tolist() == [-1] * 4 + [3, 3, -1]
    assert parts.agreed(np.array([3, -1, -1, -1, 3, -1, 3]), among, shared=True).tolist()[-1] == 3
    few = np.array([True, True, False, False, False, False, True])  # of the rows asked, half are told
    assert parts.agreed(np.array([0, -1, 1, 1, 2, 2, -1]), few).tolist() == [0, 0, -1, -1, -1, -1, -1]
    mask = np.array([True, True, False, False, False, False, True])
    assert parts.any_of(mask).tolist() == [True] * 4 + [False] * 3  # the last is not of its own stream
    assert parts.share(mask, among).tolist() == [2, 2, 2, 2, 0, 0, 1]


def test_the_innermost_of_nested_intervals_holds_its_start_and_not_its_end() -> None:
    start, end = np.array([0, 2, 2, 6]), np.array([10, 8, 4, 7])
    found = stab(start, end, np.arange(-1, 11))
    assert found.tolist() == [-1, 0, 0, 2, 2, 1, 1, 3, 1, 0, 0, -1]
    assert stab(start[:0], end[:0], np.array([1])).tolist() == [-1]


@pytest.mark.parametrize(("count", "spread"), [(10, 0.8), (9, None)])
def test_the_spread_of_durations_needs_ten(count: int, spread: float | None) -> None:
    """From 10 to 28, or 100 more each: between the tenth and the ninth of ten lie 8 times 2, around 19."""
    values = np.arange(10, 10 + 2 * count, 2)
    assert ENOUGH.value == 10
    found = spread_frac(values)
    assert found == (None if spread is None else pytest.approx(14.4 / 19))
    assert spread_frac(np.zeros(20, dtype=np.int64)) is None


@pytest.mark.parametrize(("launched", "order"), [((0, 1), [1, 0, 2]), ((1,), [0, 1, 2])])
def test_the_order_is_that_of_launches_where_more_than_half_are_known(
    export: Export, launched: tuple[int, ...], order: list[int]
) -> None:
    """Kernels in order of start, the second launched before the first, the third at no known time."""
    line = Line()
    for place, launch_us in enumerate((8, 2, 4)):
        known_ns = launch_us * 1_000 if place in launched else None
        line.recording.kernel(GEMM, 10_000 + 1_000 * place, 10_500 + 1_000 * place, launch_ns=known_ns)
    assert launch_order(rank_of(export(line.recording)).activities).tolist() == order


def test_open_exchanges_are_listed_by_stream_the_longest_first(export: Export) -> None:
    line = Line()
    for stream, length in ((20, 10), (24, 30), (28, 10)):
        line.all(GEMM)
        line.run(SENDRECV, stream=stream, length=length)
    line.all(GEMM)
    found = resolve_kinds(rank_of(export(line.recording))).unresolved
    assert [(one.stream_id, one.work_ns) for one in found] == [(24, 30_000), (20, 10_000), (28, 10_000)]


def test_every_peer_counts_once_and_a_call_without_one_hides_the_count() -> None:
    group, peer = np.array([0, 0, 0, 3, 3]), np.array([1, 1, 2, 4, -1])
    payloads = CallPayloads(np.zeros(5, dtype=np.int64), peer, peer)
    assert payloads.peer_count(group, np.ones(5, dtype=np.bool_)).tolist() == [2, 0, 0, -1, 0]
    assert payloads.one_peer(group, np.array([True, True, False, True, False])).tolist() == [1, -1, -1, 4, -1]


def test_sorting_what_experts_get_is_expert_work_in_either_direction(export: Export) -> None:
    line = Line()
    line.all(NORM, ATTENTION, PERMUTE)
    line.run(SENDRECV, stream=20)
    line.all(SORT, ATTENTION)
    assert [row[:2] for row in told(rank_of(export(line.recording)))] == [("ep_dispatch", "dispatch")]

"""What NCCL's SendRecv is for, and on what evidence that is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.recordings.launches import (
    ATTENTION,
    FILL,
    GEMM,
    GROUPED,
    NORM,
    NORM_BACKWARD,
    PERMUTE,
    ROUTER,
    SENDRECV,
    UNPERMUTE,
    Laid,
    Line,
    group,
    kinds,
    laid,
    moe_layer,
    on,
    rank_of,
    told,
    within,
)
from traces.resolve.kinds import resolve_kinds

Export = Callable[..., Path]
ALL_TO_ALL = "ncclDevKernel_AllToAll(ncclDevKernelArgsStorage<(unsigned long)4096>)"


def layer(sendrecv: Laid) -> Laid:
    return lambda line: moe_layer(line, lambda: sendrecv(line))


OPEN, EP = "sendrecv_unresolved", ["ep_dispatch", "ep_dispatch", "ep_combine"]
TURNS: tuple[str | Laid, ...] = (
    *(NORM, ATTENTION, NORM, ROUTER, PERMUTE, on(20), NORM, ATTENTION, NORM, ROUTER, PERMUTE, GROUPED),
    *(on(20), on(20), GROUPED, on(20), UNPERMUTE, UNPERMUTE),
)
"""Attention of one microbatch hides the dispatch of another: only the last has both its neighbours."""
CASES: dict[str, tuple[tuple[str | Laid, ...], list[str], str]] = {
    "groups of as many peers are of experts where they run": (
        (layer(group(4, 4)), NORM),
        EP,
        "nccl_groups high",
    ),
    "two each way between permute and experts are of experts": (
        (layer(group(2, 2)),),
        EP,
        "neighbours medium",
    ),
    "one send per group is the pipeline": (
        (layer(group(4, 4)), group(1, 0, 24), group(0, 1, 24), group(1, 1, 24), NORM),
        [*EP, *["pp_p2p"] * 3],
        "nccl_groups high",
    ),
    "one send each way stays a pipeline between permute and experts": (
        (PERMUTE, group(1, 1), GROUPED),
        ["pp_p2p"],
        "nccl_groups high",
    ),
    "an all-to-all beside attention without experts is of contexts": (
        (NORM, GEMM, group(4, 4), ATTENTION, group(4, 4), GEMM, NORM),
        ["cp"] * 2,
        "nccl_groups medium",
    ),
    "an all-to-all of a recommender is not of experts": (
        ("void fbgemm_gpu::permute_2D_data_kernel<1>", GEMM, within("nccl:all_to_all"), GEMM) * 3,
        [OPEN] * 3,
        "name low",
    ),
    "a pipeline that sends both ways in its steady state stays one": (
        (GEMM, group(1, 0), GEMM, group(2, 2), GEMM, group(2, 2), GEMM, group(0, 1)),
        ["pp_p2p"] * 4,
        "nccl_groups high",
    ),
    "peers without tokens do not make an all-to-all a pipeline": (
        (PERMUTE, group(4, 4), group(1, 1), group(2, 2), GROUPED),
        ["ep_dispatch"] * 3,
        "nccl_groups high",
    ),
    "a peer without tokens does not make an exchange of two a pipeline": (
        (PERMUTE, group(2, 2), group(1, 1), group(2, 2), GROUPED),
        ["ep_dispatch"] * 3,
        "neighbours medium",
    ),
    "expert traffic between attention and experts is not of contexts": (
        (ATTENTION, FILL, group(4, 4), GROUPED, group(4, 4), FILL, ATTENTION),
        ["ep_dispatch", "ep_combine"],
        "nccl_groups high",
    ),
    "a ring is of contexts beside attention and elsewhere a pipeline": (
        (GEMM, group(1, 1, 24), ATTENTION, GEMM, group(1, 1, 28), GEMM),
        ["cp", "pp_p2p"],
        "nccl_groups medium, nccl_groups high",
    ),
    "a stream whose named kernels agree names the others": (
        (within("moe_dispatch forward"), GEMM, on(20), on(21), GEMM),
        ["ep_dispatch", "ep_a2a", OPEN],
        "nvtx_range high, stream medium, name low",
    ),
    "a stream shared with compute names nothing": (
        (within("moe_dispatch forward", 7), GEMM, on(7), GEMM),
        ["ep_dispatch", OPEN],
        "nvtx_range high, name low",
    ),
    "a pipeline between layers is not of experts": (
        (*[layer(on(20))] * 3, on(24), NORM),
        [*EP * 3, OPEN],
        "neighbours medium, name low",
    ),
    "exchanges of microbatches that take turns are of experts": (
        TURNS * 3,
        ["ep_dispatch", "ep_a2a", "ep_a2a", "ep_combine"] * 3,
        "neighbours low",
    ),
    "on a stream that also exchanges between layers only what has both neighbours is": (
        (*TURNS, on(20), NORM) * 3,
        [OPEN, OPEN, OPEN, "ep_combine", OPEN] * 3,
        "name low, neighbours low",
    ),
    "a pipeline amid expert work on a stream of its own stays open": (
        (*TURNS, PERMUTE, on(24), NORM) * 3,
        ["ep_dispatch", "ep_a2a", "ep_a2a", "ep_combine", OPEN] * 3,
        "neighbours low, name low",
    ),
    "the backward of an unpermute permutes": (
        (
            NORM_BACKWARD,
            "_unpermute_bwd_with_merging_probs_kernel",
            on(20),
            GEMM,
            on(20),
            UNPERMUTE,
            NORM_BACKWARD,
        ),
        ["ep_dispatch", "ep_combine"],
        "neighbours low",
    ),
}


@pytest.mark.parametrize(("parts", "expected", "why"), CASES.values(), ids=CASES.keys())
def test_what_an_exchange_is_for(
    export: Export, parts: tuple[str | Laid, ...], expected: list[str], why: str
) -> None:
    """By its group, its range, its stream, or what was launched beside it; `why`: evidence, in order met."""
    rows = told(rank_of(export(laid(*parts).recording)))
    assert [row[0] for row in rows] == expected
    assert ", ".join(dict.fromkeys(" ".join(row[3:]) for row in rows)) == why
    with_phase = {kind: phase for kind, _, phase, *_ in rows if kind in ("ep_dispatch", "ep_combine")}
    backward = NORM_BACKWARD in parts
    assert set(with_phase.values()) <= {"bwd" if backward else "fwd", None}


def test_the_same_trace_without_nvtx_and_permutes_stays_unresolved_and_says_what_would_settle_it(
    export: Export,
) -> None:
    line = Line()
    for _ in range(4):
        line.all(NORM, ATTENTION, NORM, GEMM)
        line.run(SENDRECV, stream=20)
        line.all(GEMM)
    rank = rank_of(export(line.recording))
    found = resolve_kinds(rank)
    assert told(rank, found) == [("sendrecv_unresolved", None, None, "name", "low")] * 4
    (open_stream,) = found.unresolved
    assert (open_stream.stream_id, open_stream.kernel_count, open_stream.work_ns) == (20, 4, 40_000)
    assert "--trace=cuda,nvtx" in open_stream.cure


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ((group(2, 2), GEMM, on(20)), "its NCCL groups fit more than one use"),
        ((on(20), GEMM, on(20)), "no NCCL ranges, no named range around it"),
        ((within("nccl:all_to_all"), GEMM, on(20)), "its range shows how it exchanges"),
        ((on(20, ALL_TO_ALL), GEMM, on(20)), "its name shows how it exchanges"),
    ],
)
def test_it_is_said_what_is_known_of_any_open_exchange_of_a_stream(
    export: Export, parts: tuple[str | Laid, ...], reason: str
) -> None:
    (open_,) = resolve_kinds(rank_of(export(laid(GEMM, *parts, GEMM).recording))).unresolved
    assert open_.reason.startswith(reason)
    assert open_.reason.endswith(", and no router, permute or grouped GEMM ran")


def test_a_group_whose_start_was_not_recorded_counts_for_nothing(export: Export) -> None:
    line = Line()
    line.all(GEMM)
    line.recording.range("ncclSend", 20_000, 20_100, domain=1)
    line.recording.range("ncclGroupEnd", 20_500, 24_000, domain=1)
    line.run(SENDRECV, stream=20)
    assert kinds(rank_of(export(line.recording))) == ["sendrecv_unresolved"]


def test_a_group_in_a_group_counts_with_the_outer_one(export: Export) -> None:
    line = Line()
    line.all(PERMUTE)
    starts = ("ncclGroupStart", "ncclGroupStart", "ncclSend", "ncclRecv", "ncclGroupEnd", "ncclSend")
    for place, text in enumerate((*starts, "ncclSend", "ncclRecv")):
        line.recording.range(text, 20_000 + 10 * place, 20_005 + 10 * place, domain=1)
    line.recording.range("ncclGroupEnd", 20_500, 24_000, domain=1)
    line.run(SENDRECV, stream=20)
    line.all(GROUPED)
    assert told(rank_of(export(line.recording)))[0][3] == "nccl_groups"  # three sends: an all-to-all


def test_a_range_names_the_purpose_and_a_module_s_backward_moves_the_other_way(export: Export) -> None:
    line = Line()
    line.within("moe_dispatch forward")
    line.within("moe_combine forward")
    line.within("moe_combine backward")
    line.within("moe_dispatch backward")
    line.within("megatron.core.pipeline_parallel.p2p_communication.P2PCommunicator.recv_forward", stream=24)
    line.within("transformer_engine.AttnFuncWithCPAndKVP2P.forward", stream=28)
    line.run(GEMM)
    assert [row[:3] for row in told(rank_of(export(line.recording)))] == [
        ("ep_dispatch", "dispatch", "fwd"),
        ("ep_combine", "combine", "fwd"),
        ("ep_dispatch", "dispatch", "bwd"),
        ("ep_combine", "combine", "bwd"),
        ("pp_p2p", "p2p", None),
        ("cp", None, None),
    ]


def test_the_range_around_a_kernel_of_every_collective_says_which_it_is(export: Export) -> None:
    line = Line()
    for text in ("nccl:all_reduce", "nccl:_all_gather_base", "nccl:broadcast", "layer"):
        line.within(text, "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096>)")
    assert told(rank_of(export(line.recording))) == [
        ("all_reduce", "all_reduce", None, "nvtx_range", "high"),
        ("other_comm", "all_gather", None, "nvtx_range", "low"),
        ("other_comm", "broadcast", None, "nvtx_range", "low"),
        ("other_comm", None, None, "name", "low"),
    ]


def test_the_innermost_range_that_tells_wins(export: Export) -> None:
    line = Line()
    line.recording.range("moe_dispatch forward", 0, 100_000)
    line.recording.range("attn forward", 1, 99_999)
    line.recording.range("moe_combine backward", 30_000, 40_000)
    line.all(GEMM)
    line.run(SENDRECV, stream=20)  # launched at 21 us
    line.run(FILL, length=0)
    line.run(SENDRECV, stream=20)  # launched at 51 us
    assert [row[:3] for row in told(rank_of(export(line.recording)))] == [
        ("ep_dispatch", "dispatch", "fwd")
    ] * 2


def test_copies_of_nccl_s_copy_engines_are_an_all_to_all_too(export: Export) -> None:
    line = Line()
    line.all(PERMUTE)
    line.recording.range("ncclAlltoAll", 20_000, 24_000, domain=1, registered=True)
    line.recording.copy("p2p", 25_000, 35_000, size_bytes=8, launch_ns=21_000, stream=20, to_device=1)
    line.recording.copy("p2p", 36_000, 38_000, size_bytes=8, launch_ns=30_000, stream=22, to_device=1)
    line.now = 40
    line.all(GROUPED)
    assert kinds(rank_of(export(line.recording))) == ["ep_dispatch", "other_comm"]

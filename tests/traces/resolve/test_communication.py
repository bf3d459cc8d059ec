"""What exchanges and collectives are for, on what evidence, and where evidence is worth nothing."""

from __future__ import annotations

import numpy as np
import pytest

from tests.places import Export
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
from tests.recordings.payloads import collective, init, with_payloads
from traces.intervals import spans
from traces.measure.a2a import dispatcher_of
from traces.resolve.communication import communication_of, stab
from traces.resolve.communicators import Parts, streams_of
from traces.resolve.kinds import resolve_kinds
from traces.resolve.nccl_calls import communicators_in
from traces.resolve.neighbours import launch_order
from traces.resolve.ranges import enclosing_ranges
from traces.resolve.resolution import OPERATIONS, PHASES
from traces.timeline import RankTimeline

ALL_TO_ALL = "ncclDevKernel_AllToAll(ncclDevKernelArgsStorage<(unsigned long)4096>)"


def layer(sendrecv: Laid) -> Laid:
    return lambda line: moe_layer(line, lambda: sendrecv(line))


def ranged(text: str, peers: int) -> Laid:
    """A group with so many peers in a range, on a stream of compute, which tells nothing of it."""

    def run(line: Line) -> None:
        line.recording.range(text, line.now * 1_000, line.now * 1_000 + 4_500)
        line.group(peers, peers, stream=7)

    return run


MOVED = ["ep_dispatch", "ep_combine"]
OPEN, EP = "sendrecv_unresolved", ["ep_dispatch", "ep_dispatch", "ep_combine"]
TURNS: tuple[str | Laid, ...] = (
    *(NORM, ATTENTION, NORM, ROUTER, PERMUTE, on(20), NORM, ATTENTION, NORM, ROUTER, PERMUTE, GROUPED),
    *(on(20), on(20), GROUPED, on(20), UNPERMUTE, UNPERMUTE),
)
"""Attention of one microbatch hides the dispatch of another: only the last has both its neighbours."""
CASES: dict[str, tuple[tuple[str | Laid, ...], list[str], str]] = {
    "groups of as many peers are of experts where they run": (
        (layer(group(4, 4)), NORM), EP, "nccl_groups high",
    ),
    "two each way between permute and experts are of experts": (
        (layer(group(2, 2)),), EP, "neighbours medium",
    ),
    **{
        f"{count} exchanges of two permutes are not three of each": (
            (layer(on(20)), PERMUTE, *more, GROUPED, *more, UNPERMUTE),
            [*EP, *["ep_dispatch"] * len(more), *["ep_combine"] * len(more)],
            "neighbours low",
        )
        for count, more in ((5, [on(20)]), (7, [on(20)] * 2))
    },
    "a range of experts makes no message an all-to-all, and one of a pipeline the reverse": (
        (ROUTER, ranged("moe_dispatch forward", 1), GEMM, ranged("send_forward", 4), GEMM),
        ["pp_p2p", "ep_a2a"], "nccl_groups high",
    ),
    "a range of contexts is one whatever the group": (
        (GEMM, ranged("AttnFuncWithCP", 1), GEMM, ranged("AttnFuncWithCP", 4), GEMM),
        ["cp"] * 2, "nvtx_range high",
    ),
    "one send per group is the pipeline": (
        (layer(group(4, 4)), group(1, 0, 24), group(0, 1, 24), group(1, 1, 24), NORM),
        [*EP, *["pp_p2p"] * 3], "nccl_groups high",
    ),
    "one send each way stays a pipeline between permute and experts": (
        (PERMUTE, group(1, 1), GROUPED), ["pp_p2p"], "nccl_groups high",
    ),
    "an all-to-all beside attention without experts is of contexts": (
        (NORM, GEMM, group(4, 4), ATTENTION, group(4, 4), GEMM, NORM), ["cp"] * 2, "nccl_groups medium",
    ),
    "an all-to-all of a recommender is not of experts": (
        ("void fbgemm_gpu::permute_2D_data_kernel<1>", GEMM, within("nccl:all_to_all"), GEMM) * 3,
        [OPEN] * 3, "name low",
    ),
    "a pipeline that sends both ways in its steady state stays one": (
        (GEMM, group(1, 0), GEMM, group(2, 2), GEMM, group(2, 2), GEMM, group(0, 1)),
        ["pp_p2p"] * 4, "nccl_groups high",
    ),
    "peers without tokens do not make an all-to-all a pipeline": (
        (PERMUTE, group(4, 4), group(1, 1), group(2, 2), GROUPED), ["ep_dispatch"] * 3, "nccl_groups high",
    ),
    "a peer without tokens does not make an exchange of two a pipeline": (
        (PERMUTE, group(2, 2), group(1, 1), group(2, 2), GROUPED), ["ep_dispatch"] * 3, "neighbours medium",
    ),
    "half of them between permute and experts are enough for that": (
        (PERMUTE, group(2, 2), GROUPED, group(1, 1), GEMM),
        MOVED, "neighbours low",
    ),
    "expert traffic between attention and experts is not of contexts": (
        (ATTENTION, FILL, group(4, 4), GROUPED, group(4, 4), FILL, ATTENTION),
        ["ep_dispatch", "ep_combine"], "nccl_groups high",
    ),
    "a ring is of contexts beside attention and elsewhere a pipeline": (
        (GEMM, group(1, 1, 24), ATTENTION, GEMM, group(1, 1, 28), GEMM),
        ["cp", "pp_p2p"], "nccl_groups medium, nccl_groups high",
    ),
    "a stream whose named kernels agree names the others": (
        (within("moe_dispatch forward"), GEMM, on(20), on(21), GEMM),
        ["ep_dispatch", "ep_a2a", OPEN], "nvtx_range high, stream medium, name low",
    ),
    "a stream shared with compute names nothing": (
        (within("moe_dispatch forward", 7), GEMM, on(7), GEMM),
        ["ep_dispatch", OPEN], "nvtx_range high, name low",
    ),
    "a pipeline between layers is not of experts": (
        (*[layer(on(20))] * 3, on(24), NORM), [*EP * 3, OPEN], "neighbours medium, name low",
    ),
    "exchanges of microbatches that take turns are of experts": (
        TURNS * 3, ["ep_dispatch", "ep_a2a", "ep_a2a", "ep_combine"] * 3, "neighbours low",
    ),
    "on a stream that also exchanges between layers only what has both neighbours is": (
        (*TURNS, on(20), NORM) * 3, [OPEN, OPEN, OPEN, "ep_combine", OPEN] * 3, "name low, neighbours low",
    ),
    "a pipeline amid expert work on a stream of its own stays open": (
        (*TURNS, PERMUTE, on(24), NORM) * 3,
        ["ep_dispatch", "ep_a2a", "ep_a2a", "ep_combine", OPEN] * 3, "neighbours low, name low",
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
        ["ep_dispatch", "ep_combine"], "neighbours low",
    ),
}  # fmt: skip


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
        *(("ep_dispatch", "dispatch", "fwd"), ("ep_combine", "combine", "fwd")),
        *(("ep_dispatch", "dispatch", "bwd"), ("ep_combine", "combine", "bwd"), ("pp_p2p", "p2p", None)),
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
    line.recording.range("moe_combine forward", 0, 100_000)
    line.recording.range("attn backward", 1, 99_999)  # of no operation
    line.recording.range("moe_combine backward", 30_000, 40_000)
    line.all(GEMM)
    line.run(SENDRECV, stream=20)  # launched at 21 us
    line.run(FILL, length=0)
    line.run(SENDRECV, stream=20)  # launched at 51 us
    assert [row[:3] for row in told(rank_of(export(line.recording)))] == [
        ("ep_combine", "combine", "bwd")
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


NORM_OF_GRADIENTS = (
    "void multi_tensor_apply_kernel<TensorListMetadata<(int)1>, L2NormFunctor<float, (int)512>>"
)
UNFUSED_ADAM = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<(int)4>, "
    "PointwiseOpScalarListFunctor<float, (int)4, (int)3, (int)0>, std::divides<float>>"
)
REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"


def scattered(stream: int) -> Laid:
    return on(stream, SCATTER)


def gathered(stream: int) -> Laid:
    return on(stream, GATHER)


HYBRID = "void hybrid_ep::dispatch_kernel<8, true, true>(P)"
COLLECTIVES: dict[str, tuple[tuple[str | Laid, ...], list[str], str]] = {
    "collectives beside the optimizer are of data": (
        (NORM_BACKWARD, scattered(24), NORM_BACKWARD, ADAM, gathered(24), NORM, gathered(28), GEMM),
        ["dp_reduce_scatter", "dp_all_gather", "other_comm"], "stream medium, neighbours medium, name low",
    ),
    "of a stream that scatters in forward only those are": (
        (NORM, scattered(24), NORM, gathered(24), NORM, ADAM, gathered(24), NORM),
        ["other_comm", "other_comm", "dp_all_gather"], "name low, neighbours low",
    ),
    **{
        f"an optimizer that is not fused is one{ids}, and a gradient norm is none": (
            (
                *(NORM_BACKWARD, scattered(24), NORM_OF_GRADIENTS, UNFUSED_ADAM, *fill, gathered(28)),
                *(NORM, NORM_OF_GRADIENTS, gathered(32), NORM),
            ),
            ["dp_reduce_scatter", "dp_all_gather", "other_comm"],
            "neighbours medium, name low",
        )
        for ids, fill in (("", ()), (" behind a fill", (FILL,)))
    },
    "gathers and scatters around the permute are of a dispatcher": (
        (*(NORM, ROUTER, gathered(24), gathered(24), PERMUTE, GROUPED, UNPERMUTE, scattered(24)) * 2, NORM),
        ["ep_dispatch", *MOVED] * 2, "neighbours low",
    ),
    "of one layer too": (
        (NORM, ROUTER, gathered(24), PERMUTE, GROUPED, UNPERMUTE, scattered(24), NORM),
        MOVED, "neighbours low",
    ),
    "so is a gather right behind the scatter of the last layer, where backward begins": (
        (NORM, ROUTER, *(gathered(24), PERMUTE, GROUPED, UNPERMUTE, scattered(24)) * 2, NORM_BACKWARD),
        MOVED * 2, "neighbours low",
    ),
    "and those around experts where no kernel permutes": (
        (*(NORM, gathered(24), ROUTER, GROUPED, scattered(24)) * 3, NORM), MOVED * 3, "neighbours low",
    ),
    "a gather of token counts is control where tokens travel by all-to-all": (
        (NORM, ROUTER, gathered(24), PERMUTE, group(4, 4), GROUPED),
        ["ep_control", "ep_dispatch"], "neighbours low, nccl_groups high",
    ),
    "and where HybridEP permutes itself": (
        (NORM, ROUTER, gathered(24), on(20, HYBRID), GROUPED) * 2,
        ["ep_control", "ep_dispatch"] * 2, "neighbours low, name high",
    ),
    "a kernel named all-to-all is of experts where there are some": (
        (ROUTER, on(20, ALL_TO_ALL), PERMUTE, GROUPED, on(20, ALL_TO_ALL), UNPERMUTE) * 3,
        ["ep_a2a", "ep_combine"] * 3, "name high",
    ),
    "beside attention it is of contexts": (
        (ATTENTION, on(20, ALL_TO_ALL), GEMM, ATTENTION, on(20, ALL_TO_ALL), GEMM) * 3,
        ["cp"] * 6, "name medium",
    ),
    "and its name alone settles nothing": (
        (GEMM, on(20, ALL_TO_ALL)) * 6, ["sendrecv_unresolved"] * 6, "name low",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("parts", "expected", "why"), COLLECTIVES.values(), ids=COLLECTIVES.keys())
def test_what_a_collective_is_for(
    export: Export, parts: tuple[str | Laid, ...], expected: list[str], why: str
) -> None:
    """By what was launched beside it, or its stream; `why`: evidence and confidence, in the order met."""
    rank = rank_of(export(laid(*parts).recording))
    rows = told(rank)
    assert [row[0] for row in rows] == expected
    assert ", ".join(dict.fromkeys(" ".join(row[3:]) for row in rows)) == why
    found = dispatcher_of(rank, resolve_kinds(rank), spans((0, 10_000_000)))
    by_gathers = any(kind in MOVED for kind in expected) and why == "neighbours low"
    if not any(kind.startswith("ep_") for kind in expected):
        assert found in ("none", "unknown")
    elif by_gathers:
        assert found == "allgather"
    else:
        assert found == ("hybridep" if "name high" in why and "ep_control" in expected else "alltoall")


def test_gathers_and_scatters_of_a_run_that_is_parallel_over_data_alone_are_data_parallel(
    export: Export,
) -> None:
    line = Line()
    for name in (GATHER, SCATTER, REDUCE):
        line.all(GEMM)
        line.run(name, stream=24)
    line.all(GEMM)
    rank = rank_of(export(line.recording))
    assert kinds(rank) == ["other_comm", "other_comm", "all_reduce"]
    found = resolve_kinds(rank, only_data_parallel=True)
    assert [(row[0], *row[3:]) for row in told(rank, found)] == [
        ("dp_all_gather", "configuration", "high"),
        ("dp_reduce_scatter", "configuration", "high"),
        ("all_reduce", "name", "high"),
    ]


def test_what_the_trace_says_outweighs_the_configuration(export: Export) -> None:
    line = Line()
    line.within("megatron.core.tensor_parallel.layers.forward", GATHER)
    line.all(GEMM)
    rank = rank_of(export(line.recording))
    ((kind, *_),) = told(rank, resolve_kinds(rank, only_data_parallel=True))
    assert kind == "tp"


def test_gathers_that_nothing_settles_say_what_would(export: Export) -> None:
    line = Line()
    for _ in range(2):
        line.all(GEMM)
        line.run(GATHER, stream=24)
    line.all(GEMM)
    (open_,) = resolve_kinds(rank_of(export(line.recording))).unresolved
    assert (open_.kind, open_.stream_id, open_.kernel_count, open_.work_ns) == ("other_comm", 24, 2, 20_000)
    assert "--config" in open_.cure


@pytest.mark.parametrize(
    ("name", "operation", "phase"),
    [
        ("void deep_ep::internode::dispatch<(bool)0, (int)2, (bool)0, (int)8>(int4 *)", "dispatch", "fwd"),
        ("void deep_ep::internode::dispatch<(bool)0, (int)2, (bool)1, (int)8>(int4 *)", "dispatch", "bwd"),
        ("void hybrid_ep::dispatch_kernel<(int)8, (bool)1, (bool)1>(P)", "dispatch", "fwd"),
        ("void hybrid_ep::dispatch_kernel<8, true, false>(P)", "dispatch", "bwd"),
        ("void hybrid_ep::combine_kernel<(int)8, (bool)0>(P)", "combine", "fwd"),
        ("void hybrid_ep::combine_kernel<8, true>(P)", "combine", "bwd"),
        ("void deep_ep::intranode::notify_dispatch<(int)8>(int *)", "notify", "fwd"),
        ("void deep_ep::intranode::cached_notify_dispatch<(int)8>(int *)", "notify", "bwd"),
        ("void hybrid_ep::device_sync_kernel<(int)8>(P)", "sync", None),
    ],
)
def test_names_of_fused_dispatchers_give_operation_and_phase(
    export: Export, name: str, operation: str, phase: str | None
) -> None:
    line = Line()
    line.run(name, stream=20)
    line.all(GEMM)
    ((kind, found, when, why, sure),) = told(rank_of(export(line.recording)))
    assert (found, when, why, sure) == (operation, phase, "name", "high")
    assert kind == {"dispatch": "ep_dispatch", "combine": "ep_combine"}.get(operation, "ep_control")


CAST = "transformer_engine::quantize_kernel"
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


def test_threads_have_their_own_ranges(export: Export) -> None:
    """The range of one thread stands around the launch of another, and says nothing of it."""
    line = Line()
    line.all(ROUTER, GEMM)
    begin = line.now * 1_000
    line.recording.range("moe_dispatch forward", begin, begin + 4_500, tid=1001)
    line.run(SENDRECV, stream=20)
    line.run(GEMM, tid=1001)
    assert kinds(rank_of(export(line.recording))) == ["sendrecv_unresolved"]


@pytest.mark.parametrize(
    ("text", "operation", "phase"),
    [
        ("moe_dispatch forward", "dispatch", "fwd"), ("moe_dispatch backward", "combine", "bwd"),
        ("moe_combine backward", "dispatch", "bwd"), ("moe_combine", "combine", None),
        ("backward", None, "bwd"), ("forward backward", None, None),
        ("CheckpointFunctionBackward", None, None),
    ],
)  # fmt: skip
def test_what_a_module_moves_goes_the_other_way_in_its_backward(
    export: Export, text: str, operation: str | None, phase: str | None
) -> None:
    line = Line()
    line.within(text, DISPATCH)
    found = enclosing_ranges(communication_of(rank_of(export(line.recording))))
    words = ((found.operation, OPERATIONS), (found.phase, PHASES))
    assert [(*of, None)[int(code[0])] for code, of in words] == [operation, phase]


@pytest.mark.parametrize(
    ("text", "layer", "backward"),
    [
        ("layers.12.mlp", 12, 12), ("layer_99999f", 99_999, 99_999), ("layer_3f-layer_99999b", 3, 99_999),
        ("layer_3f-layer_100000b", 3, 3), ("layers.100000", -1, -1), ("player 3", -1, -1),
    ],
)  # fmt: skip
def test_a_layer_is_named_by_up_to_five_digits(export: Export, text: str, layer: int, backward: int) -> None:
    line = Line()
    line.within(text, DISPATCH)
    found = enclosing_ranges(communication_of(rank_of(export(line.recording))))
    assert (found.layer.tolist(), found.layer_backward.tolist()) == ([layer], [backward])


AROUND = (NORM, ROUTER, gathered(24), PERMUTE, GROUPED, UNPERMUTE, scattered(24))
ALONE = (NORM, on(20), NORM)
"""An exchange as of a pipeline: it is nothing by itself, and has what its stream is."""
KINDS: list[tuple[tuple[str | Laid, ...], list[str]]] = [
    # gathers around the permute are a dispatcher's, while no exchange is open
    ((*AROUND, NORM, *AROUND, NORM), MOVED * 2),
    ((*(*AROUND, NORM, on(30), NORM) * 2,), ["other_comm", "other_comm", OPEN] * 2),
    # nine tenths of their stream stand there: 18 of 20 and not 18 of 21
    ((*AROUND * 9, NORM), MOVED * 9),
    ((*AROUND * 9, *(NORM, GEMM, gathered(24)) * 2, NORM), [*MOVED * 9, *["other_comm"] * 2]),
    ((*AROUND * 9, *(NORM, GEMM, gathered(24)) * 3, NORM), ["other_comm"] * 21),
    # neither gathers alone nor scatters alone are, nor both on a stream of compute
    ((*(NORM, ROUTER, gathered(24), PERMUTE, GROUPED, UNPERMUTE) * 2, NORM), ["other_comm"] * 2),
    ((*(NORM, ROUTER, scattered(24), PERMUTE, GROUPED, UNPERMUTE) * 2, NORM), ["other_comm"] * 2),
    ((*(NORM, ROUTER, GATHER, PERMUTE, GROUPED, UNPERMUTE, SCATTER) * 2, NORM), ["other_comm"] * 4),
    # fills and casts stand between anything, and a norm parts it
    ((PERMUTE, on(20), GROUPED), ["ep_dispatch"]),
    ((PERMUTE, FILL, CAST, on(20), FILL, CAST, GROUPED), ["ep_dispatch"]),
    ((PERMUTE, NORM, on(20), NORM, GROUPED), [OPEN]),
    # an exchange needs expert work on both sides
    ((NORM, ROUTER, on(20), GROUPED, *ALONE), ["ep_dispatch", "ep_a2a"]),
    ((NORM, PERMUTE, on(20), GEMM, *ALONE), ["ep_dispatch", "ep_a2a"]),
    ((NORM, GEMM, on(20), UNPERMUTE, *ALONE), ["ep_combine", "ep_a2a"]),
    ((NORM, ATTENTION, on(20), GROUPED, *ALONE), [OPEN] * 2),
    ((NORM, ROUTER, on(20), GEMM, *ALONE), [OPEN] * 2),
    ((NORM, GROUPED, on(20), GEMM, *ALONE), [OPEN] * 2),
    ((NORM, PERMUTE, on(20), UNPERMUTE, *ALONE), [OPEN] * 2),
]


@pytest.mark.parametrize(("parts", "expected"), KINDS)
def test_work_around_what_moves_says_what_it_is(
    export: Export, parts: tuple[str | Laid, ...], expected: list[str]
) -> None:
    assert kinds(rank_of(export(laid(*parts).recording))) == expected


NOTIFY, CACHED = (
    f"void deep_ep::intranode::{one}_dispatch<(int)8>(int *)" for one in ("notify", "cached_notify")
)
BY_PHASE: list[tuple[tuple[str | Laid, ...], list[str | None]]] = [
    # a dispatch has the phase of its notify
    (
        (on(20, NOTIFY), on(20, DISPATCH), GEMM, on(20, CACHED), on(20, DISPATCH), GEMM),
        ["fwd", "fwd", "bwd", "bwd"],
    ),
    # a name tells it before a range does, and that before a notify
    ((within("moe backward", name=HYBRID), within("moe backward", name=DISPATCH)), ["fwd", "bwd"]),
    ((on(20, CACHED), within("moe forward", name=DISPATCH)), ["bwd", "fwd"]),
    # the side to which an exchange belongs: of a dispatch what comes next, of a combine what came before
    ((GROUPED, NORM, on(20, DISPATCH), NORM_BACKWARD), ["bwd"]),
    ((GROUPED, NORM_BACKWARD, on(20, DISPATCH), NORM), ["fwd"]),
    ((GROUPED, NORM, on(20, COMBINE), NORM_BACKWARD), ["fwd"]),
    ((GROUPED, NORM_BACKWARD, on(20, COMBINE), NORM), ["bwd"]),
    ((GROUPED, NORM, on(20, ALL_TO_ALL), NORM), ["fwd"]),
    ((GROUPED, NORM, on(20, ALL_TO_ALL), NORM_BACKWARD), [None]),  # neighbours that disagree
    # a range that names one, not both, and of a checkpoint what runs forward again
    ((within("moe_dispatch forward"), GEMM), ["fwd"]),
    ((within("dispatch(F)"), GEMM), ["fwd"]),
    ((within("combine(W)"), GEMM), ["bwd"]),
    ((within("moe_dispatch forward of backward"), GEMM), [None]),
    ((within("moe_dispatch MulBackward0"), GEMM), ["bwd"]),
    ((within("moe_dispatch CheckpointFunctionBackward"), GEMM), [None]),  # which runs forward again
]


@pytest.mark.parametrize(("parts", "phases"), BY_PHASE)
def test_the_phase_is_told_by_name_then_range_then_notify_then_neighbours(
    export: Export, parts: tuple[str | Laid, ...], phases: list[str | None]
) -> None:
    assert [row[2] for row in told(rank_of(export(laid(*parts).recording)))] == phases


def test_of_what_autograds_thread_launches_only_what_nothing_else_tells_is_backward(export: Export) -> None:
    line = Line()
    for name in (DISPATCH, HYBRID):
        line.run(name, 20, tid=1001)
    rank = rank_of(export(line.recording))
    rank.columns.thread_names[line.recording.global_id(1000, 1001)] = "pt_autograd_0"
    assert [row[2] for row in told(rank)] == ["bwd", "fwd"]


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


def test_parts_that_other_work_shares_agree_where_that_is_asked() -> None:
    parts, among = Parts(np.array([0, 1, 1]), np.array([7, 9]), np.array([True, False])), np.ones(3, np.bool_)
    assert parts.agreed(np.array([2, 3, -1]), among).tolist() == [2, -1, -1]
    assert parts.agreed(np.array([2, 3, -1]), among, shared=True).tolist() == [2, 3, 3]


def test_a_stream_of_one_communicator_is_its_own_however_many_there_are(export: Export) -> None:
    comm = communication_of(rank_of(export(laid(GEMM, on(20), on(20), on(24), on(24)).recording)))
    assert streams_of(comm, np.array([9, 9, 9, 8])).own.tolist() == [True, False]
    assert streams_of(comm, np.array([-1, 9, -1, -1])).own.tolist() == [True, True]


def test_a_ring_that_only_receives_exchanges_with_a_neighbour(export: Export) -> None:
    rows = told(rank_of(export(laid(GEMM, group(0, 1, 24), ATTENTION).recording)))
    assert [row[:2] for row in rows] == [("cp", "p2p")]


def test_the_innermost_of_nested_intervals_holds_its_start_and_not_its_end() -> None:
    start, end = np.array([0, 2, 2, 6]), np.array([10, 8, 4, 7])
    found = stab(start, end, np.arange(-1, 11))
    assert found.tolist() == [-1, 0, 0, 2, 2, 1, 1, 3, 1, 0, 0, -1]
    assert stab(start[:0], end[:0], np.array([1])).tolist() == [-1]


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

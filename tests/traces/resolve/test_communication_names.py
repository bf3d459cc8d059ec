"""Collectives and fused dispatchers: what they are for, their operation and phase."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

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
    UNPERMUTE,
    Line,
    kinds,
    rank_of,
    told,
)
from traces.intervals import spans
from traces.measure.a2a import dispatcher_of
from traces.resolve.kinds import resolve_kinds

NORM_OF_GRADIENTS = (
    "void multi_tensor_apply_kernel<TensorListMetadata<(int)1>, L2NormFunctor<float, (int)512>>"
)
UNFUSED_ADAM = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<(int)4>, "
    "PointwiseOpScalarListFunctor<float, (int)4, (int)3, (int)0>, std::divides<float>>"
)
REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
ALL_TO_ALL = "ncclDevKernel_AllToAll(ncclDevKernelArgsStorage<(unsigned long)4096>)"
Export = Callable[..., Path]


def test_collectives_beside_the_optimizer_are_data_parallel(export: Export) -> None:
    line = Line()
    line.all(NORM_BACKWARD)
    line.run(SCATTER, stream=24)
    line.all(NORM_BACKWARD, ADAM)
    line.run(GATHER, stream=24)
    line.all(NORM)
    line.run(GATHER, stream=28)
    line.all(GEMM)
    assert [(row[0], row[3]) for row in told(rank_of(export(line.recording)))] == [
        ("dp_reduce_scatter", "stream"),
        ("dp_all_gather", "neighbours"),
        ("other_comm", "name"),
    ]


def test_of_a_stream_that_scatters_in_forward_only_what_stands_beside_the_optimizer_is_data_parallel(
    export: Export,
) -> None:
    line = Line()
    line.all(NORM)
    line.run(SCATTER, stream=24)
    line.all(NORM)
    line.run(GATHER, stream=24)
    line.all(NORM, ADAM)
    line.run(GATHER, stream=24)
    line.all(NORM)
    assert [(row[0], row[4]) for row in told(rank_of(export(line.recording)))] == [
        ("other_comm", "low"),
        ("other_comm", "low"),
        ("dp_all_gather", "low"),
    ]


@pytest.mark.parametrize("between", ["", FILL])
def test_an_optimizer_that_is_not_fused_is_one_and_a_gradient_norm_is_none(
    export: Export, between: str
) -> None:
    line = Line()
    line.all(NORM_BACKWARD)
    line.run(SCATTER, stream=24)
    line.all(NORM_OF_GRADIENTS, UNFUSED_ADAM, *([between] if between else []))
    line.run(GATHER, stream=28)
    line.all(NORM, NORM_OF_GRADIENTS)
    line.run(GATHER, stream=32)
    line.all(NORM)
    assert kinds(rank_of(export(line.recording))) == ["dp_reduce_scatter", "dp_all_gather", "other_comm"]


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


def test_gathers_and_scatters_around_the_permute_are_a_dispatcher_where_nothing_else_is(
    export: Export,
) -> None:
    line = Line()
    for _ in range(2):
        line.all(NORM, ROUTER)
        line.run(GATHER, stream=24)
        line.run(GATHER, stream=24)
        line.all(PERMUTE, GROUPED, UNPERMUTE)
        line.run(SCATTER, stream=24)
    line.all(NORM)
    rank = rank_of(export(line.recording))
    assert kinds(rank) == ["ep_dispatch", "ep_dispatch", "ep_combine"] * 2
    assert dispatcher_of(rank, resolve_kinds(rank), spans((0, 10_000_000))) == "allgather"


def test_a_gather_right_behind_the_scatter_of_the_last_layer_is_the_dispatchers_too(export: Export) -> None:
    line = Line()
    for forward in (True, False):  # backward begins in the layer that ended forward
        line.all(*((NORM, ROUTER) if forward else ()))
        line.run(GATHER, stream=24)
        line.all(PERMUTE, GROUPED, UNPERMUTE)
        line.run(SCATTER, stream=24)
    line.all(NORM_BACKWARD)
    assert kinds(rank_of(export(line.recording))) == ["ep_dispatch", "ep_combine"] * 2


def test_gathers_and_scatters_around_experts_are_a_dispatcher_where_no_kernel_permutes(
    export: Export,
) -> None:
    line = Line()
    for _ in range(3):
        line.all(NORM)
        line.run(GATHER, stream=24)
        line.all(ROUTER, GROUPED)
        line.run(SCATTER, stream=24)
    line.all(NORM)
    assert kinds(rank_of(export(line.recording))) == ["ep_dispatch", "ep_combine"] * 3


@pytest.mark.parametrize(
    ("around", "expected"),
    [
        ((ROUTER, PERMUTE, GROUPED, UNPERMUTE), {"ep_a2a", "ep_combine"}),
        ((ATTENTION, GEMM, ATTENTION, GEMM), {"cp"}),
        ((GEMM, GEMM, GEMM, GEMM), {"sendrecv_unresolved"}),
    ],
)
def test_a_kernel_named_all_to_all_is_of_experts_where_there_are_some_and_never_by_its_name_alone(
    export: Export, around: tuple[str, ...], expected: set[str]
) -> None:
    line = Line()
    before, *inside, after = around
    for _ in range(3):
        line.all(before)
        line.run(ALL_TO_ALL, stream=20)
        line.all(*inside)
        line.run(ALL_TO_ALL, stream=20)
        line.all(after)
    assert set(kinds(rank_of(export(line.recording)))) == expected


def test_a_gather_of_token_counts_is_control_where_tokens_travel_by_all_to_all(export: Export) -> None:
    line = Line()
    line.all(NORM, ROUTER)
    line.run(GATHER, stream=24)
    line.all(PERMUTE)
    line.group(4, 4)
    line.all(GROUPED)
    rank = rank_of(export(line.recording))
    assert [row[:2] for row in told(rank)] == [("ep_control", "notify"), ("ep_dispatch", "dispatch")]
    assert dispatcher_of(rank, resolve_kinds(rank), spans((0, 10_000_000))) == "alltoall"


def test_a_gather_of_token_counts_is_control_where_hybridep_permutes_itself(export: Export) -> None:
    line = Line()
    for _ in range(2):
        line.all(NORM, ROUTER)
        line.run(GATHER, stream=24)
        line.run("void hybrid_ep::dispatch_kernel<8, true, true>(P)", stream=20)
        line.all(GROUPED)
    assert kinds(rank_of(export(line.recording))) == ["ep_control", "ep_dispatch"] * 2


@pytest.mark.parametrize(
    ("name", "operation", "phase"),
    [
        ("void deep_ep::internode::dispatch<(bool)0, (int)2, (bool)0, (int)8>(int4 *)", "dispatch", "fwd"),
        ("void deep_ep::internode::dispatch<(bool)0, (int)2, (bool)1, (int)8>(int4 *)", "dispatch", "bwd"),
        ("void deep_ep::internode::dispatch<false, 2, true, 8>(int4*)", "dispatch", "bwd"),
        ("void hybrid_ep::dispatch_kernel<(int)8, (bool)1, (bool)1>(P)", "dispatch", "fwd"),
        ("void hybrid_ep::dispatch_kernel<8, true, false>(P)", "dispatch", "bwd"),
        ("void hybrid_ep::combine_kernel<(int)8, (bool)0>(P)", "combine", "fwd"),
        ("void hybrid_ep::combine_kernel<8, true>(P)", "combine", "bwd"),
        ("void deep_ep::intranode::notify_dispatch<(int)8>(int *)", "notify", "fwd"),
        ("void deep_ep::intranode::cached_notify_dispatch<(int)8>(int *)", "notify", "bwd"),
        ("void hybrid_ep::device_sync_kernel<(int)8>(P)", "sync", None),
        ("void deep_ep::intranode::dispatch<(int)8>(int4 *)", "dispatch", None),
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


def test_a_dispatch_has_the_phase_of_its_notify(export: Export) -> None:
    line = Line()
    for notify in ("notify_dispatch", "cached_notify_dispatch"):
        line.run(f"void deep_ep::intranode::{notify}<(int)8>(int *)", stream=20)
        line.run("void deep_ep::intranode::dispatch<(int)8>(int4 *)", stream=20)
        line.all(GEMM)
    assert [row[2] for row in told(rank_of(export(line.recording)))] == ["fwd", "fwd", "bwd", "bwd"]

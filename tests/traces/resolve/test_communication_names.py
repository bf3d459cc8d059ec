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
    Laid,
    Line,
    group,
    kinds,
    laid,
    on,
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


def scattered(stream: int) -> Laid:
    return on(stream, SCATTER)


def gathered(stream: int) -> Laid:
    return on(stream, GATHER)


EP, HYBRID = ["ep_dispatch", "ep_combine"], "void hybrid_ep::dispatch_kernel<8, true, true>(P)"
CASES: dict[str, tuple[tuple[str | Laid, ...], list[str], str]] = {
    "collectives beside the optimizer are of data": (
        (NORM_BACKWARD, scattered(24), NORM_BACKWARD, ADAM, gathered(24), NORM, gathered(28), GEMM),
        ["dp_reduce_scatter", "dp_all_gather", "other_comm"],
        "stream medium, neighbours medium, name low",
    ),
    "of a stream that scatters in forward only those are": (
        (NORM, scattered(24), NORM, gathered(24), NORM, ADAM, gathered(24), NORM),
        ["other_comm", "other_comm", "dp_all_gather"],
        "name low, neighbours low",
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
        ["ep_dispatch", *EP] * 2,
        "neighbours low",
    ),
    "of one layer too": (
        (NORM, ROUTER, gathered(24), PERMUTE, GROUPED, UNPERMUTE, scattered(24), NORM),
        EP,
        "neighbours low",
    ),
    "so is a gather right behind the scatter of the last layer, where backward begins": (
        (NORM, ROUTER, *(gathered(24), PERMUTE, GROUPED, UNPERMUTE, scattered(24)) * 2, NORM_BACKWARD),
        EP * 2,
        "neighbours low",
    ),
    "and those around experts where no kernel permutes": (
        (*(NORM, gathered(24), ROUTER, GROUPED, scattered(24)) * 3, NORM),
        EP * 3,
        "neighbours low",
    ),
    "a gather of token counts is control where tokens travel by all-to-all": (
        (NORM, ROUTER, gathered(24), PERMUTE, group(4, 4), GROUPED),
        ["ep_control", "ep_dispatch"],
        "neighbours low, nccl_groups high",
    ),
    "and where HybridEP permutes itself": (
        (NORM, ROUTER, gathered(24), on(20, HYBRID), GROUPED) * 2,
        ["ep_control", "ep_dispatch"] * 2,
        "neighbours low, name high",
    ),
    "a kernel named all-to-all is of experts where there are some": (
        (ROUTER, on(20, ALL_TO_ALL), PERMUTE, GROUPED, on(20, ALL_TO_ALL), UNPERMUTE) * 3,
        ["ep_a2a", "ep_combine"] * 3,
        "name high",
    ),
    "beside attention it is of contexts": (
        (ATTENTION, on(20, ALL_TO_ALL), GEMM, ATTENTION, on(20, ALL_TO_ALL), GEMM) * 3,
        ["cp"] * 6,
        "name medium",
    ),
    "and its name alone settles nothing": (
        (GEMM, on(20, ALL_TO_ALL)) * 6,
        ["sendrecv_unresolved"] * 6,
        "name low",
    ),
}


@pytest.mark.parametrize(("parts", "expected", "why"), CASES.values(), ids=CASES.keys())
def test_what_a_collective_is_for(
    export: Export, parts: tuple[str | Laid, ...], expected: list[str], why: str
) -> None:
    """By what was launched beside it, or its stream; `why`: evidence and confidence, in the order met."""
    rank = rank_of(export(laid(*parts).recording))
    rows = told(rank)
    assert [row[0] for row in rows] == expected
    assert ", ".join(dict.fromkeys(" ".join(row[3:]) for row in rows)) == why
    found = dispatcher_of(rank, resolve_kinds(rank), spans((0, 10_000_000)))
    by_gathers = any(kind in EP for kind in expected) and why == "neighbours low"
    if not any(kind.startswith("ep_") for kind in expected):
        assert found in ("none", "unknown")
    else:
        assert found == (
            "allgather"
            if by_gathers
            else "hybridep"
            if "name high" in why and "ep_control" in expected
            else "alltoall"
        )


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


def test_a_dispatch_has_the_phase_of_its_notify(export: Export) -> None:
    line = Line()
    for notify in ("notify_dispatch", "cached_notify_dispatch"):
        line.run(f"void deep_ep::intranode::{notify}<(int)8>(int *)", stream=20)
        line.run("void deep_ep::intranode::dispatch<(int)8>(int4 *)", stream=20)
        line.all(GEMM)
    assert [row[2] for row in told(rank_of(export(line.recording)))] == ["fwd", "fwd", "bwd", "bwd"]

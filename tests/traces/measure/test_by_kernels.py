"""What kernels tell by name, launch and place: unknown ones apart, formats, graphs, tensor cores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.by_hand.run import Run
from traces.columns import Gpu
from traces.intervals import spans
from traces.measure.tensor_cores import has_half, has_tf32, measure_tensor_cores, tensor_frac, wide_places
from traces.measurements import measure_rank
from traces.missing import Missing, known
from traces.steps.selection import parse_selection

SGEMM, TF32 = "ampere_sgemm_128x64_tn", "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize32x32x8"
FP8 = "nvjet_qqtst_128x256_128x6_2x1_v_bz_TNT"


def exchanging(
    *,
    waits: int = 4,
    start: int = 60,
    awaited: bool = True,
    stream: int = 20,
    name: str = "exchange_kernel",
    gpus: int = 1,
    beside: Callable[[Run], object] = lambda step: None,
) -> Run:
    """Four steps of 100 us: a GEMM of 60, then a kernel of unknown class for 30 that compute waits for.

    It waits for the GEMM in so many of them.
    """
    run = Run()
    for _ in range(gpus):
        run.recording.gpu()
    for place, step in enumerate(run.steps(4, every=100)):
        step.work("gemm", 0, 60)
        if place < waits:
            step.wait(7, by=stream, recorded=-7, waits=-5)
        step.work(name, start, start + 30, stream=stream)
        if awaited:
            step.wait(stream, by=7, recorded=53, waits=56)
        beside(step)
    return run


def after_all_reduce(step: Run) -> None:
    step.work("all_reduce", 0, 60, stream=24)
    step.wait(24, by=20, recorded=-7, waits=-5)


@pytest.mark.parametrize(
    ("run", "alone_us", "apart_us"),
    [
        (exchanging(), 30, 30),
        (exchanging(waits=2, start=66, beside=lambda step: step.work("norm", 97, 99)), 30, 30),
        (exchanging(waits=1, start=66, beside=lambda step: step.work("norm", 97, 99)), 30, 0),
        (exchanging(waits=0, start=66, beside=lambda step: after_all_reduce(step)), 30, 0),
        (exchanging(awaited=False), 30, 0),
        (exchanging(stream=7), 30, 0),
        (exchanging(beside=lambda step: step.work("gemm", 60, 75, stream=8)), 15, 15),
        (exchanging(beside=lambda step: step.work("gemm", 60, 76, stream=8)), 14, 0),
        (exchanging(beside=lambda step: step.work("permute", 90, 93, stream=20)), 30, 30),
        (exchanging(beside=lambda step: step.work("permute", 90, 94, stream=20)), 30, 0),
        (exchanging(beside=lambda step: step.work("all_reduce", 60, 90, stream=24)), 30, 30),
        (exchanging(name="halo", gpus=2), 30, 30),
    ],
    ids=[
        "on a stream of its own", "it waits in every second step",
        "it rarely waits", "it waits for communication", "nothing waits for it",
        "on the stream of compute", "half of it hidden",
        "more than half of it hidden", "a tenth of its stream is known", "more of its stream is known",
        "beside communication", "beside another GPU",
    ],
)  # fmt: skip
def test_unknown_kernels_are_probably_communication_where_streams_and_waits_say_so(
    run: Run, alone_us: int, apart_us: int
) -> None:
    found = run.measured().unnamed
    assert (found.alone_ns, found.apart_ns) == (4_000 * alone_us, 4_000 * apart_us)
    (kernel,) = found.kernels
    assert (kernel.count, kernel.mean_ns, kernel.busy_ns, kernel.per_step_ns) == (4, 30_000, 120_000, 30_000)
    assert kernel.finding is False
    assert kernel.probably_communication is (apart_us > 0)


@pytest.mark.parametrize(
    ("gpus", "world_size", "beside", "call", "process", "apart"),
    [
        *((1, None, "memset", "free", 0, False), (1, None, "all_reduce", "free", 0, True)),
        *((1, 2, "memset", "free", 0, True), (1, 1, "all_reduce", "free", 0, False)),
        *((2, None, "memset", "free", 0, False), (2, None, "memset", "cuIpcOpenMemHandle", 0, True)),
        (2, None, "memset", "free", 1, True),
    ],
)
def test_who_is_alone_in_the_world_on_the_machine_or_by_its_calls_exchanges_with_nobody(
    gpus: int, world_size: int | None, beside: str, call: str, process: int, apart: bool
) -> None:
    run = exchanging(name="halo", gpus=gpus, beside=lambda step: step.work(beside, 60, 90, stream=24))
    run.call("malloc", -40, -30)
    run.process(process, device=0).call(call, -30, -25)
    run.process(process, device=process).work("gemm", 400, 401)
    rank = run.rank()
    rank = replace(rank, columns=replace(rank.columns, world_size=world_size))
    assert (measure_rank(rank, parse_selection()).unnamed.apart_ns > 0) is apart


def test_a_stream_of_unknown_kernels_that_holds_nearly_all_compute_is_the_models() -> None:
    for known_us, apart in ((7, True), (6, False)):
        run = Run()
        for step in run.steps(3, every=100):
            step.work("gemm", 0, known_us)
            step.wait(7, by=20, recorded=-7, waits=-5)
            step.work("exchange_kernel", 20, 80, stream=20)
            step.wait(20, by=7, recorded=13, waits=16)
        assert (run.measured().unnamed.apart_ns > 0) is apart


def test_unknown_kernels_are_listed_by_their_time_in_the_window_with_the_grid_of_most() -> None:
    run = Run()
    for place, (name, blocks) in enumerate((("one", 8), ("one", 16), ("one", 16), ("two", 8), ("early", 8))):
        run.work(name, 100 * place, 100 * place + (30 if name == "one" else 95), blocks=blocks)
    run.recording.rows["CUPTI_ACTIVITY_KIND_KERNEL"][-2]["gridX"] = -1
    found = run.measured(window=(10, 400.001)).unnamed.kernels
    assert [(one.name, one.count, one.busy_ns, one.mean_ns, known(one.grid)) for one in found] == [
        ("two", 1, 95_000, 95_000, None),
        ("one", 3, 80_000, 30_000, (16, 1, 1)),  # of the first 20 us lie in the window
        ("early", 1, 1, 95_000, (8, 1, 1)),
    ]
    assert [one.frac for one in found] == [95_000 / 390_001, 80_000 / 390_001, 1 / 390_001]
    assert isinstance(found[0].per_step_ns, Missing)
    steps = exchanging()
    steps.work("another_kernel", 400, 450)  # after the last step
    assert [one.name for one in steps.measured(steps="0:2").unnamed.kernels] == ["exchange_kernel"]


def test_kernels_of_a_graph_share_a_launch_and_copies_are_no_kernel_work() -> None:
    """Of 99 us of kernels 39 are in a graph; one of three is under 10 us; two calls launch them."""
    run = Run()
    number = run.call("graph_launch", -10, -8)
    run.work("gemm", 0, 30, of=number, node=1)
    run.work("norm", 30, 39, of=number, node=2)
    run.work("gemm", 40, 100)
    run.work("h2d", 100, 200)
    run.work("attention", 300, 400)  # outside of the window
    found = run.measured(window=(0, 200)).detected
    assert (found.graph_share_frac, found.short_kernel_frac) == (39 / 99, 1 / 3)
    assert found.kernels_per_launch == 1.5
    whole = Run()
    whole.work("graph", 0, 30)
    whole.work("router", 30, 40)
    whole.work("attention", 50, 120)
    found = whole.measured(window=(0, 120)).detected
    assert (found.graph_share_frac, found.short_kernel_frac) == (30 / 110, 0.0)
    assert found.graph_scopes_frac == {"attn": 0.0, "moe_router": 0.0}


@pytest.mark.parametrize(
    ("lengths", "precision"),
    [
        *(({"gemm": 11, FP8: 10}, "bf16"), ({"gemm": 10, FP8: 10}, "mixed")),
        ({"gemm": 10, "_grouped_gemm_kernel": 10}, "bf16"),
        *(({"gemm": 10, "_grouped_gemm_kernel": 11}, None), ({FP8: 10, "quantize_mxfp8_kernel": 1}, "mxfp8")),
        ({FP8: 10, "quantize_mxfp8_kernel": 1, "block_scaled_cast_transpose_kernel": 1}, "fp8_per_tensor"),
        *(({SGEMM: 20, "gemm": 9}, "fp32"), ({"norm": 10}, None)),
    ],
)
def test_precision_is_that_of_most_of_the_gemm_work_that_tells_it(
    lengths: dict[str, int], precision: str | None
) -> None:
    """What lies outside of the window has no part in it."""
    run, now = Run(), 0
    for name, length in lengths.items():
        run.work(name, now, now + length)
        now += length
    run.work(TF32, now, now + 500)
    found = run.measured(window=(0, now)).detected
    assert known(found.precision) == precision
    told = {name: ns for name, ns in lengths.items() if name in ("gemm", FP8, SGEMM)}
    whole = sum(ns for name, ns in lengths.items() if "gemm" in name or name == FP8)
    assert [*found.precision_shares_frac.values()] == sorted(
        (ns / whole for ns in told.values()), reverse=True
    )


def test_matrix_work_in_wide_formats_counts_by_its_time_in_the_window() -> None:
    """Of 30 us of FP32 20 are inside; a GEMM of 20, attention of 10, and TF32 of 10 in it."""
    run = Run()
    for name, start, end in (
        *((SGEMM, 0, 30), ("gemm", 30, 50), ("attention", 50, 60), (TF32, 60, 70), (SGEMM, 90, 99)),
    ):
        run.work(name, start, end)
    found = run.measured(window=(10, 90)).tensor_cores
    assert (found.gemm_ns, found.simt_ns, found.simt_count) == (50_000, 20_000, 1)
    assert (found.matrix_ns, found.wide_ns, found.wide_count) == (60_000, 30_000, 2)
    assert (found.tf32, found.half, found.peaks_known) == (True, True, True)
    assert found.fp32_to_tf32_frac == 67 / 494.5  # dense TFLOP/s of an H100


@pytest.mark.parametrize(
    ("name", "capability", "tf32", "half"),
    [
        *(("NVIDIA H100 80GB HBM3", "9.0", True, True), (None, "8.0", True, True)),
        *((None, "7.5", False, True), (None, "7.0", False, True), (None, "6.1", False, False)),
        ("NVIDIA GeForce GTX 1660", "7.5", False, False),  # without tensor cores
        ("NVIDIA H100 80GB HBM3", None, None, True),
        (None, None, None, True),  # kernels of TF32 are for 8.0 at least
    ],
)
def test_whether_a_gpu_has_tensor_cores_is_in_its_model_else_in_its_capability_else_in_names(
    name: str | None, capability: str | None, tf32: bool | None, half: bool | None
) -> None:
    run = Run()
    run.work(TF32 if capability is None else SGEMM, 0, 10)
    gpu = Gpu(0, 0, name, 132, capability, None)
    assert (has_tf32(gpu), has_half(run.rank(), gpu)) == (tf32, half)
    wide = wide_places(run.rank(), gpu)
    assert bool(wide) is (half is True and tensor_frac(gpu) is None)
    said = measure_tensor_cores(run.rank(), spans((0, 10_000)), gpu).fp32_to_tf32_frac
    assert (said is None, isinstance(said, float)) == (tf32 is False, tensor_frac(gpu) is not None)


def test_without_a_gpu_or_a_name_nothing_tells_of_tensor_cores() -> None:
    run = Run()
    run.work("maxwell_sgemm_128x64_tn", 0, 10)  # of a name that speaks of no capability
    rank = run.rank()
    assert (has_tf32(None), has_half(rank, None), tensor_frac(None)) == (None, None, None)
    (wide,) = wide_places(rank, None)
    assert (wide.frac, wide.exact) == (1.0, False)
    gpu = Gpu(0, 0, "NVIDIA H100 80GB HBM3", 132, "9.0", None)
    assert has_half(rank, replace(gpu, capability=None))  # by its model
    assert tensor_frac(replace(gpu, capability="7.5")) is None
    assert tensor_frac(replace(gpu, name="NVIDIA GeForce RTX 4090")) is None  # which is no faster in TF32


@pytest.mark.parametrize("name", ["d2h", "memset", "all_reduce", "graph"])
def test_what_is_no_kernel_of_unknown_class_is_never_held_apart(name: str) -> None:
    found = exchanging(name=name).measured().unnamed
    assert (found.alone_ns, found.apart_ns, found.apart.size, found.kernels) == (0, 0, 0, ())


def test_matrix_work_takes_in_16_bits_what_rates_say_of_the_gpu_or_of_those_that_it_can_be() -> None:
    """Dense TFLOP/s of TF32 and BF16 of an H100, which has 132 SMs; one of 8.0 can only be an A100."""
    run = Run()
    run.work(TF32, 0, 10)
    run.work(SGEMM, 10, 20)
    h100, v100, wide_of_h100 = "NVIDIA H100 80GB HBM3", "Tesla V100-SXM2-32GB", [494.5 / 989.5, 67 / 989.5]
    for name, capability, fracs in (
        *((h100, None, wide_of_h100), (None, None, wide_of_h100), (None, "8.0", [0.5, 1 / 16])),
    ):
        wide = wide_places(run.rank(), Gpu(0, 0, name, 132, capability, None))
        assert [one.frac for one in wide] == pytest.approx(fracs)
        assert [one.exact for one in wide] == [bool(name)] * 2
    some_known = Gpu(0, 0, v100, 80, "7.0", None)  # its rate of FP32, and it has no TF32
    assert not measure_tensor_cores(run.rank(), spans((0, 20_000)), some_known).peaks_known

"""Rates of products, copies and collectives, by runs with round numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import diagnoser
from tests.by_hand.run import Run
from tests.recordings.kineto import GEMM, Event, call, event, on_gpu, write
from tests.recordings.launches import rank_of
from traces.intervals import spans
from traces.measure.rates import measure_rates
from traces.missing import Missing, known
from traces.ranks.summaries.collective_rates import bus_share

H100 = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9, "computeMinor": 0, "numSms": 132}
BF16 = "c10::BFloat16"


def product(at: int, number: int, m: int, k: int, n: int, name: str = "aten::mm") -> list[Event]:
    """An operator of 20 us, in it the launch of a GEMM that runs for 100 us."""
    args = {"Input Dims": [[m, k], [k, n]], "Input type": [BF16, BF16], "Concrete Inputs": ["", ""]}
    return [
        event("cpu_op", name, at, 20, args=args),
        call("cudaLaunchKernel", at + 5, 5, number),
        on_gpu("kernel", GEMM, at + 30, 100, number),
    ]


def rates_of(path: Path, events: list[Event]) -> dict[str, Any]:
    write(path, events, deviceProperties=[H100])
    (rank,) = diagnoser.analyze(path).to_dict()["ranks"]
    return dict(rank["rates"])


def test_a_product_is_held_against_the_peak_and_the_memory(tmp_path: Path) -> None:
    """1000 x 1000 x 1000 in 100 us: 20 TFLOP/s of 989.5; 6 MB at 3350 GB/s take 1.79 us, 2.02 at peak."""
    found = rates_of(tmp_path / "run.json", product(0, 1, 1000, 1000, 1000))["matrix"]
    (gemm,) = found["classes"]
    assert (gemm["key"], gemm["flop"], gemm["work_ns"]) == ("gemm", 2_000_000_000, 100_000)
    assert gemm["tflops_per_s"] == pytest.approx(20)
    assert gemm["peak_frac"] == pytest.approx(20 / 989.5)
    assert gemm["flop_per_byte"] == pytest.approx(2e9 / 6e6)
    assert (gemm["roof_limit"], gemm["roof_frac"]) == ("peak", pytest.approx(20 / 989.5))
    assert (found["counted_frac"], found["without_shape_count"]) == (1.0, 0)
    assert found["hfu_at_least_frac"] == pytest.approx(20 / 989.5)


def test_a_thin_product_stands_under_the_roof_of_the_memory(tmp_path: Path) -> None:
    """1 x 10000 by 10000 x 3350: 67 MB at 3350 GB/s take 20 of the 100 us."""
    found = rates_of(tmp_path / "run.json", product(0, 1, 1, 10_000, 3_350))["matrix"]
    (gemm,) = found["classes"]
    assert (gemm["roof_limit"], gemm["roof_frac"]) == ("memory", pytest.approx(0.2, rel=0.001))


def test_the_innermost_operator_is_counted_and_kernels_without_one_are_said(tmp_path: Path) -> None:
    events = product(0, 1, 10, 20, 5)
    args = {"Input Dims": [[10, 20], [5, 20], []], "Input type": [BF16, BF16, ""]}
    events.append(event("cpu_op", "aten::linear", -1, 22, args=args))
    longer = on_gpu("kernel", "void at::native::elementwise_kernel<4>(int)", 130, 250, 3)  # no product
    events += [call("cudaLaunchKernel", 12, 2, 3), longer]
    events += product(400, 2, 10, 20, 5, name="my_library::mm")
    found = rates_of(tmp_path / "run.json", events)["matrix"]
    (gemm,) = found["classes"]
    (operator,) = found["operators"]
    assert (operator["operator"], operator["flop"]) == ("aten::mm", 2_000)
    counts, work_ns = (gemm["kernel_count"], gemm["all_kernel_count"]), (gemm["work_ns"], gemm["all_work_ns"])
    assert (counts, work_ns) == ((2, 2), (350_000, 200_000))
    assert (found["counted_frac"], found["without_shape_count"]) == (0.5, 1)
    rank = rank_of(tmp_path / "run.json")
    assert isinstance(measure_rates(rank, spans((50_000, 600_000)), None, ()).matrix, Missing)  # has begun
    first = known(measure_rates(rank, spans((0, 400_000)), None, ()).matrix)
    assert first is not None
    assert (first.counted_frac, first.without_shape_count) == (1.0, 0)


WIDE = 1_518_500_249  # of two such sides there are fewer operations than may be, and more bytes
LARGEST = [[1 << 30, 1 << 30], [1 << 30, 2]]  # as many operations as may be


@pytest.mark.parametrize("dims", [None, [], "mm", [[10, "20"], [20, 5]], [[WIDE, 1], [1, WIDE]], LARGEST])
def test_shapes_that_are_none_or_too_large_give_no_rate(tmp_path: Path, dims: object) -> None:
    events = product(0, 1, 10, 20, 5)
    events[0]["args"]["Input Dims"] = dims
    assert (rates_of(tmp_path / "run.json", events)["matrix"] is None) is (dims != LARGEST)


def test_copies_that_begin_in_the_window_and_take_time_have_their_bytes_over_it_by_kind() -> None:
    run = Run()
    for kind, start, end, size in (
        ("h2d", 0, 10, 300), ("h2d", 20, 20, 7), ("d2h", 30, 70, 80), ("h2d", 90, 110, 300),
        ("d2h", 100, 110, 7),
    ):  # fmt: skip
        run.work(kind, start, end, size_bytes=size * 1_000)
    run.work("gemm", 70, 80)
    copies = run.measured(window=(0, 100)).rates.copies
    assert isinstance(copies, tuple)
    assert [(one.kind, one.count, one.size_bytes, one.work_ns, one.gb_per_s) for one in copies] == [
        ("memcpy_d2h", 1, 80_000, 40_000, 2.0),
        ("memcpy_h2d", 2, 600_000, 30_000, 20.0),
    ]


def test_on_a_gpu_that_is_not_known_a_product_has_a_speed_and_no_roof(tmp_path: Path) -> None:
    path = write(tmp_path / "run.json", product(0, 1, 1000, 1000, 1000))
    (rank,) = diagnoser.analyze(path).to_dict()["ranks"]
    (gemm,) = rank["rates"]["matrix"]["classes"]
    assert (gemm["peak_frac"], gemm["roof_frac"], gemm["roof_limit"]) == (None, None, None)
    assert gemm["tflops_per_s"] == pytest.approx(20)


def test_a_product_of_fp32_counts_in_the_format_of_its_kernel_and_copies_need_their_sizes(
    tmp_path: Path,
) -> None:
    events = product(0, 1, 1000, 1000, 1000)
    events[0]["args"]["Input type"] = ["float", "float"]
    events[2]["name"] = "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize32x32x8"
    copy = on_gpu("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 300, 10, 7)
    found = rates_of(tmp_path / "run.json", [*events, copy])
    assert found["matrix"]["classes"][0]["peak_frac"] == pytest.approx(20 / 494.5)
    assert found["copies"] is None
    assert (found["memory_gb_per_s"], found["link_gb_per_s"]) == (3350.0, 450.0)


def test_what_each_link_carries_follows_nccl_tests() -> None:
    assert bus_share("all_reduce", 8) == 2 * 7 / 8
    assert {bus_share(name, 8) for name in ("all_gather", "reduce_scatter", "all_to_all")} == {7 / 8}
    assert bus_share("broadcast", 8) == 1

"""Model operations and throughput, against every published row that gives both rates."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from typing import Any

import pytest

from tests.configurations.sizes import published, sized, tiny
from tests.places import DATA
from traces.missing import Missing
from traces.settings.settings import Value
from traces.sizes.peaks import peak_precision
from traces.sizes.references import nearest, nearest_references
from traces.sizes.throughput import (
    Throughput,
    flops_per_token,
    grouped_flops_per_step,
    throughput,
)

WITHIN_FRAC = 0.02
ROWS: list[list[Any]] = tomllib.loads((DATA / "published_throughput.toml").read_text())["rows"]


def per_token(model: str, seq_length: int, release: str) -> float:
    """Bridge up to 0.4 counted a gated MLP's third matrix only with SiLU, and sliding windows as if they
    saw everything (flop_utils.py at v0.4.0 and v0.5.0).
    """
    settings = published(model, seq_length=seq_length)
    size = sized(settings)
    if release < "26.06":
        silu = settings.value("activation_func") in (None, "silu")
        size = replace(size, window=None, gated=size.gated and silu)
    return sum(flops_per_token(size).values())


def test_operations_of_a_tiny_model_add_up_by_hand() -> None:
    flops = flops_per_token(sized(tiny()))
    # Six operations for each weight a token passes; attention looks at 10 / 2 tokens, twice, over 8 numbers.
    assert flops["attention"] == 6 * 2 * 4 * 64
    assert flops["core_attention"] == 6 * 2 * (8 + 8) * 5
    assert flops["dense_mlp"] == 6 * 2 * 8 * 16
    assert flops["experts"] == 6 * 2 * 2 * 8 * 5
    assert flops["logits"] == 6 * 800


@pytest.mark.parametrize(
    ("more", "passes"),
    [
        ({}, 3),
        ({"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1}, 4),
        ({"recompute_granularity": "selective", "recompute_modules": ("moe",)}, 4),
        ({"recompute_granularity": "selective", "recompute_modules": ("moe_act",)}, 3),
    ],
)
def test_grouped_products_of_a_gpu_are_those_of_its_tokens_and_layers(
    more: dict[str, Value], passes: int
) -> None:
    """One MoE layer, 10 tokens: each passes two of the experts' two matrices of 8 by 5."""
    assert grouped_flops_per_step(tiny(**more)) == passes * 10 * 2 * (2 * 8 * 5) * 2
    eight = {"world_size": 8, "train.global_batch_size": 8, "expert_model_parallel_size": 4}
    assert grouped_flops_per_step(tiny(**more, **eight)) == passes * 10 * 2 * (2 * 8 * 5) * 2


@pytest.mark.parametrize(
    "more",
    [
        {"world_size": 2, "pipeline_model_parallel_size": 2},  # one stage has the MoE layer, one the dense
        {"recompute_granularity": "full", "recompute_method": "block", "recompute_num_layers": 1},
        {"num_moe_experts": None},
        {"train.global_batch_size": None},
    ],
)
def test_grouped_products_are_not_told_where_gpus_differ_or_sizes_are_missing(more: dict[str, Value]) -> None:
    assert grouped_flops_per_step(tiny(**more)) is None


def test_a_window_that_sees_two_of_ten_tokens_counts_what_it_sees() -> None:
    full = flops_per_token(sized(tiny()))["core_attention"]
    seen = flops_per_token(sized(tiny(window_size=2)))["core_attention"]
    # 1 + 9 x 2 = 19 pairs over 10 tokens; full attention is counted as 50.
    assert seen / full == pytest.approx(19 / 50)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(map(str, row[:5])))
def test_model_operations_agree_with_published_rows(row: list[Any]) -> None:
    release, model, _, _, _, seq_length, tokens, tflops = row
    assert per_token(model, seq_length, release) == pytest.approx(tflops * 1e12 / tokens, rel=WITHIN_FRAC)


def test_throughput_of_a_measured_run_comes_out_as_published() -> None:
    known = published(
        "qwen3_30b_a3b", seq_length=4096, world_size=16, train__global_batch_size=1024, bf16=True
    )
    found = throughput(known, 20_147_290_000, "H100", "bf16")
    assert isinstance(found, Throughput)
    assert found.model_tflops_per_gpu == pytest.approx(299.352, rel=0.001)
    assert found.tokens_per_s_per_gpu == pytest.approx(13_011, rel=0.001)
    assert found.mfu_frac == pytest.approx(299.352 / 989.5, rel=0.001)
    assert found.peak is not None
    assert found.peak.precision == "bf16"


def test_mfu_is_unknown_without_a_gpu_or_a_precision() -> None:
    known = published("qwen3_30b_a3b", seq_length=4096, world_size=16, train__global_batch_size=1024)
    for gpu, precision in ((None, "bf16"), ("H100", None), ("VR200", "fp8")):
        found = throughput(known, 10**10, gpu, precision)
        assert isinstance(found, Throughput)
        assert (found.mfu_frac, found.peak) == (None, None)
        assert found.model_tflops_per_gpu > 0


def test_throughput_names_what_it_lacks() -> None:
    found = throughput(published("qwen3_30b_a3b", seq_length=4096), 10**9)
    assert isinstance(found, Missing)
    assert "world_size" in found.reason
    assert isinstance(throughput(tiny(), 0), Missing)


@pytest.mark.parametrize(
    ("precision", "published"),
    [
        ("bf16", "bf16"), ("fp16", "bf16"), ("mxfp8", "fp8"), ("fp8_delayed", "fp8"), ("nvfp4", "nvfp4"),
        (None, None),
    ],
)  # fmt: skip
def test_each_precision_has_the_peak_of_its_format(precision: str | None, published: str | None) -> None:
    assert peak_precision(precision) == published


def test_nearest_references_are_of_the_same_model_and_the_same_gpu_first() -> None:
    known = published("deepseek_v3", seq_length=4096, world_size=1024)
    found = nearest_references(known, "H100")
    assert {row.model for row in found} == {"DeepSeek-V3"}
    assert [row.gpu == "H100" for row in found[:4]] == [True, True, True, False]
    assert nearest_references(tiny(), "H100") == ()


def test_item_13_how_far_a_run_is_from_the_nearest_published_one_and_in_what_it_differs() -> None:
    run = published(
        "deepseek_v3",
        seq_length=8192,
        world_size=1024,
        train__global_batch_size=8192,
        moe_router_force_load_balancing=False,
        expert_model_parallel_size=64,
    )
    row = nearest_references(run, "H100", "bf16")[0]
    assert (row.gpus, row.gpu, row.precision) == (1024, "H100", "BF16")
    found = nearest(row, row.tokens_per_s_per_gpu / 2, run, "H100", "bf16")
    assert found.tokens_frac == 0.5
    assert {one.what: (one.here, one.published) for one in found.differs} == {
        "routing": ("natural", "balanced"),
        "sequence_length": (8192, 4096),
        "global_batch_size": (8192, 16384),
    }
    assert set(found.unknown_settings) == {"dispatcher", "micro_batch_size", "tp", "pp", "vpp"}


def test_the_nearest_run_has_the_same_dispatcher_and_routing() -> None:
    run = published("qwen3_30b_a3b", seq_length=4096, world_size=16)
    cases: tuple[tuple[dict[str, Value], float], ...] = (
        ({"moe_token_dispatcher_type": "alltoall"}, 42.21),
        ({"moe_token_dispatcher_type": "flex", "moe_flex_dispatcher_backend": "hybridep"}, 30.29),
        ({"moe_token_dispatcher_type": "flex", "moe_flex_dispatcher_backend": "hybridep",
          "moe_router_force_load_balancing": True}, 20.147),
    )  # fmt: skip
    for knobs, step_s in cases:
        assert nearest_references(run.changed(knobs, "test"), "H100", "bf16")[0].step_s == step_s


def test_item_13_precision_and_routing_decide_between_rows_of_one_gpu() -> None:
    run = published("qwen3_30b_a3b", seq_length=4096, world_size=16, moe_router_force_load_balancing=False)
    assert nearest_references(run, "H100", "bf16")[0].routing == "natural"
    assert nearest_references(run, "H100", "fp8_current")[0].precision == "FP8"


def test_w11_no_gpu_is_faster_than_its_fastest_precision() -> None:
    known = published("qwen3_30b_a3b", seq_length=4096, world_size=16, train__global_batch_size=1024)
    found = throughput(known, 10**9, "H100", None)
    assert isinstance(found, Missing)
    assert "which no GPU reaches" in found.reason

"""Precision recipes and recompute modules: every row of the guides' tables.

seed 002 and seed 003: Megatron-Bridge's skill perf-moe-optimization-workflow as published up to 0.6.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.guides.precision import choose_precision
from heuristics.guides.recompute import choose_recompute
from heuristics.guides.table import EDITIONS
from heuristics.run.run import Run

GROUPED = Observed(moe=True, grouped_gemm=True, precision="bf16", graph_frac=0.0, ep_overlap=False)


def refusals(run: Run) -> dict[str, str]:
    return {refusal.what: refusal.reason for refusal in choose_recompute(run).refused}


@pytest.mark.parametrize(
    ("facts", "seed", "main"),
    [
        ({"gpu": "H100", "precision": "bf16"}, "fp8_blockwise", "fp8_blockwise fp8_current fp8_delayed"),
        ({"gpu": "GB200", "precision": "bf16", "stage": "bring_up"}, "mxfp8", "bf16"),
        ({"gpu": "B300", "precision": "mxfp8", "stage": "tuned"}, "nvfp4", "nvfp4"),
        ({"gpu": "GB200", "precision": "mxfp8", "stage": "bring_up"}, "mxfp8", "bf16"),
        ({"gpu": "A100"}, "bf16", "bf16"),
        ({}, "bf16", "bf16"),
    ],
)
def test_each_edition_names_its_recipes_by_gpu_precision_and_stage(
    facts: dict[str, object], seed: str, main: str
) -> None:
    run = Run(given=Given(**facts))  # type: ignore[arg-type]
    assert [" ".join(choose_precision(run, edition).candidates) for edition in EDITIONS] == [seed, main]


def test_what_a_precision_hangs_on_is_asked_for() -> None:
    asked = {gpu: {*choose_precision(Run(given=Given(gpu=gpu))).asks} for gpu in (None, "A100", "GB200")}
    assert asked == {None: {"--gpu-model"}, "A100": set(), "GB200": {"--precision", "--stage"}}
    assert choose_precision(Run(given=Given(gpu="H100", stage="tuned", precision="bf16"))).asks == ()


@pytest.mark.parametrize(
    ("shown", "facts", "row", "modules", "then"),
    [
        ({}, {"memory_tight": False}, "recompute-nothing", "", ""),
        (
            {},
            {"memory_tight": True, "family": "moonlight"},
            "recompute-first",
            "moe_act",
            "layernorm mla_up_proj mlp shared_experts",
        ),
        (
            {"recompute_modules": ("swiglu", "norm", "mlp")},
            {"memory_tight": True, "family": "dsv3"},
            "recompute-more",
            "moe_act layernorm mla_up_proj mlp",
            None,
        ),
        (
            {"recompute_modules": ("moe", "layernorm")},
            {"memory_tight": True, "family": "qwen3_30b"},
            "recompute-whole-layers",
            "",
            "",
        ),
        (
            {"recompute_full": True},
            {"family": "dsv3"},
            "recompute-instead-of-full",
            "moe_act layernorm mla_up_proj",
            None,
        ),
        ({"recompute_modules": ("moe",)}, {}, "recompute-instead-of-moe", "moe_act layernorm", None),
    ],
)
def test_memory_pressure_decides_what_is_recomputed(
    shown: dict[str, object], facts: dict[str, object], row: str, modules: str, then: str | None
) -> None:
    run = Run(replace(GROUPED, **shown), Given(**facts))  # type: ignore[arg-type]
    choice = choose_recompute(run)
    assert choice.row.id == row
    assert (choice.granularity == "none") == (row == "recompute-nothing")
    assert (choice.granularity == "full") == (row == "recompute-whole-layers")
    assert " ".join(choice.modules) == modules
    assert then is None or " ".join(choice.then) == then


def test_the_expert_activation_needs_grouped_gemm() -> None:
    run = Run(Observed(moe=True, grouped_gemm=False, precision="bf16"))
    assert "grouped GEMM" in refusals(run)["moe_act"]
    assert choose_recompute(run).modules == ("layernorm",)


def test_delayed_scaling_leaves_the_up_projection_of_an_mla_model() -> None:
    run = Run(
        Observed(moe=True, grouped_gemm=True),
        Given(precision="fp8_delayed", family="dsv3", memory_tight=True),
    )
    assert choose_recompute(run).modules == ("mla_up_proj",)
    assert {"moe_act", "layernorm"} <= set(refusals(run))


@pytest.mark.parametrize(("te", "modules"), [("2.5.0", ("mla_up_proj",)), ("2.6.0", ("moe_act",))])
def test_fp8_needs_transformer_engine_2_6_for_modules_that_drop_their_output(
    te: str, modules: tuple[str, ...]
) -> None:
    given = Given(precision="mxfp8", family="dsv3", te_version=te)
    assert choose_recompute(Run(Observed(moe=True, grouped_gemm=True), given)).modules == modules


@pytest.mark.parametrize(("core", "refused"), [("0.16.1", False), ("0.17.0", True), (None, True)])
def test_whole_moe_recompute_clashes_with_overlap_since_0_17(core: str | None, refused: bool) -> None:
    shown = Observed(moe=True, grouped_gemm=True, precision="bf16", ep_overlap=True, graph_frac=0.0)
    assert ("moe" in refusals(Run(shown, Given(core_version=core)))) is refused

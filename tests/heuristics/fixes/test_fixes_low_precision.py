"""The change of precision that MEM-4 and CMP-3 make: spellings, and what each recipe needs."""

from __future__ import annotations

import pytest

from heuristics.config.observed import Observed
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.run.run import Run
from tests.doubles.fixes import configured, given, states

MEM_4 = CATALOGUE["MEM-4"]


@pytest.mark.parametrize(
    ("gpu", "lm", "bridge", "harness"),
    [
        (
            "H100",
            "--fp8-recipe blockwise",
            "mixed_precision=bf16_with_fp8_subchannel_scaling_mixed",
            "fp8_sc",
        ),
        ("GB200", "--fp8-recipe mxfp8", "mixed_precision=bf16_with_mxfp8_mixed", "fp8_mx"),
    ],
)
def test_low_precision_is_spelled_by_gpu(gpu: str, lm: str, bridge: str, harness: str) -> None:
    knobs = MEM_4.knobs(given(Observed(moe=True), gpu=gpu, stage="tuned", precision="bf16"))
    assert lm in knobs.megatron_lm
    assert "--moe-router-dtype fp32" in knobs.megatron_lm
    assert bridge in knobs.megatron_bridge
    assert knobs.bridge_harness == (f"--compute_dtype {harness}",)


@pytest.mark.parametrize(
    ("presets", "harness"),
    [
        (("bf16", "fp8_cs", "fp8_sc"), ("--compute_dtype fp8_sc",)),
        (("bf16", "fp8_cs"), ("--compute_dtype fp8_cs",)),
        (("bf16",), ()),
    ],
)
def test_a_run_of_bridges_scripts_gets_a_precision_that_has_a_preset(
    presets: tuple[str, ...], harness: tuple[str, ...]
) -> None:
    run = configured({"launcher.precisions": presets}, gpu="H100", stage="tuned", precision="bf16")
    assert MEM_4.knobs(run).bridge_harness == harness
    assert any("have a preset" in one.text for one in MEM_4.preconditions(run)) is not bool(harness)


def test_mxfp8_reuses_the_gradient_buffer() -> None:
    knobs = MEM_4.knobs(given(gpu="B200", precision="bf16"))
    assert "--reuse-grad-buf-for-mxfp8-param-ag" in knobs.megatron_lm


@pytest.mark.parametrize(
    ("core", "bridge", "flag"),
    [
        ("0.15.3", None, "--moe-router-padding-for-fp8"),
        ("0.16.0", None, "--moe-router-padding-for-quantization"),
        (None, "0.4.0", "--moe-router-padding-for-quantization"),
        (None, None, "--moe-router-padding-for-quantization"),
    ],
)
def test_padding_is_spelled_by_release(core: str | None, bridge: str | None, flag: str) -> None:
    run = given(Observed(moe=True), gpu="H100", core_version=core, bridge_version=bridge)
    assert flag in MEM_4.knobs(run).megatron_lm


@pytest.mark.parametrize("moe", [False, None])
def test_a_model_of_no_known_experts_gets_no_router_flags(moe: bool | None) -> None:
    run = given(Observed(moe=moe), gpu="H100", precision="bf16")
    assert not any("router" in knob for knob in MEM_4.knobs(run).megatron_lm)
    assert not any("dispatcher" in one.text for one in MEM_4.preconditions(run))


def test_low_precision_needs_a_gpu_of_the_guides() -> None:
    runs = (given(gpu="H100"), given(gpu="A100"), Run())
    assert states(MEM_4, "the guides name", *runs) == ["met", "unmet", "unknown"]
    assert MEM_4.knobs(given(gpu="A100")).megatron_lm == ()


def test_fp4_needs_core_0_15() -> None:
    runs = [
        given(gpu="GB200", precision="mxfp8", stage="tuned", core_version=core)
        for core in ("0.14.0", "0.15.0", None)
    ]
    assert states(MEM_4, "Megatron-Core", *runs) == ["unmet", "met", "unknown"]
    assert "--fp4-recipe nvfp4" in MEM_4.knobs(runs[1]).megatron_lm

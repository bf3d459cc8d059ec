"""NVIDIA's layouts of large models, their own rows on that GPU taken out, are among the first three."""

from __future__ import annotations

import pytest

from tests.configurations.layouts import found, without


@pytest.mark.parametrize(
    ("name", "gpu", "gpus", "batch", "layout"),
    [
        ("DeepSeek-V3", "GB200", 256, 4096, (1, 4, 64)), ("DeepSeek-V3", "H100", 1024, 8192, (2, 8, 64)),
        ("DeepSeek-V3", "H100", 1024, 16384, (2, 8, 64)), ("Qwen3-235B-A22B", "GB200", 64, 1024, (1, 8, 8)),
        ("Kimi-K2", "GB200", 256, 2048, (1, 4, 64)), ("GLM-4.5", "H100", 128, 2048, (2, 8, 16)),
        ("GPT-OSS-120B", "GB200", 64, 1280, (1, 1, 64)),
    ],
)  # fmt: skip
def test_nvidias_layout_is_among_the_first_three(
    name: str, gpu: str, gpus: int, batch: int, layout: tuple[int, int, int]
) -> None:
    layouts = found(name, gpu, gpus, batch, without(name, gpu)).layouts
    assert layout in [(one.tp, one.pp, one.ep) for one in layouts[:3]]


def test_deepseek_v3_on_256_gb200_is_nvidias_to_the_letter() -> None:
    first = found("DeepSeek-V3", "GB200", 256, 4096, without("DeepSeek-V3", "GB200")).layouts[0]
    assert (first.vpp, first.stages, first.recompute_modules) == (4, "Et*4|(t*4|)*14tmL", ("mla_up_proj",))
    assert first.dispatcher == "hybridep"

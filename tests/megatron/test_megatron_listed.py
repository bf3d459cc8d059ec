"""megatron-core itself accepts every layout that `plan` lists."""

from __future__ import annotations

import pytest

from heuristics.rules.megatron.request import Request, request_of
from tests.configurations.layouts import found, run_as_typed
from tests.megatron.conftest import Ask

pytestmark = pytest.mark.megatron


@pytest.mark.parametrize(
    ("name", "gpu", "gpus", "batch"),
    [
        ("Qwen3-30B-A3B", "H100", 16, 1024), ("DeepSeek-V3", "GB200", 256, 4096),
        ("DeepSeek-V3", "H100", 1024, 8192), ("Mixtral-8x7B", "H100", 64, 256),
        ("Qwen3-235B-A22B", "GB200", 64, 1024), ("GLM-4.5-Air", "H200", 64, 512),
        ("GPT-OSS-120B", "B200", 64, 1280),
    ],
)  # fmt: skip
def test_megatron_core_accepts_every_listed_layout(
    ask: Ask, name: str, gpu: str, gpus: int, batch: int
) -> None:
    layouts = found(name, gpu, gpus, batch)
    requests = [request_of(run_as_typed(layouts, place)) for place in range(len(layouts.layouts))]
    assert requests
    assert all(isinstance(one, Request) for one in requests), requests
    answers = ask([one for one in requests if isinstance(one, Request)])
    refused = [
        (place + 1, tier.answer, tier.text)
        for place, both in enumerate(answers)
        for tier in both
        if tier.answer in ("rejected", "no_such_knob")
    ]
    assert refused == []

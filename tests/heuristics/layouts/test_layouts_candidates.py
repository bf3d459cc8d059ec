"""Layouts that divide: all of them, by a second and simpler count; stages that NVIDIA writes."""

from __future__ import annotations

from itertools import product

import pytest

from heuristics.layouts.candidates import Asked, candidates
from heuristics.layouts.stages import stages_of, work_of
from traces.settings.model_names import model_named
from traces.settings.settings import settings
from traces.sizes.model import ModelSize, model_size

LENGTH = settings({"seq_length": 4096}, "test")


def size_of(name: str) -> ModelSize:
    size = model_size(model_named(name).settings.under(LENGTH))
    assert isinstance(size, ModelSize)
    return size


def by_trial(model: ModelSize, gpus: int, batch: int) -> set[tuple[int, ...]]:
    """TP, CP, PP, EP, ETP by trying every number."""
    found: set[tuple[int, ...]] = set()
    for tp, pp, ep in product(range(1, 9), range(1, len(model.is_moe) + 1), range(1, gpus + 1)):
        heads = model.heads % tp == 0 and model.query_groups % tp == 0
        ranks = gpus % (tp * pp) == 0 and gpus % (ep * pp) == 0
        experts = (model.expert_count or 1) % ep == 0
        if heads and ranks and experts and batch % (gpus // (tp * pp)) == 0:
            found.add((tp, 1, pp, ep, 1))
    return found


@pytest.mark.parametrize(("name", "gpus", "batch"), [("Mixtral-8x7B", 24, 96), ("Qwen3-30B-A3B", 16, 48)])
def test_candidates_are_all_layouts_that_divide(name: str, gpus: int, batch: int) -> None:
    model = size_of(name)
    assert {one.key for one in candidates(Asked(model, gpus, batch))} == by_trial(model, gpus, batch)


@pytest.mark.parametrize(
    ("pp", "vpp", "letters"),
    [
        (4, 1, "Et*16|(t*16|)*2t*13mL"),
        (8, 1, "Et*8|(t*8|)*6t*5mL"),
        (4, 4, "Et*4|(t*4|)*14tmL"),
        (8, 4, "Et|(tt|)*30mL"),
    ],
)
def test_stages_of_deepseek_v3_are_those_of_nvidia(pp: int, vpp: int, letters: str) -> None:
    stages = stages_of(work_of(size_of("DeepSeek-V3")), pp, vpp)
    assert stages is not None
    assert stages.letters == letters
    assert stages.uneven_frac < 0.05


def test_more_stages_than_layers_there_are_none() -> None:
    assert stages_of(work_of(size_of("OLMoE")), 8, 3) is None


def test_every_model_has_its_published_parameters() -> None:
    from heuristics.layouts.published import weight_of

    billions = {
        "DeepSeek-V3": (671, 37), "DeepSeek-V2": (236, 21), "DeepSeek-V2-Lite": (15.7, 2.4),
        "Kimi-K2": (1026, 32), "Moonlight-16B-A3B": (16, 3), "Qwen3-235B-A22B": (235, 22),
        "Qwen3-30B-A3B": (30.5, 3.3), "Qwen3-Next-80B-A3B": (80, 3), "GPT-OSS-120B": (117, 5.1),
        "GPT-OSS-20B": (21, 3.6), "GLM-4.5": (355, 32), "GLM-4.5-Air": (106, 12),
        "Mixtral-8x7B": (46.7, 12.9), "Mixtral-8x22B": (141, 39), "Llama-4-Scout": (109, 17),
        "Llama-4-Maverick": (400, 17), "OLMoE-1B-7B": (6.9, 1.3), "MiniMax-M2": (230, 10),
    }  # fmt: skip
    for name, (total, active) in billions.items():
        weight = weight_of(size_of(name))
        assert weight.total / 1e9 == pytest.approx(total, rel=0.03), name
        assert weight.active / 1e9 == pytest.approx(active, rel=0.25), name

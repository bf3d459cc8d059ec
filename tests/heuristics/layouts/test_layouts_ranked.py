"""Layouts in their order: all that divide, what fits, with the least recompute; NVIDIA's among the first."""

from __future__ import annotations

from itertools import product

import pytest

from heuristics.layouts.candidates import LayoutRequest, candidates
from heuristics.layouts.choose import Found
from heuristics.layouts.stages import stages_of, work_of
from tests.configurations.layouts import found, run_as_typed, without
from traces.settings.model_names import model_named
from traces.settings.settings import settings
from traces.sizes.memory import MemoryEstimate, estimate
from traces.sizes.model import ModelSize, model_size


@pytest.fixture(scope="module")
def qwen() -> Found:
    return found("Qwen3-30B-A3B", "H100", 16, 1024, without("Qwen3-30B-A3B", "H100"))


@pytest.mark.parametrize("place", [0, 1, 2, 5, 9])
def test_the_lines_to_type_make_the_layout_and_its_memory(qwen: Found, place: int) -> None:
    one, run = qwen.layouts[place], run_as_typed(qwen, place)
    sizes = (run.config.tp, run.config.cp, run.config.pp, run.config.ep, run.config.micro_batch)
    assert sizes == (one.tp, one.cp, one.pp, one.ep, one.micro_batch)
    held = estimate(run.config.settings, precision="bf16")
    assert isinstance(held, MemoryEstimate)
    assert isinstance(one.memory, MemoryEstimate)
    assert held.total_bytes == one.memory.total_bytes


def test_where_nothing_fits_the_least_need_is_known() -> None:
    layouts = found("DeepSeek-V3", "H100", 16, 64)
    assert layouts.layouts == ()
    assert layouts.least_bytes is not None
    assert layouts.least_bytes > 80 << 30


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
    assert {one.key for one in candidates(LayoutRequest(model, gpus, batch))} == by_trial(model, gpus, batch)


@pytest.mark.parametrize(
    ("pp", "vpp", "letters"),
    [
        *((4, 1, "Et*16|(t*16|)*2t*13mL"), (8, 1, "Et*8|(t*8|)*6t*5mL"), (4, 4, "Et*4|(t*4|)*14tmL")),
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
        "Qwen3-30B-A3B": (30.5, 3.3), "GPT-OSS-120B": (117, 5.1),
        "GPT-OSS-20B": (21, 3.6), "GLM-4.5": (355, 32), "GLM-4.5-Air": (106, 12),
        "Mixtral-8x7B": (46.7, 12.9), "Mixtral-8x22B": (141, 39), "Llama-4-Scout": (109, 17),
        "Llama-4-Maverick": (400, 17), "OLMoE-1B-7B": (6.9, 1.3), "MiniMax-M2": (230, 10),
    }  # fmt: skip
    for name, (total, active) in billions.items():
        weight = weight_of(size_of(name))
        assert weight.total / 1e9 == pytest.approx(total, rel=0.03), name
        assert weight.active / 1e9 == pytest.approx(active, rel=0.25), name

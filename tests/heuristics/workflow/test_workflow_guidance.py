"""What is guidance only, what NVIDIA's own runs do otherwise, and what a model without experts is asked."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from heuristics.guides.choices import choose_all
from heuristics.result.configured import WorkflowStep
from heuristics.run.run import Run
from heuristics.workflow.walk import walk
from tests.doubles.fixes import configured
from traces.settings.settings import Value

DENSE: dict[str, Value] = {
    "num_layers": 80,
    "hidden_size": 8192,
    "num_moe_experts": None,
    "tensor_model_parallel_size": 8,
    "context_parallel_size": 2,
    "pipeline_model_parallel_size": 4,
    "virtual_pipeline_model_parallel_size": 5,
    "expert_model_parallel_size": 1,
    "expert_tensor_parallel_size": None,
    "recompute_granularity": "full",
    "fp8": "e4m3",
    "fp8_recipe": "blockwise",
    "bf16": True,
    "cuda_graph_impl": "none",
    "world_size": 256,
    "launcher.gpus_per_node": 8,
    "launcher.gpu": "h100",
}
EXPERTS = re.compile(r"moe|(?<!no )expert|router|dispatch|\bEP\d*\b|\bETP\d*\b", re.IGNORECASE)
WIDE: dict[str, Value] = {
    "num_moe_experts": 256,
    "tensor_model_parallel_size": 2,
    "pipeline_model_parallel_size": 1,
    "expert_model_parallel_size": 64,
    "expert_tensor_parallel_size": 1,
    "world_size": 1024,
    "launcher.gpus_per_node": 8,
    "launcher.gpu": "h100",
}
PLAIN: Mapping[str, Value] = {
    "moe_token_dispatcher_type": "alltoall",
    "overlap_moe_expert_parallel_comm": False,
}
FLEX: Mapping[str, Value] = {"moe_token_dispatcher_type": "flex", "moe_flex_dispatcher_backend": "hybridep"}


def _step(run: Run, id_: str) -> WorkflowStep:
    return next(one for one in walk(run) if one.id == id_)


@pytest.mark.parametrize(
    "graphs",
    [
        {},
        {
            "cuda_graph_impl": "transformer_engine",
            "cuda_graph_modules": ("attn",),
            "recompute_granularity": None,
        },
    ],
)
def test_no_step_and_no_choice_speaks_of_experts_to_a_dense_model(graphs: Mapping[str, Value]) -> None:
    run = configured({**DENSE, **graphs})
    said = [
        (one.id, text)
        for one in walk(run)
        if one.state != "not_applicable"
        for text in (one.title, one.because, one.advice, one.tells)
    ]
    said += [
        (one.about, text)
        for one in choose_all(run)
        for text in (one.answer, one.reason, *one.notes, *one.then)
    ]
    assert len(said) > 30
    assert not [one for one in said if EXPERTS.search(one[1])]


def test_a_dense_model_that_asks_for_what_experts_need_is_still_refused() -> None:
    run = configured({**DENSE, "overlap_moe_expert_parallel_comm": True})
    assert _step(run, "ep-overlap-experts").state == "violated"


@pytest.mark.parametrize(
    ("way", "state"),
    [
        (PLAIN, "violated"),
        (FLEX, "met"),
        ({**PLAIN, "overlap_moe_expert_parallel_comm": True}, "met"),
    ],
)
@pytest.mark.parametrize("rule", ["scale-fast-domain", "scale-pp-across-nodes"])
def test_experts_leave_an_nvlink_domain_by_a_dispatcher_for_it_or_under_the_overlap(
    way: Mapping[str, Value], state: str, rule: str
) -> None:
    assert _step(configured({**WIDE, **way}), rule).state == state


def test_what_a_framework_refuses_is_no_guidance_and_what_a_guide_asks_for_is() -> None:
    by_id = {one.id: one.guide_only for one in walk(configured(WIDE))}
    assert by_id["scale-fast-domain"]
    assert by_id["scale-vpp"]
    assert by_id["precision-router"]
    assert not by_id["experts-per-rank"]
    assert not by_id["ep-overlap-torch"]

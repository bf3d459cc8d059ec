"""What is guidance only, what NVIDIA's own runs do otherwise, and what a model without experts is asked."""

from __future__ import annotations

from heuristics.workflow.walk import walk
from tests.doubles.fixes import configured
from traces.settings.settings import Value

WIDE: dict[str, Value] = {
    "num_moe_experts": 256, "tensor_model_parallel_size": 2, "pipeline_model_parallel_size": 1,
    "expert_model_parallel_size": 64, "expert_tensor_parallel_size": 1, "world_size": 1024,
    "launcher.gpus_per_node": 8, "launcher.gpu": "h100",
}  # fmt: skip


def test_what_a_framework_refuses_is_no_guidance_and_what_a_guide_asks_for_is() -> None:
    by_id = {one.id: one.guide_only for one in walk(configured(WIDE))}
    assert by_id["scale-fast-domain"]
    assert by_id["scale-vpp"]
    assert by_id["precision-router"]
    assert not by_id["experts-per-rank"]
    assert not by_id["ep-overlap-torch"]

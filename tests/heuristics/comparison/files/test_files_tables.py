"""The tables of what changes did elsewhere and of what is in effect: no row that nobody would miss."""

from __future__ import annotations

from typing import Any

import pytest

from heuristics.comparison.files.differences import differences
from heuristics.comparison.files.measured import Measured, known_changes, measurements
from heuristics.comparison.files.side import FileSide
from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.config.view import Config
from traces.settings.settings import settings

BF16, FP8 = {"fp8": None, "fp4": None, "bf16": True}, {"fp8": "e4m3", "bf16": True}
MODELS: dict[str, tuple[str | None, dict[str, Any]]] = {
    "dsv3": ("dsv3", BF16),
    "dsv3-fp8": ("dsv3", FP8),
    "q30": ("qwen3_30b", {"moe_token_dispatcher_type": "flex", "moe_flex_dispatcher_backend": "hybridep"}),
    "q30-pp2": ("qwen3_30b", {"pipeline_model_parallel_size": 2}),
    "q30-ep16": ("qwen3_30b", {"moe_token_dispatcher_type": "alltoall", "expert_model_parallel_size": 16}),
    "q235": ("qwen3_235b", {"num_layers": 94, "hidden_size": 4096, **BF16}),
    "q235-fp8": ("qwen3_235b", {"num_layers": 94, "hidden_size": 4096, **FP8}),
    "llama": (None, {"num_layers": 80, "hidden_size": 8192}),
    "gpt-oss": (None, {"moe_router_topk": 4, "moe_ffn_hidden_size": 2880, **BF16}),
    "gpt-oss-fp8": (None, {"moe_router_topk": 4, "moe_ffn_hidden_size": 2880, **FP8}),
}
MEASURED = """
ep_overlap: 1.189 - B200 q235-fp8; 1.075 - B200 q235; 0.759 - H100 q30-ep16; 0.849 - H100 q30;
  0.928 1.006 H100 any
delayed_wgrad: 0.996 - H100 any
mtp: 1.068 - H100 any; 1.080 - H100 any
full_recompute: 1.222 0.876 H100 any
mlp_recompute: 1.196 0.946 H100 llama; 1.210 0.946 H100 llama
core_attn_recompute: 1.017 1.029 H100 q30,q30-pp2,q30-ep16; 1.038 1.000 H100 any
moe_act_recompute: 1.020 0.982 H100 any
mla_up_proj_recompute: 1.052 0.980 H100 any; 1.079 - GB200 dsv3,dsv3-fp8
layernorm_recompute: 1.031 - H100 any
graphs: 0.921 - GB200 dsv3,dsv3-fp8; 0.777 - H100 q30-pp2; 1.015 - H100 q30-ep16; 0.837 - H100 any;
  0.767 - H100 any
hybridep: 1.042 - GB200 gpt-oss,gpt-oss-fp8; 1.017 - GB200 gpt-oss-fp8
deepep: 0.758 - B200 dsv3,dsv3-fp8; 0.954 - GB200 dsv3,dsv3-fp8
deepep_to_hybridep: 0.880 - GB200 dsv3,dsv3-fp8
hybridep_fused: 0.960 - H100 q30,q30-pp2,q30-ep16
low_precision: 0.820 - GB200 dsv3,dsv3-fp8; 0.813 - GB200 q235,q235-fp8;
  0.984 - B200 q30,q30-pp2,q30-ep16; 0.982 - B200 q30,q30-pp2,q30-ep16
numa_binding: 0.907 - GB200 dsv3,dsv3-fp8
router_fusion: 0.981 - GB200 dsv3,dsv3-fp8
permute_fusion: 0.934 - GB200 dsv3,dsv3-fp8
loss_fusion: 0.979 0.953 MI300X/MI325X/MI355X any
virtual_stages: 0.896 - B300 dsv3-fp8; 0.932 - B300 dsv3
tensor_parallel: 1.389 - H100 any
optimizer_offload: 1.900 0.919 H100 any; 4.200 0.678 H100 any
activation_offload: 1.016 0.893 GB200 dsv3,dsv3-fp8
balance_loss: 1.201 - H100 dsv3,dsv3-fp8
forced_routing: 2.204 - GB200 any
expandable_segments: 1.000 - H100 any; 1.000 - B300 q30,q30-pp2,q30-ep16
"""
"""Step and memory as parts of the old ones, GPUs, and of which of these models it is a measurement."""


def written(one: Measured) -> str:
    figures = ("-" if times is None else f"{times:.3f}" for times in (one.times, one.memory_times))
    models = ["any"]
    if one.when is not None:
        configs = {name: Config(Given(family=family), Observed(), settings(knobs, "run.yaml"))
            for name, (family, knobs) in MODELS.items()}  # fmt: skip
        models = [name for name, config in configs.items() if one.when.holds(config)]
    return " ".join((*figures, "/".join(one.gpu), ",".join(models)))


def test_each_measurement_tells_its_figures_of_its_models_alone() -> None:
    rows = [f"{id_}: {'; '.join(map(written, measurements(id_)))}" for id_ in known_changes()]
    assert rows == MEASURED.strip().replace("\n  ", " ").splitlines()


SELECTIVE = {"recompute_granularity": "selective"}
FULL = {"recompute_granularity": "full", "recompute_method": "uniform"}
FLEX = {"moe_token_dispatcher_type": "flex", "moe_flex_dispatcher_backend": "deepep"}
HYBRID = FLEX | {"moe_flex_dispatcher_backend": "hybridep"}
GRAPHS = {"cuda_graph_impl": "local"}
EXPERTS = {"num_moe_experts": 8}
IN_EFFECT: list[tuple[str, tuple[Any, Any], dict[str, Any], dict[str, Any]]] = [
    # what differs, where it does nothing, and where it may
    ("moe_enable_deepep", (True, False), EXPERTS | {"moe_token_dispatcher_type": "alltoall"}, EXPERTS | FLEX),
    ("moe_deepep_num_sms", (20, 24), EXPERTS | HYBRID, EXPERTS | FLEX),
    ("moe_hybridep_num_sms", (16, 24), EXPERTS | FLEX, EXPERTS | HYBRID),
    ("cuda_graph_warmup_steps", (1, 3), {"cuda_graph_impl": "none"}, GRAPHS),
    ("use_te_rng_tracker", (True, False), {"cuda_graph_impl": "none"}, GRAPHS),
    ("recompute_modules", (("moe",), ("mlp",)), FULL, SELECTIVE),
    ("recompute_num_layers", (1, 2), SELECTIVE, FULL),
    ("fp8_wgrad", (True, False), BF16, FP8),
    ("fp4_recipe", ("a", "b"), BF16, FP8),
    ("moe_aux_loss_coeff", (0.1, 0.2), EXPERTS | {"moe_router_load_balancing_type": "none"},
     EXPERTS | {"moe_router_load_balancing_type": "aux_loss"}),
    ("activation_offload_fraction", (0.5, 1.0), {"fine_grained_activation_offloading": False},
     {"fine_grained_activation_offloading": True}),
    ("optimizer.optimizer_offload_fraction", (0.5, 1.0), {"optimizer.optimizer_cpu_offload": False},
     {"optimizer.optimizer_cpu_offload": True}),
    ("cross_entropy_fusion_impl", ("native", "te"), {"cross_entropy_loss_fusion": False},
     {"cross_entropy_loss_fusion": True}),
    ("mtp_loss_scaling_factor", (0.1, 0.2), {"mtp_num_layers": 0}, {"mtp_num_layers": 1}),
    ("moe_router_topk", (2, 4), {"num_moe_experts": None}, EXPERTS),
    ("cp_comm_type", ("p2p", "a2a"), {"context_parallel_size": 1}, {"context_parallel_size": 2}),
    ("tp_comm_overlap", (True, False), {"tensor_model_parallel_size": 1}, {"tensor_model_parallel_size": 2}),
    ("env.NVSHMEM_IB_ENABLE_IBGDA", ("0", "1"), EXPERTS | HYBRID, EXPERTS | FLEX),
]  # fmt: skip


def effect_of(knob: str, values: tuple[Any, Any], beside: dict[str, Any], other: dict[str, Any]) -> str:
    base, new = (FileSide(name, name, settings({**around, knob: value}, "run.yaml"))
        for name, value, around in (("base", values[0], beside), ("new", values[1], other)))  # fmt: skip
    return next(one.effect for one in differences(base, new) if one.what == knob)


@pytest.mark.parametrize(("knob", "values", "without", "having"), IN_EFFECT)
def test_a_setting_that_only_another_one_puts_into_effect(
    knob: str, values: tuple[Any, Any], without: dict[str, Any], having: dict[str, Any]
) -> None:
    assert effect_of(knob, values, without, without) == "none"
    assert effect_of(knob, values, without, having) == effect_of(knob, values, having, having) == "may"

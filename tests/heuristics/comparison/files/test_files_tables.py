"""The table of what is in effect: no row that nobody would miss."""

from __future__ import annotations

from typing import Any

import pytest

from heuristics.comparison.files import measured
from heuristics.comparison.files.differences import differences
from heuristics.comparison.files.measured import Known, MeasuredChange, measurements
from heuristics.comparison.files.side import FileSide
from tests.doubles.result import double
from traces.settings.settings import settings
from traces.toml_tables import WrongRow

BF16, FP8 = {"fp8": None, "fp4": None, "bf16": True}, {"fp8": "e4m3", "bf16": True}
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


ASIDE = """
checkpoint.save logger.log_interval profiling.nvtx_ranges optimizer.lr optimizer.min_lr train.train_iters
scheduler.max_steps launcher.recipe validation.eval_micro_batch_size
"""


def test_what_no_step_reads_has_no_effect() -> None:
    assert {effect_of(knob, (1, 2), {}, {}) for knob in ASIDE.split()} == {"none"}


def test_a_measurement_without_its_shape_its_source_or_its_figures_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = {"of": "a model", "source": "a page", "step": (1.0, 2.0)}
    for lacking in told:
        row = MeasuredChange(**{**told, lacking: None})  # type: ignore[arg-type]
        monkeypatch.setattr(measured, "known_changes", {"one": double(Known, measured=(row,))}.copy)
        with pytest.raises(WrongRow, match="lacks its shape, source or figures"):
            measurements("one")

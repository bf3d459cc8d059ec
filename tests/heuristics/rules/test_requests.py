"""What Megatron-Core is asked where a configuration leaves sizes out: small ones, legal for its layout."""

from __future__ import annotations

from typing import Final

import pytest

from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.recipes import RECIPES
from heuristics.rules.megatron.request import (
    Request,
    assumed_options,
    assumed_sizes,
    derived,
    request_of,
    smallest_world,
)
from heuristics.run.run import Run
from traces.settings.settings import Value, settings

TP, CP, PP, EP = (
    f"{name}_parallel_size" for name in ("tensor_model", "context", "pipeline_model", "expert_model")
)
VPP, ETP = "virtual_pipeline_model_parallel_size", "expert_tensor_parallel_size"
HEAD: Final = RECIPES["head_size"].whole


@pytest.mark.parametrize(
    ("fields", "sizes"),
    [
        ({}, {"num_attention_heads": 1, "hidden_size": HEAD, "num_layers": 1}),
        ({TP: 2, "num_query_groups": 3}, {"num_attention_heads": 6, "hidden_size": 6 * HEAD}),
        ({"num_attention_heads": 4, "kv_channels": 10}, {"hidden_size": 40}),
        ({PP: 2, VPP: 2, "cpu_offloading_num_layers": 3}, {"num_layers": 16}),
        ({PP: 2, VPP: None}, {"num_layers": 2}), ({EP: 4, "moe_router_topk": 6}, {"num_moe_experts": 8}),
        ({EP: 4, "moe_router_num_groups": 3}, {"num_moe_experts": 12}),
        ({EP: 1}, {"num_moe_experts": None}), ({EP: 4, "num_moe_experts": None}, {"num_moe_experts": None}),
    ],
)  # fmt: skip
def test_sizes_that_nobody_said_are_small_and_legal(
    fields: dict[str, Value], sizes: dict[str, Value]
) -> None:
    found = assumed_sizes(fields, Run())
    assert {name: found.get(name) for name in sizes} == sizes
    assert not {*found} & {*fields}


def test_a_run_of_experts_gets_some_where_only_the_trace_tells() -> None:
    assert assumed_sizes({}, Run(Observed(moe=True)))["num_moe_experts"] == 2


@pytest.mark.parametrize(("precision", "said", "is_bf16"), [
    (None, {}, True), (None, {"fp16": False}, False), ("fp32", {}, False), ("bf16", {}, True),
])  # fmt: skip
def test_a_run_is_in_bf16_where_nobody_says_another_precision(
    precision: str | None, said: dict[str, Value], is_bf16: bool
) -> None:
    found = assumed_options(said, Run(given=Given(precision=precision)))
    assert found == {"attention_dropout": 0.0, "hidden_dropout": 0.0} | ({"bf16": True} if is_bf16 else {})


@pytest.mark.parametrize(
    ("fields", "ranks"),
    [
        ({}, 1), ({TP: 4, CP: 2, PP: 3, ETP: 1, EP: 16}, 48), ({TP: 4, CP: 2, PP: 3, EP: 16}, 192),
        ({TP: 4, CP: 3, ETP: 1, EP: 8}, 24),
    ],
)  # fmt: skip
def test_the_fewest_ranks_hold_both_meshes(fields: dict[str, Value], ranks: int) -> None:
    assert smallest_world(fields) == ranks


@pytest.mark.parametrize(
    ("fields", "worked_out"),
    [
        ({}, {"params_dtype": "fp32"}),
        ({"bf16": True, "fp16": True, PP: 2}, {"params_dtype": "bf16", "pipeline_dtype": "bf16"}),
        ({"fp16": True, PP: 2, "params_dtype": "fp32"}, {"params_dtype": "fp16", "pipeline_dtype": "fp32"}),
        ({"overlap_p2p_comm": True}, {"params_dtype": "fp32", "batch_p2p_comm": False}),
        ({"overlap_p2p_comm": False, "gated_linear_unit": False}, {"params_dtype": "fp32"}),
        ({"gated_linear_unit": True}, {"params_dtype": "fp32", "activation_func": "silu"}),
    ],
)
def test_what_frameworks_work_out_is_worked_out(
    fields: dict[str, Value], worked_out: dict[str, Value]
) -> None:
    assert derived(fields) == worked_out


@pytest.mark.parametrize(("core", "value", "is_asked"), [
    ("0.15.0", False, False), ("0.15.0", None, False), ("0.15.0", True, True), ("0.15.0", 0, True),
    ("0.16.0", False, True), ("0.16.0", None, True), (None, False, True),
])  # fmt: skip
def test_what_is_off_in_a_release_that_has_it_not_is_not_asked(
    core: str | None, value: Value, is_asked: bool
) -> None:
    said = settings({"qk_clip": value, "flash_decode": value, "num_layers": 2}, "test")  # qk_clip: 0.16.0
    found = request_of(Run(given=Given(core_version=core), settings=said))
    assert isinstance(found, Request)
    assert ("qk_clip" in found.fields) is is_asked
    assert "flash_decode" in found.fields
    assert (found.core_version, found.te_version) == (core, None)

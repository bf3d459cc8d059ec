"""A cure in a run: with what other rules ask for then, and none where it breaks one that nothing meets."""

from __future__ import annotations

import pytest

from heuristics.rules.cures import cure_in
from heuristics.rules.rules import rules
from tests.configurations.constraints import run_with

DENSE = {"num_moe_experts": "null", "expert_model_parallel_size": 8}
DEEPEP = {"moe_token_dispatcher_type": "flex", "moe_flex_dispatcher_backend": "deepep"}
BIAS = {"num_moe_experts": 8, "add_bias_linear": True, "core": "0.14.0"}
FUSED = {"bias_activation_fusion": True, "activation_func": "gelu", "gated_linear_unit": False}
VOLTA = {"lm": True, "moe_grouped_gemm": True, "capability": "7.0"}


@pytest.mark.parametrize(
    ("rule", "said", "cure", "beside", "then"),
    [
        ("experts-for-ep", DENSE, {"expert_model_parallel_size": 1}, {}, []),
        # what another rule asks for then goes with it
        ("expert-bias-none", BIAS, {"add_bias_linear": False}, {}, []),
        (
            "expert-bias-none",
            BIAS | FUSED,
            {"add_bias_linear": False, "bias_activation_fusion": False},
            {"bias_activation_fusion": False},
            [],
        ),
        # nothing is set where that breaks a rule that no setting meets, or one that takes it back
        (
            "experts-for-ep",
            DENSE | DEEPEP | {"tensor_model_parallel_size": 1, "expert_tensor_parallel_size": 1},
            {},
            {},
            ["deepep-one-rank"],
        ),
        ("grouped-gemm-gpu", VOLTA | {"moe_use_grouped_tensor": True}, {}, {}, ["grouped-tensor"]),
        # a rule that was broken before is no reason
        ("grouped-gemm-gpu", VOLTA | DENSE, {"moe_grouped_gemm": False}, {}, []),
    ],
)
def test_a_cure_breaks_nothing_that_was_whole(
    rule: str, said: dict[str, object], cure: dict[str, object], beside: dict[str, object], then: list[str]
) -> None:
    found = cure_in(run_with(said), rules()[rule])
    assert (found.set, found.beside, [one.id for one in found.then]) == (cure, beside, then)


def test_a_rule_that_names_no_setting_has_no_cure_to_type() -> None:
    rule = next(one for one in rules().values() if not one.set)
    found = cure_in(run_with(DENSE), rule)
    assert (found.set, found.beside, found.then) == ({}, {}, ())

"""Megatron-Core's MoE layer, as each release builds it."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def moe_layer(config: Any, **given: Any) -> Any:
    """The library's MoE layer of a configuration, its experts one after the other. Raises what that
    raises.

    Its specification says what to build up to 0.17, and builds it itself from 0.18 on.
    """
    specs = import_module("megatron.core.models.gpt.moe_module_specs")
    spec = specs.get_moe_module_spec(
        use_te=False, num_experts=config.num_moe_experts, moe_grouped_gemm=False
    )
    if callable(spec):
        return spec(config=config, **given)
    return import_module("megatron.core.transformer.spec_utils").build_module(
        spec, config=config, **given
    )

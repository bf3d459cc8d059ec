"""What is given about a run by options, tied to knobs; and how much of a run its files tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Final

from heuristics.config.view import Config
from heuristics.run.given import Given
from heuristics.run.observed import Observed
from traces.limits import Limit
from traces.settings.settings import Settings

WHOLE: Final = Limit(
    100,
    "knobs",
    "ours: overrides and scripts name tens, a dumped configuration or block of arguments every one",
)

FIELD_KNOBS: Final[Mapping[str, tuple[str, ...]]] = {
    "ep": ("expert_model_parallel_size",),
    "etp": ("expert_tensor_parallel_size",),
    "tp": ("tensor_model_parallel_size",),
    "cp": ("context_parallel_size",),
    "pp": ("pipeline_model_parallel_size",),
    "vpp": (
        "virtual_pipeline_model_parallel_size",
        "pipeline_model_parallel_layout",
        "pipeline_model_parallel_size",
    ),
    "precision": (
        "bf16",
        "fp16",
        "fp8",
        "fp4",
        "fp8_recipe",
        "fp4_recipe",
        "mixed_precision",
        "mixed_precision.fp8",
        "mixed_precision.fp8_recipe",
        "mixed_precision.fp4",
    ),
    "routing": (
        "moe_expert_capacity_factor",
        "moe_pad_expert_input_to_capacity",
        "moe_router_force_load_balancing",
    ),
    "graph_impl": ("cuda_graph_impl", "enable_cuda_graph", "external_cuda_graph"),
    "graph_modules": ("cuda_graph_modules",),
    "packed_sequences": ("sft", "dataset.enable_offline_packing", "dataset.enable_in_batch_packing"),
    "router_padding": ("moe_router_padding_for_quantization", "moe_router_padding_for_fp8"),
    "te_op_fuser": ("use_transformer_engine_op_fuser",),
    "cpu_bound_to_numa": ("launcher.numa_binding",),
    "pp_layout": ("pipeline_model_parallel_layout",),
    "family": ("num_layers", "hidden_size", "num_moe_experts", "moe_router_topk"),
}
"""Fields of `Given` and the knobs that tell them."""


def given_and_configured(given: Given, config: Config) -> Given:
    """What is given, filled up by what is configured: all that is known of the fields of `Given`."""
    names = [one.name for one in fields(given) if getattr(given, one.name) is None]
    found: dict[str, Any] = {}
    for name in names:
        package = name.removesuffix("_version")
        value = config.version_text(package) if package != name else getattr(config, name, None)  # type: ignore[arg-type]
        if value is not None:
            found[name] = value
    return replace(given, **found)


def is_whole(settings: Settings) -> bool:
    """Whether the file has all that the run has: what it does not name is then the framework's default."""
    return settings.framework == "megatron_lm" or len(settings.by_knob) >= WHOLE.value


def only_data_parallel(given: Given, files: Settings) -> bool:
    """Whether tensor, expert, pipeline and context parallelism are all known to be 1.

    Where files have all that the run has, what they leave out is 1.
    """
    config = Config(given, Observed(), files, None)
    sizes = [config.tp, config.ep, config.pp, config.cp]
    if is_whole(files):
        sizes = [1 if size is None else size for size in sizes]
    return all(size == 1 for size in sizes) and config.etp in (None, 1)

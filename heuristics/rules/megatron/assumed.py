"""What a configuration does not say and megatron-core must be told: legal stand-ins, each of them named.

A knob nobody said is unknown. Core's default in its place could be refused although the run is fine, so where
the file is not a whole command line of Megatron-LM, options take what MoE recipes have.
"""

from collections.abc import Mapping
from math import lcm
from typing import Final

from heuristics.run.run import Run
from traces.limits import Limit
from traces.settings.settings import Value

HEAD_DIM: Final = Limit(
    128, "elements", "the head size of most published models; nothing is computed with it"
)

_OF_MOE_RECIPES: Final[Mapping[str, Value]] = {
    "add_bias_linear": False,
    "moe_token_dispatcher_type": "alltoall",
    "moe_grouped_gemm": True,
}
"""As Megatron-Bridge v0.6.0 sets them for every MoE model (src/megatron/bridge/models, perf_recipes)."""

_OF_ALL_RECIPES: Final[Mapping[str, Value]] = {"attention_dropout": 0.0, "hidden_dropout": 0.0}
"""Bridge's recipes train without dropout; core's default is 0.1."""

_FULL_PRECISION: Final = ("fp32", "tf32")


def count(fields: Mapping[str, Value], name: str, default: int = 1) -> int:
    """A size that is said, else `default`."""
    value = fields.get(name)
    return value if isinstance(value, int) else default


def assumed_options(fields: Mapping[str, Value], run: Run) -> dict[str, Value]:
    """Options nobody said; none for a command line of Megatron-LM, whose defaults are core's."""
    if run.settings.framework == "megatron_lm":
        return {}
    options = dict(_OF_ALL_RECIPES)
    if _is_moe(fields, run):
        options |= _OF_MOE_RECIPES
    if not {"bf16", "fp16"} & set(fields) and run.precision not in _FULL_PRECISION:
        options["bf16"] = True
    return {name: value for name, value in options.items() if name not in fields}


def derived(fields: Mapping[str, Value]) -> dict[str, Value]:
    """What both frameworks work out themselves from other knobs before they build the configuration."""
    dtype = "bf16" if fields.get("bf16") is True else "fp16" if fields.get("fp16") is True else "fp32"
    made: dict[str, Value] = {"params_dtype": dtype}
    if count(fields, "pipeline_model_parallel_size") > 1:
        made["pipeline_dtype"] = fields.get("params_dtype", dtype)
    if fields.get("overlap_p2p_comm") is True:
        made["batch_p2p_comm"] = False
    if fields.get("gated_linear_unit") is True:
        made["activation_func"] = "silu"
    return {name: value for name, value in made.items() if name not in fields}


def assumed_sizes(fields: Mapping[str, Value], run: Run) -> dict[str, Value]:
    """Sizes nobody said, small and legal for the parallel layout that is."""
    sizes: dict[str, Value] = {}
    heads = lcm(count(fields, "tensor_model_parallel_size"), count(fields, "num_query_groups"))
    sizes["num_attention_heads"] = heads
    sizes["hidden_size"] = count(fields, "num_attention_heads", heads) * count(
        fields, "kv_channels", int(HEAD_DIM.value)
    )
    stages = count(fields, "pipeline_model_parallel_size") * count(
        fields, "virtual_pipeline_model_parallel_size"
    )
    sizes["num_layers"] = stages * (1 + count(fields, "cpu_offloading_num_layers", 0))
    if _is_moe(fields, run):
        step = lcm(count(fields, "expert_model_parallel_size"), count(fields, "moe_router_num_groups"))
        sizes["num_moe_experts"] = step * -(-count(fields, "moe_router_topk", 2) // step)
    return {name: value for name, value in sizes.items() if name not in fields}


def smallest_world(fields: Mapping[str, Value]) -> int:
    """The fewest ranks that hold both meshes: TP x CP x PP for attention, ETP x EP x PP for experts."""
    tensor = count(fields, "tensor_model_parallel_size")
    stages = count(fields, "pipeline_model_parallel_size")
    experts = count(fields, "expert_tensor_parallel_size", tensor) * count(
        fields, "expert_model_parallel_size"
    )
    return stages * lcm(tensor * count(fields, "context_parallel_size"), experts)


def _is_moe(fields: Mapping[str, Value], run: Run) -> bool:
    if "num_moe_experts" in fields:
        return fields["num_moe_experts"] is not None
    return run.observed.moe is True or count(fields, "expert_model_parallel_size") > 1

"""What the user may give of a run: one row ties a field of `Given` to its option, its help and its knobs.

A setting that is one knob stands here once: options, files and the trace meet under the knob's id.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_PRECISION: Final = (
    *("bf16", "fp16", "fp8", "fp4", "fp8_recipe", "fp4_recipe", "mixed_precision"),
    *("mixed_precision.fp8", "mixed_precision.fp8_recipe", "mixed_precision.fp4"),
)
_ROUTING: Final = (
    "moe_expert_capacity_factor",
    "moe_pad_expert_input_to_capacity",
    "moe_router_force_load_balancing",
)
_VIRTUAL: Final = (
    "virtual_pipeline_model_parallel_size",
    "pipeline_model_parallel_layout",
    "pipeline_model_parallel_size",
)
_PACKED: Final = (
    *("sft", "dataset.enable_offline_packing", "dataset.enable_in_batch_packing"),
    "dataset.packing_buffer_size",
)
_PADDING: Final = ("moe_router_padding_for_quantization", "moe_router_padding_for_fp8")


@dataclass(frozen=True, slots=True)
class Option:
    """One row. `takes`: the placeholder of its value. `is_knob`: it gives the first of `knobs` as it stands.

    `knobs`: all that tell the same; a change of one of them outdates what was given.
    """

    kind: type
    takes: str
    help: str
    knobs: tuple[str, ...] = ()
    is_knob: bool = False


def _knob(kind: type, takes: str, help: str, *knobs: str) -> Option:
    return Option(kind, takes, help, knobs, is_knob=True)


OPTIONS: Final[Mapping[str, Option]] = {
    "gpu": Option(str, "NAME", "GPU model, such as H100 or GB200.", ("launcher.gpu",)),
    "nvlink_domain": Option(int, "N", "GPUs in one NVLink domain (8, 72)."),
    "world_size": _knob(int, "N", "Ranks in all, where no file has them.", "world_size"),
    "gpus_per_node": _knob(int, "N", "GPUs, and so ranks, of a node.", "launcher.gpus_per_node"),
    "ep": _knob(int, "N", "Expert-parallel size.", "expert_model_parallel_size"),
    "etp": _knob(int, "N", "Expert-tensor-parallel size.", "expert_tensor_parallel_size"),
    "tp": _knob(int, "N", "Tensor-parallel size.", "tensor_model_parallel_size"),
    "cp": _knob(int, "N", "Context-parallel size.", "context_parallel_size"),
    "pp": _knob(int, "N", "Pipeline-parallel size.", "pipeline_model_parallel_size"),
    "vpp": _knob(int, "N", "Virtual pipeline stages.", *_VIRTUAL),
    "precision": Option(str, "NAME", "Precision of the matrix work, such as bf16 or mxfp8.", _PRECISION),
    "stage": Option(str, "bring_up|tuned", "How far the run is tuned."),
    "routing": Option(str, "dropless|force_balance|drop_pad", "How tokens are routed.", _ROUTING),
    "family": Option(
        str,
        "NAME",
        "dsv3, qwen3_235b, qwen3_30b, qwen3_next or vlm.",
        ("num_layers", "hidden_size", "num_moe_experts", "moe_router_topk"),
    ),
    "memory_tight": Option(bool, "", "Memory has no room."),
    "flex_package": Option(bool, "", "DeepEP or HybridEP can be imported."),
    "cpu_bound_to_numa": _knob(
        bool, "", "Ranks are bound to the CPUs near their GPU.", "launcher.numa_binding"
    ),
    "core_version": Option(str, "V", "Megatron-Core version."),
    "bridge_version": Option(str, "V", "Megatron-Bridge version."),
    "torch_version": Option(str, "V", "PyTorch version."),
    "te_version": Option(str, "V", "Transformer Engine version."),
    "container": Option(str, "NAME", "Container the run is in."),
    "pp_layout": _knob(str, "TEXT", "Pipeline layout.", "pipeline_model_parallel_layout"),
    "graph_impl": _knob(
        str, "NAME", "cuda_graph_impl.", "cuda_graph_impl", "enable_cuda_graph", "external_cuda_graph"
    ),
    "graph_modules": _knob(str, "A,B", "Modules captured into CUDA graphs.", "cuda_graph_modules"),
    "packed_sequences": Option(bool, "", "Sequences are packed.", _PACKED),
    "router_padding": _knob(bool, "", "The router pads for low precision.", *_PADDING),
    "te_op_fuser": _knob(bool, "", "Transformer Engine's op fuser is on.", "use_transformer_engine_op_fuser"),
    "env": Option(list, "NAME=VALUE", "A variable of its environment; repeat for several."),
    "guidance": Option(str, "seed|main-2026-08", "Which edition of NVIDIA's guides decides."),
}
"""By field of `Given`."""

_RENAMED: Final = {"gpu": "gpu-model"}
"""A command has `--gpu N` of its own."""


def option_of(field: str) -> str:
    """The option that gives a field: `--core-version`."""
    return "--" + _RENAMED.get(field, field.replace("_", "-"))

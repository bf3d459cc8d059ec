"""What the user may give of a run: a field of `Given` is a row that has its option, its help and its knobs.

A setting that is one knob stands here once: options, files and the trace meet under the knob's id.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal

Guidance = Literal["seed", "main-2026-08"]
NEWEST: Final[Guidance] = "main-2026-08"
"""NVIDIA's published guides: `seed` of Megatron-Bridge up to 0.6, `main-2026-08` of its main since then."""

Stage = Literal["bring_up", "tuned"]
Routing = Literal["dropless", "force_balance", "drop_pad"]

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
_FAMILY: Final = ("num_layers", "hidden_size", "num_moe_experts", "moe_router_topk")
GRAPH_KNOBS: Final = ("cuda_graph_impl", "enable_cuda_graph", "external_cuda_graph")


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


def _given(kind: type, takes: str, help: str, *knobs: str, is_knob: bool = False, default: Any = None) -> Any:
    return field(default=default, metadata={"option": Option(kind, takes, help, knobs, is_knob)})


def _knob(kind: type, takes: str, help: str, *knobs: str) -> Any:
    return _given(kind, takes, help, *knobs, is_knob=True)


@dataclass(frozen=True, slots=True)
class Given:
    """What the user gives about a run; None is unknown, never no. Sizes are counts of ranks.

    `env`: as `NAME=VALUE`, which a YAML of Megatron-Bridge has no place for. `graph_impl`, `graph_modules`:
    as Megatron-Core takes them.
    """

    gpu: str | None = _given(str, "NAME", "GPU model, such as H100 or GB200.", "launcher.gpu")
    nvlink_domain: int | None = _given(int, "N", "GPUs in one NVLink domain (8, 72).")
    world_size: int | None = _knob(int, "N", "Ranks in all, where no file has them.", "world_size")
    gpus_per_node: int | None = _knob(int, "N", "GPUs, and so ranks, of a node.", "launcher.gpus_per_node")
    ep: int | None = _knob(int, "N", "Expert-parallel size.", "expert_model_parallel_size")
    etp: int | None = _knob(int, "N", "Expert-tensor-parallel size.", "expert_tensor_parallel_size")
    tp: int | None = _knob(int, "N", "Tensor-parallel size.", "tensor_model_parallel_size")
    cp: int | None = _knob(int, "N", "Context-parallel size.", "context_parallel_size")
    pp: int | None = _knob(int, "N", "Pipeline-parallel size.", "pipeline_model_parallel_size")
    vpp: int | None = _knob(int, "N", "Virtual pipeline stages.", *_VIRTUAL)
    precision: str | None = _given(
        str, "NAME", "Precision of the matrix work, such as bf16 or mxfp8.", *_PRECISION
    )
    stage: Stage | None = _given(str, "bring_up|tuned", "How far the run is tuned.")
    routing: Routing | None = _given(
        str, "dropless|force_balance|drop_pad", "How tokens are routed.", *_ROUTING
    )
    family: str | None = _given(str, "NAME", "dsv3, qwen3_235b, qwen3_30b, qwen3_next or vlm.", *_FAMILY)
    memory_tight: bool | None = _given(bool, "", "Memory has no room.")
    flex_package: bool | None = _given(bool, "", "DeepEP or HybridEP can be imported.")
    cpu_bound_to_numa: bool | None = _knob(
        bool, "", "Ranks are bound to the CPUs near their GPU.", "launcher.numa_binding"
    )
    core_version: str | None = _given(str, "V", "Megatron-Core version.")
    bridge_version: str | None = _given(str, "V", "Megatron-Bridge version.")
    torch_version: str | None = _given(str, "V", "PyTorch version.")
    te_version: str | None = _given(str, "V", "Transformer Engine version.")
    container: str | None = _given(str, "NAME", "Container the run is in.")
    pp_layout: str | None = _knob(str, "TEXT", "Pipeline layout.", "pipeline_model_parallel_layout")
    graph_impl: str | None = _knob(str, "NAME", "cuda_graph_impl.", *GRAPH_KNOBS)
    graph_modules: tuple[str, ...] | None = _knob(
        str, "A,B", "Modules captured into CUDA graphs.", "cuda_graph_modules"
    )
    packed_sequences: bool | None = _given(bool, "", "Sequences are packed.", *_PACKED)
    router_padding: bool | None = _knob(bool, "", "The router pads for low precision.", *_PADDING)
    te_op_fuser: bool | None = _knob(
        bool, "", "Transformer Engine's op fuser is on.", "use_transformer_engine_op_fuser"
    )
    env: tuple[str, ...] | None = _given(
        list, "NAME=VALUE", "A variable of its environment; repeat for several."
    )
    guidance: Guidance = _given(
        str, "seed|main-2026-08", "Which edition of NVIDIA's guides decides.", default=NEWEST
    )


OPTIONS: Final[Mapping[str, Option]] = {one.name: one.metadata["option"] for one in fields(Given)}

_RENAMED: Final = {"gpu": "gpu-model"}
"""A command has `--gpu N` of its own."""


def option_of(field: str) -> str:
    """The option that gives a field: `--core-version`."""
    return "--" + _RENAMED.get(field, field.replace("_", "-"))


_FIELDS: Final = {option_of(field): field for field in OPTIONS}


def not_given(options: str, given: Given) -> str:
    """Of options such as "--nvlink-domain or --gpu-model" those that were not given; empty where all were."""
    left = (
        one for one in options.split(" or ") if one not in _FIELDS or getattr(given, _FIELDS[one]) is None
    )
    return " or ".join(left)

"""EP overlap, delayed weight gradients, TP overlap: the guide's failure table, and what code adds to it."""

from __future__ import annotations

from typing import Final

from heuristics.rules.failures.failure import Row, refused, said

_SKILL: Final = "Megatron-Bridge, skills/nemo-mbridge-perf-expert-parallel-overlap/SKILL.md at 067f987d"

OVERLAP_ROWS: Final[tuple[Row, ...]] = (
    refused(
        "overlap-graph-modules",
        "ep_overlap",
        "CUDA graphs hold moe or mlp, which EP overlap splits; Megatron-Core 0.16 refuses any graphs but "
        "Transformer Engine's with these words too",
        "cuda_graph_modules (cuda_graph_scope before 0.18) and cuda_graph_impl",
        "capture attn, moe_router and moe_preprocess with transformer_engine",
        "HST-3",
        {"cuda_graph_impl": "transformer_engine", "cuda_graph_modules": ("moe_router", "moe_preprocess")},
    ),
    refused(
        "connections-not-one",
        "ep_overlap",
        "before Blackwell, TP or CP wants one hardware queue, and Megatron-LM insists unless EP overlap or "
        "FSDP is on",
        "env.CUDA_DEVICE_MAX_CONNECTIONS",
        "CUDA_DEVICE_MAX_CONNECTIONS=1",
        "COM-13",
        {"env.CUDA_DEVICE_MAX_CONNECTIONS": "1"},
    ),
    refused(
        "connections-one",
        "ep_overlap",
        "FSDP wants more than one hardware queue",
        "env.CUDA_DEVICE_MAX_CONNECTIONS",
        "leave CUDA_DEVICE_MAX_CONNECTIONS unset, or above 1",
        "COM-13",
        {"env.CUDA_DEVICE_MAX_CONNECTIONS": "8"},
    ),
    Row(
        "overlap-energon-off",
        "ep_overlap",
        "skipped",
        "Energon's native packing switches EP overlap and delayed weight gradients off",
        "packing_buffer_size of the data set, and no layer_<i>f-layer_<j>b range in a trace",
        "an unpacked data path, or accept the step without overlap",
        "CFG-6",
        said("overlap-energon-off"),
    ),
    refused(
        "wgrad-graph-te",
        "delayed_wgrad",
        "CUDA graphs of parts beside delayed weight gradients need Transformer Engine 2.10.0, graphed "
        "attention or shared experts 2.12.0",
        "Transformer Engine's version, cuda_graph_modules",
        "Transformer Engine 2.12.0 or newer, or no delay",
        "ENV-3",
        {"delay_wgrad_compute": False},
    ),
    refused(
        "wgrad-graph-fusion",
        "delayed_wgrad",
        "graphed weight gradients need fixed addresses, which only fused accumulation has",
        "gradient_accumulation_fusion",
        "set gradient_accumulation_fusion",
        "CFG-8",
        {"gradient_accumulation_fusion": True},
        _SKILL,
    ),
    refused(
        "wgrad-graph-bias",
        "delayed_wgrad",
        "graphed attention with a bias beside delayed weight gradients",
        "add_bias_linear, add_qkv_bias",
        "drop the bias if the model allows it, else take attn out of the graphs or leave the delay off",
        "CFG-9",
        source=_SKILL,
    ),
    Row(
        "tp-overlap-off",
        "tp_overlap",
        "skipped",
        "TP overlap was switched off: TP below 2, no sequence parallelism, or no Transformer Engine",
        "tensor_model_parallel_size, sequence_parallel, and the word in the warning",
        "with TP of 2 and more set sequence_parallel; with TP of 1 there is nothing to overlap",
        "COM-5",
        said("tp-overlap-off"),
        {"sequence_parallel": True},
    ),
    Row(
        "tp-overlap-layer-off",
        "tp_overlap",
        "skipped",
        "Transformer Engine has no user buffer for a layer, which runs without TP overlap",
        "which layers have a bulk or pipelined overlap in tp_comm_overlap_cfg",
        "name a configuration for that layer, or accept it",
        "COM-5",
        said("tp-overlap-layer-off"),
    ),
    refused(
        "tp-overlap-no-sp",
        "tp_overlap",
        "TP overlap without sequence parallelism",
        "sequence_parallel",
        "set sequence_parallel",
        "COM-5",
        {"sequence_parallel": True},
    ),
)

"""EP overlap, delayed weight gradients, TP overlap: the guide's failure table, and what code adds to it."""

from __future__ import annotations

from typing import Final

from heuristics.rules.failures.failure import Row, refused

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
)

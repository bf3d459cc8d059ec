"""CUDA graphs: what refuses them, and what makes them fail."""

from __future__ import annotations

from typing import Final

from heuristics.rules.failures.failure import Row, Seen, refused, said
from traces.settings.settings import Settings
from traces.training_log.log import TrainingLog

_ROUTER: Final = ("moe_router", "moe_preprocess")


def _illegal_access(log: TrainingLog, settings: Settings) -> Seen | None:
    """Graphs with expandable segments: a known cause, where the configuration does not rule it out."""
    message = log.first("illegal-access")
    graphs = settings.value("cuda_graph_impl") not in (None, "none") or log.first(
        "graph-captured", "graph-capture-begins"
    )
    segments = settings.value("env.PYTORCH_CUDA_ALLOC_CONF")
    ruled_out = (isinstance(segments, str) and "expandable_segments:True" not in segments) or settings.value(
        "env.NCCL_GRAPH_REGISTER"
    ) == "0"
    return Seen(message.line) if message and graphs and not ruled_out else None


GRAPH_ROWS: Final[tuple[Row, ...]] = (
    refused(
        "graph-register",
        "cuda_graphs",
        "expandable segments while NCCL registers graph buffers: replay would reach memory that has moved",
        "PYTORCH_CUDA_ALLOC_CONF and NCCL_GRAPH_REGISTER of the run",
        "NCCL_GRAPH_REGISTER=0; keep the expandable segments",
        "CFG-10",
        {"env.NCCL_GRAPH_REGISTER": "0"},
    ),
    refused(
        "graph-expandable",
        "cuda_graphs",
        "Megatron-Core before 0.16 refuses expandable segments beside CUDA graphs",
        "PYTORCH_CUDA_ALLOC_CONF of the run",
        "Megatron-Core 0.16 or newer with NCCL_GRAPH_REGISTER=0, or no expandable segments",
        "ENV-2",
    ),
    Row(
        "graph-illegal-access",
        "cuda_graphs",
        "failed",
        "an illegal memory access with CUDA graphs: expandable segments while NCCL registers graph buffers "
        "is the known cause",
        "PYTORCH_CUDA_ALLOC_CONF holds expandable_segments:True, NCCL_GRAPH_REGISTER is not 0; else "
        "CUDA_LAUNCH_BLOCKING=1 without graphs",
        "NCCL_GRAPH_REGISTER=0",
        "CFG-10",
        _illegal_access,
        {"env.NCCL_GRAPH_REGISTER": "0"},
        "Megatron-LM, megatron/core/transformer/cuda_graphs.py at d98e8a64",
    ),
    refused(
        "graph-full-recompute",
        "cuda_graphs",
        "full recompute goes with a graph of the full iteration only",
        "recompute_granularity and cuda_graph_impl",
        "recompute selectively",
        "MEM-2",
        {"recompute_granularity": "selective", "recompute_method": None, "recompute_num_layers": None},
    ),
    refused(
        "graph-moe-recompute",
        "cuda_graphs",
        "moe is recomputed around a graphed router",
        "moe in recompute_modules, moe_router in cuda_graph_modules",
        "recompute moe_act and layernorm in place of moe",
        "MEM-2",
        {"recompute_modules": ("moe_act", "layernorm")},
    ),
    refused(
        "graph-moe-dropless",
        "cuda_graphs",
        "a graph of the whole MoE layer needs fixed sizes: drop-and-pad only",
        "moe in cuda_graph_modules, moe_expert_capacity_factor, moe_pad_expert_input_to_capacity",
        "capture moe_router and moe_preprocess instead of moe",
        "HST-3",
        {"cuda_graph_modules": _ROUTER},
    ),
    refused(
        "graph-moe-and-router",
        "cuda_graphs",
        "moe holds moe_router already",
        "cuda_graph_modules (cuda_graph_scope before 0.18)",
        "one of them: moe_router and moe_preprocess for dropless models",
        "HST-3",
        {"cuda_graph_modules": _ROUTER},
    ),
    refused(
        "graph-preprocess-alone",
        "cuda_graphs",
        "moe_preprocess follows the router, and is captured with it only",
        "cuda_graph_modules (cuda_graph_scope before 0.18)",
        "capture moe_router as well",
        "HST-3",
        {"cuda_graph_modules": _ROUTER},
    ),
    refused(
        "graph-preprocess-sync",
        "cuda_graphs",
        "with alltoall, a capacity factor or router padding copies counts to the host inside moe_preprocess",
        "moe_expert_capacity_factor, moe_router_padding_for_fp8, moe_token_dispatcher_type",
        "capture moe_router without moe_preprocess, or use a flex dispatcher",
        "HST-3",
        {"cuda_graph_modules": ("moe_router",)},
    ),
    Row(
        "graph-sync-order",
        "cuda_graphs",
        "failed",
        "alltoall with moe_router_padding_for_quantization waits for counts before they are copied once "
        "moe_preprocess is captured; the configuration's check looks at the older field only",
        "moe_preprocess in cuda_graph_modules, moe_router_padding_for_quantization, alltoall",
        "capture moe_router without moe_preprocess, or use a flex dispatcher",
        "HST-3",
        said("graph-sync-order"),
        {"cuda_graph_modules": ("moe_router",)},
    ),
    refused(
        "graph-no-such-layer",
        "cuda_graphs",
        "the graphs name a kind of layer that the model does not have",
        "mlp needs dense layers (moe_layer_freq), moe needs num_moe_experts",
        "leave that module out of cuda_graph_modules",
        "HST-3",
    ),
    refused(
        "graph-cpu-offload",
        "cuda_graphs",
        "layers offloaded to the CPU cannot be captured; from Megatron-Core 0.18 a full iteration can",
        "cpu_offloading and cuda_graph_impl",
        "offload activations (MEM-6) or the optimizer (MEM-7) in place of layers",
        "MEM-6",
        {"cpu_offloading": False},
    ),
    refused(
        "graph-rng",
        "cuda_graphs",
        "graphs need Transformer Engine's random number tracker",
        "use_te_rng_tracker of the model and te_rng_tracker of rng",
        "switch the tracker on",
        "CFG-11",
        {"use_te_rng_tracker": True, "rng.te_rng_tracker": True},
    ),
    refused(
        "graph-nan-check",
        "cuda_graphs",
        "a check for NaN waits for the GPU inside what the graph of the full iteration holds",
        "check_for_nan_in_loss and check_for_nan_in_grad",
        "switch both checks off",
        "CFG-12",
        {"rerun.check_for_nan_in_loss": False, "ddp.check_for_nan_in_grad": False},
    ),
    refused(
        "graph-dropout",
        "cuda_graphs",
        "what is captured and recomputed may not draw random numbers",
        "attention_dropout, hidden_dropout, moe_input_jitter_eps",
        "no dropout and no jitter, or take the module out of recompute or of the graphs",
        "MEM-2",
        {"attention_dropout": 0.0, "hidden_dropout": 0.0, "moe_input_jitter_eps": None},
    ),
    refused(
        "graph-full-iteration-spelling",
        "cuda_graphs",
        "the graph of the full iteration is spelled local with scope full_iteration up to Megatron-Core "
        "0.17, and cuda_graph_impl full_iteration without modules from 0.18 on",
        "Megatron-Core's version, cuda_graph_impl, cuda_graph_modules or cuda_graph_scope",
        "the spelling of the version that runs",
        "HST-7",
    ),
    refused(
        "graph-two-spellings",
        "cuda_graphs",
        "both the old and the new name of the captured modules are set",
        "cuda_graph_scope and cuda_graph_modules",
        "keep cuda_graph_modules, the name from Megatron-Core 0.18 on",
        "CFG-13",
    ),
    refused(
        "graph-bridge-local",
        "cuda_graphs",
        "Megatron-Bridge takes local graphs for a full iteration only",
        "cuda_graph_impl",
        "transformer_engine for parts of a layer",
        "HST-3",
        {"cuda_graph_impl": "transformer_engine"},
    ),
    refused(
        "graph-packed",
        "cuda_graphs",
        "packed sequences change shapes, and a graph replays fixed ones",
        "packing and padding of the data set",
        "pad to the maximum length, and pad cu_seqlens where attention is captured; or no graphs",
        "CFG-14",
    ),
    refused(
        "graph-offload-warm-up",
        "cuda_graphs",
        "fine-grained offload learns its tensors in steps before the capture",
        "cuda_graph_warmup_steps",
        "at least one warm-up step; 3 by default",
        "CFG-15",
        {"cuda_graph_warmup_steps": 3},
    ),
    refused(
        "graph-excluded",
        "cuda_graphs",
        "Megatron-FSDP v2 and hybrid context parallelism do not go with CUDA graphs",
        "megatron_fsdp_version, hybrid_context_parallel",
        "no graphs, or another way of sharding",
        "CFG-16",
        {"cuda_graph_impl": "none"},
    ),
    refused(
        "graph-node-priority",
        "cuda_graphs",
        "generalised tensor parallelism on Blackwell needs priorities on graph nodes",
        "env.CUDA_GRAPHS_USE_NODE_PRIORITY",
        "CUDA_GRAPHS_USE_NODE_PRIORITY=1",
        "CFG-17",
        {"env.CUDA_GRAPHS_USE_NODE_PRIORITY": "1"},
    ),
    Row(
        "graph-nothing-captured",
        "cuda_graphs",
        "skipped",
        "graphs are on and no layer could be captured: every step runs eagerly",
        "no cudaGraphLaunch in a trace; cuda_graph_modules against the layers the model has",
        "name modules that the model has: moe_router and moe_preprocess, attn",
        "HST-3",
        said("graph-nothing-captured"),
        {"cuda_graph_modules": _ROUTER},
    ),
)

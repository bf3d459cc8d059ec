"""What can move which rows, where no fix of the catalogue says it: a source per row."""

from __future__ import annotations

from typing import Final

from heuristics.comparison.suspects.mover_table import Mover

_GUIDE: Final = "Megatron-Bridge, docs/performance-guide.md at 067f987d"
_README: Final = "Megatron-LM, megatron/core/transformer/moe/README.md at d98e8a64"
_CONFIG: Final = "Megatron-LM, megatron/core/transformer/transformer_config.py at d98e8a64"
_ARGUMENTS: Final = "Megatron-LM, megatron/training/arguments.py at d98e8a64"
_GRAPHS: Final = "Megatron-Bridge, docs/training/cuda-graphs.md at 067f987d"
_RECOMPUTE: Final = "Megatron-Bridge, skills/nemo-mbridge-perf-activation-recompute at 067f987d"
_OFFLOAD: Final = "Megatron-Bridge, docs/training/cpu-offloading.md at 067f987d"
_OVERLAP: Final = "Megatron-Bridge, docs/training/communication-overlap.md at 067f987d"
_MEMORY: Final = "Megatron-Bridge, skills/nemo-mbridge-perf-memory-tuning at 067f987d: TP 4 to 8 cost 28.4 %"
_GB200: Final = "Megatron-LM, docs/discussions/deepseek-v3-gb200-optimization at 1d9edcf8"
_CONTAINERS: Final = "Megatron-Bridge, skills/nemo-mbridge-perf-moe-hardware-configs at 067f987d: containers"
_AFFINITY: Final = "Megatron-Bridge v0.5.1 release notes, known issues; NVIDIA/nccl issue 2033"

_PROFILED: Final = "Megatron-Bridge, skill nsys-analysis: profiled steps are perturbed"

_EP: Final = ("exposed_comm.ep_*", "exposed_comm.sendrecv_unresolved")
_READS: Final = ("launch_starved.sync", "launch_starved.token_count_sync")
"""What the host does late behind a call that waited, or a poll."""
_HOST: Final = ("launch_starved.launch", "launch_starved.python", "launch_starved.os_wait")
_LAUNCHES: Final = (*_HOST, "launch_latency.*", "idle")
_GEMMS: Final = ("compute.gemm", "compute.grouped_gemm")
_DEPENDENT: Final = ("dependency_stalled", "trailing", "graph_opaque")
_ALL: Final = ("*",)

_MEMORY_SAVERS: Final = (
    Mover(
        ("recompute_*", "moe_layer_recompute", "detected.recompute*"),
        _RECOMPUTE,
        slower=("compute.*", *_EP, "exposed_comm.tp", *_LAUNCHES),
    ),
    Mover(
        ("fine_grained_*", "offload_modules", "activation_offload_fraction", "*offload*", "memory.offload_*"),
        _OFFLOAD,
        slower=("exposed_copy.*", "launch_starved.sync", *_HOST),
    ),
    Mover(
        ("optimizer.optimizer_cpu_offload", "optimizer.optimizer_offload_fraction"),
        _OFFLOAD,
        slower=(*_HOST, "launch_starved.sync", "exposed_copy.*"),
        either=("compute.optimizer",),
    ),
    Mover(("optimizer.overlap_cpu_optimizer_d2h_h2d",), _OFFLOAD, faster=("exposed_copy.*", *_HOST)),
    Mover(("optimizer.*",), _CONFIG, either=("compute.optimizer", "compute.elementwise", "compute.memory")),
    Mover(
        ("env.PYTORCH_*ALLOC_CONF", "env.TORCH_NCCL_AVOID_RECORD_STREAMS", "memory.allocator_*"),
        _GUIDE,
        either=("launch_starved.allocator",),
    ),
    Mover(("train.empty_unused_memory_level",), _ARGUMENTS, slower=("launch_starved.allocator",)),
    Mover(("moe_paged_stash*",), _CONFIG, either=("exposed_copy.*", "compute.memory", "launch_starved.*")),
)
_HOST_SETTINGS: Final = (
    Mover(
        ("cuda_graph_*", "enable_cuda_graph", "external_cuda_graph", "graph_*", "detected.graph_share_frac"),
        _GRAPHS,
        faster=(*_LAUNCHES, *_READS),
        either=("graph_opaque", "compute.graph_replay"),
    ),
    Mover(("launcher.numa_binding", "cpu_bound_to_numa"), _GB200, faster=(*_LAUNCHES, *_READS)),
    Mover(("env.CUDA_LAUNCH_BLOCKING",), _ARGUMENTS, slower=("launch_starved.*", "launch_latency.*")),
    Mover(
        ("profiling.*",),
        _PROFILED,
        slower=("launch_starved.profiler", *_LAUNCHES),
    ),
    Mover(("recorder*",), _PROFILED, either=("launch_starved.profiler", *_LAUNCHES)),
    Mover(
        ("logger.timing_log_level", "*check_for_nan_in*"),
        _ARGUMENTS,
        slower=("launch_starved.sync", "launch_starved.python", "compute.elementwise"),
    ),
    Mover(("env.NCCL_DEBUG", "env.NVTE_DEBUG"), _GUIDE, either=_HOST),
    Mover(
        ("checkpoint.*",),
        _ARGUMENTS,
        either=("exposed_copy.*", "launch_starved.os_wait", "launch_starved.python"),
    ),
    Mover(("*num_workers", "*dataloader*"), _ARGUMENTS, either=("launch_starved.data",)),
)
_DISPATCH: Final = (
    Mover(
        (
            "moe_token_dispatcher_type",
            "moe_flex_dispatcher_backend",
            "moe_enable_deepep",
            "detected.dispatcher",
            "dispatcher.kernels",
        ),
        _README,
        either=(
            *_EP,
            "compute.permute",
            "compute.router",
            "compute.memory",
            "compute.elementwise",
            "exposed_copy.*",
            "launch_starved.*",
            "launch_latency.*",
        ),
    ),
    Mover(
        ("moe_*num_sms*", "moe_hybridep_*", "moe_ncclep_*", "sm.comm_blocks_mean"),
        _CONFIG,
        either=(*_EP, *_GEMMS),
    ),
    Mover(
        ("*overlap_moe_expert_parallel_comm", "detected.ep_overlap"),
        _GB200,
        slower=("launch_starved.*", "launch_latency.*"),
        faster=_EP,
        either=("compute.*",),
    ),
    Mover(
        ("moe_router_*", "moe_aux_loss_coeff", "moe_z_loss_coeff", "routing"),
        _README,
        either=(*_EP, "compute.router", "compute.elementwise", "compute.grouped_gemm", "compute.permute"),
    ),
    Mover(
        ("*capacity*", "moe_token_drop*", "moe_router_padding_for_quantization", "router_padding"),
        _README,
        either=(
            *_EP, *_GEMMS, "compute.permute", "launch_starved.token_count_sync", "launch_starved.sync",
        ),
    ),
    Mover(("moe_*_dtype",), _CONFIG, either=(*_EP, "compute.router", "compute.permute")),
)  # fmt: skip
_COMMUNICATION: Final = (
    Mover(("*overlap_grad_reduce", "*overlap_param_gather*"), _OVERLAP, either=("compute.norm",)),
    Mover(("ddp.*", "*bucket_size", "*align_param_gather"), _OVERLAP, either=("exposed_comm.dp_*",)),
    Mover(("*tp_comm_overlap*",), _OVERLAP, faster=("exposed_comm.tp", "exposed_comm.all_reduce")),
    Mover(
        ("sequence_parallel",),
        _OVERLAP,
        either=("exposed_comm.tp", "exposed_comm.all_reduce", "compute.norm"),
    ),
    Mover(("*overlap_p2p_comm*", "*batch_p2p_*"), _OVERLAP, either=("exposed_comm.pp_p2p", *_DEPENDENT)),
    Mover(
        ("env.NCCL_*", "env.NVSHMEM_*", "env.USE_MNNVL", "env.NVLINK_DOMAIN_SIZE", "env.NUM_OF_*"),
        _GUIDE,
        either=("exposed_comm.*",),
    ),
    Mover(
        ("env.CUDA_DEVICE_MAX_CONNECTIONS",),
        _ARGUMENTS,
        either=("exposed_comm.*", *_DEPENDENT, "launch_latency.*"),
    ),
    Mover(("env.TORCH_NCCL_HIGH_PRIORITY", "*stream*"), _GUIDE, either=("exposed_comm.*",)),
    Mover(("nvlink_domain",), _README, either=_EP),
)
_PARALLEL: Final = (
    Mover(
        ("tensor_model_parallel_size", "tp"),
        _MEMORY,
        slower=("exposed_comm.tp", "exposed_comm.all_reduce"),
        either=("compute.*", *_LAUNCHES),
        is_broad=True,
    ),
    Mover(
        ("expert_model_parallel_size", "expert_tensor_parallel_size", "ep", "etp"),
        _README,
        either=(*_EP, "exposed_comm.dp_*", *_GEMMS, "compute.permute", *_HOST),
    ),
    Mover(
        ("context_parallel_size", "cp", "cp_comm_type", "hierarchical_context_*"),
        _README,
        either=("exposed_comm.cp", "exposed_comm.sendrecv_unresolved", "compute.attention"),
    ),
    Mover(
        ("*pipeline*", "pp", "vpp", "pp_layout", "microbatch_group_size_per_vp_stage"),
        _README,
        either=("exposed_comm.pp_p2p", "exposed_comm.sendrecv_unresolved", "compute.*", *_DEPENDENT),
        is_broad=True,
    ),
    Mover(("data_parallel_size", "world_size"), _README, either=("exposed_comm.*",)),
    Mover(
        ("ddp.use_megatron_fsdp", "ddp.data_parallel_sharding_strategy"), _GUIDE, either=_ALL, is_broad=True
    ),
)
_KERNELS: Final = (
    Mover(
        ("*fp8*", "*fp4*", "*bf16*", "mixed_precision", "precision", "*params_dtype", "detected.precision*"),
        _README,
        either=(
            *_GEMMS, "compute.attention", "compute.quantize", "compute.elementwise", "compute.memory",
            "compute.norm", *_LAUNCHES,
        ),
    ),
    Mover(
        ("*_fusion", "*_fusion_impl", "fused_*", "use_te_*", "use_transformer_engine_op_fuser", "moe_use_*"),
        _README,
        faster=(
            "compute.elementwise", "compute.permute", "compute.router", "compute.norm", "compute.loss",
            "compute.rope", "compute.softmax", "compute.activation", "compute.memory", *_LAUNCHES,
        ),
        either=_GEMMS,
    ),
    Mover(("moe_grouped_gemm", "moe_mlp_glu_*"), _README, faster=("compute.gemm", *_LAUNCHES), either=_GEMMS),
    Mover(
        ("attention_backend", "env.NVTE_*_ATTN", "env.NVTE_ALLOW_NONDETERMINISTIC_ALGO", "*softmax*"),
        _ARGUMENTS,
        either=("compute.attention", "compute.softmax", "compute.elementwise"),
    ),
    Mover(
        ("env.NVTE_*LAYERNORM*", "env.NVTE_NORM_*", "*layer_norm", "normalization"),
        _GUIDE,
        either=("compute.norm", "exposed_comm.dp_*"),
    ),
    Mover(("deterministic_mode", "batch_invariant_mode"), _ARGUMENTS, slower=("compute.*",)),
    Mover(("transformer_impl",), _CONFIG, either=("compute.*", *_LAUNCHES)),
    Mover(("cross_entropy_*", "*vocab_size*"), _ARGUMENTS, either=("compute.loss", "compute.embedding")),
    Mover(("detected.short_kernel_frac",), _README, either=_LAUNCHES),
)  # fmt: skip
_BROAD: Final = (
    Mover(
        ("train.micro_batch_size", "train.global_batch_size", "*seq_length", "*hidden_size", "num_layers"),
        _README,
        either=_ALL,
        is_broad=True,
    ),
    Mover(
        ("num_moe_experts", "moe_router_topk", "moe_layer_freq", "mtp_*", "moe_latent_size", "family"),
        _README,
        either=_ALL,
        is_broad=True,
    ),
    Mover(("version.nccl",), _AFFINITY, either=("exposed_comm.*", *_LAUNCHES, *_READS)),
    Mover(("version.te",), _CONTAINERS, either=("compute.*", *_LAUNCHES), is_broad=True),
    Mover(("version.cuda",), _CONTAINERS, either=("compute.*", *_LAUNCHES), is_broad=True),
    Mover(("version.python",), "ours: it is what runs between launches", either=_HOST, is_broad=True),
    Mover(
        ("version.torch", "version.core", "version.bridge", "version.container", "container"),
        _CONTAINERS,
        either=_ALL,
        is_broad=True,
    ),
    Mover(("*_version",), _CONTAINERS, either=_ALL, is_broad=True),
    Mover(("gpu*",), "ours: another GPU is another machine", either=_ALL, is_broad=True),
)

MOVERS: Final = (
    *_MEMORY_SAVERS,
    *_HOST_SETTINGS,
    *_DISPATCH,
    *_COMMUNICATION,
    *_PARALLEL,
    *_KERNELS,
    *_BROAD,
)

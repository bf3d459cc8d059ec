"""What configurations are drawn of: models, sizes, values of each knob; and what a knob is reset to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.configurations.constraints import of_release
from traces.settings.settings import Value

VERSIONS: Final[tuple[tuple[str | None, str | None], ...]] = (
    *((("0.16.1", None),) * 4),
    *((("0.16.1", "0.3.1"),) * 4),
    *(("0.14.0", None), ("0.15.0", None), ("0.18.0", None), ("0.18.0", "0.5.0"), ("0.19.0", None)),
    *(("0.19.0", "0.6.0"), (None, None)),
)
"""Of Megatron-Core, and of Megatron-Bridge where it is Bridge's; those that can be asked most often."""

_MLA: Final[Mapping[str, Value]] = {
    "multi_latent_attention": True, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_head_dim": 128,
    "qk_pos_emb_head_dim": 64, "v_head_dim": 128,
}  # fmt: skip


def _model(layers: int, hidden: int, heads: int, groups: int | None, **more: Value) -> dict[str, Value]:
    return {
        "num_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_query_groups": groups,
        "group_query_attention": groups is not None,
        "ffn_hidden_size": 4 * hidden,
        **more,
    }


def _experts(count: int, topk: int, size: int, shared: int | None = None) -> dict[str, Value]:
    return {
        "num_moe_experts": count,
        "moe_router_topk": topk,
        "moe_ffn_hidden_size": size,
        "moe_shared_expert_intermediate_size": shared,
    }


MODELS: Final[tuple[dict[str, Value], ...]] = (
    _model(48, 2048, 32, 4, **_experts(128, 8, 768)),
    _model(94, 4096, 64, 4, **_experts(128, 8, 1536)),
    _model(32, 4096, 32, 8, **_experts(8, 2, 14336)),
    _model(24, 2048, 16, 2, **_experts(60, 4, 1408, 5632)),
    _model(48, 2048, 16, 2, **_experts(512, 10, 512, 512)),
    _model(61, 7168, 128, None, **_experts(256, 8, 2048, 2048), **_MLA),
    _model(27, 2048, 16, None, **_experts(64, 6, 1408, 2816), **_MLA),
    _model(32, 4096, 32, 8, num_moe_experts=None),
)

SIZES: Final[Mapping[str, tuple[int, ...]]] = {
    "tensor_model_parallel_size": (1, 1, 2, 4),
    "context_parallel_size": (1, 1, 1, 2),
    "pipeline_model_parallel_size": (1, 1, 2, 4, 8),
    "expert_model_parallel_size": (1, 4, 8, 8, 16, 32, 64),
    "expert_tensor_parallel_size": (1, 1, 1, 2),
}

_RARELY: Final = (False, False, False, False, True)

POOL: Final[Mapping[str, tuple[Value, ...]]] = {
    "virtual_pipeline_model_parallel_size": (None, None, 2, 3, 4),
    "sequence_parallel": (True, True, False),
    "seq_length": (4096, 8192, 32768),
    "position_embedding_type": ("rope",),
    "mtp_num_layers": (None, None, 1, 2),
    "cp_comm_type": ("p2p", "p2p", "a2a"),
    "moe_token_dispatcher_type": ("alltoall", "alltoall", "alltoall", "flex", "flex", "allgather"),
    "moe_flex_dispatcher_backend": ("deepep", "hybridep"),
    "moe_grouped_gemm": (True, True, False),
    "moe_permute_fusion": (True, False),
    "moe_router_dtype": ("fp32", "fp32", None),
    "moe_router_fusion": (True, False),
    "moe_router_load_balancing_type": ("aux_loss", "aux_loss", "seq_aux_loss", "none", "sinkhorn"),
    "moe_router_score_function": ("softmax", "softmax", "sigmoid"),
    "moe_router_enable_expert_bias": _RARELY,
    "moe_router_force_load_balancing": _RARELY,
    "moe_expert_capacity_factor": (None, None, None, 1.0),
    "moe_pad_expert_input_to_capacity": (False, False, True),
    "moe_router_padding_for_quantization": _RARELY,
    "moe_shared_expert_overlap": (False, False, True),
    "moe_layer_freq": (1, 1, 1, 2),
    "moe_hybridep_num_sms": (16, 16, 24),
    "overlap_moe_expert_parallel_comm": (False, False, False, True),
    "delay_wgrad_compute": _RARELY,
    "ep_overlap_early_attn_memory_release": _RARELY,
    "tp_comm_overlap": _RARELY,
    "overlap_p2p_comm": (True, True, False),
    "bf16": (True,),
    "fp8": (None, None, None, "e4m3", "hybrid"),
    "fp8_recipe": ("delayed", "tensorwise", "blockwise", "mxfp8"),
    "fp4": (None, None, None, None, None, None, "e2m1"),
    "first_last_layers_bf16": _RARELY,
    "add_bias_linear": (False, False, False, True),
    "gated_linear_unit": (True,),
    "attention_dropout": (0.0, 0.0, 0.1),
    "hidden_dropout": (0.0, 0.0, 0.1),
    "gradient_accumulation_fusion": (True, True, False),
    "apply_rope_fusion": (True, False),
    "cross_entropy_loss_fusion": (True, False),
    "cross_entropy_fusion_impl": ("native", "te"),
    "recompute_granularity": (None, "selective", "selective", "full"),
    "recompute_method": (None,),
    "recompute_num_layers": (None,),
    "moe_layer_recompute": _RARELY,
    "cpu_offloading": _RARELY,
    "cpu_offloading_num_layers": (0, 4),
    "fine_grained_activation_offloading": _RARELY,
    "cuda_graph_impl": ("none", "none", "none", "transformer_engine", "transformer_engine", "local"),
    "use_te_rng_tracker": (True, False),
    "rng.te_rng_tracker": (True, False),
    "rerun.check_for_nan_in_loss": (True, True, False),
    "ddp.check_for_nan_in_grad": (True, True, False),
    "ddp.use_distributed_optimizer": (True, True, False),
    "optimizer.use_distributed_optimizer": (True,),
    "ddp.overlap_grad_reduce": (True, False),
    "ddp.overlap_param_gather": (True, False),
    "ddp.use_megatron_fsdp": _RARELY,
    "ddp.grad_reduce_in_fp32": (True, False),
    "ddp.nccl_ub": _RARELY,
    "ddp.average_in_collective": _RARELY,
    "checkpoint.ckpt_format": ("torch_dist", "torch_dist", "fsdp_dtensor"),
    "optimizer.use_precision_aware_optimizer": (False, False, True),
    "optimizer.exp_avg_dtype": ("fp32", "bf16"),
    "optimizer.exp_avg_sq_dtype": ("fp32", "bf16"),
    "optimizer.optimizer_cpu_offload": _RARELY,
    "train.manual_gc": (True, False),
    "env.CUDA_DEVICE_MAX_CONNECTIONS": ("1", "1", "8", "32"),
    "env.PYTORCH_CUDA_ALLOC_CONF": ("expandable_segments:True", ""),
    "env.NVTE_CPU_OFFLOAD_V1": ("1", "0"),
    "env.NCCL_GRAPH_REGISTER": ("0", "1"),
    "env.USE_MNNVL": ("0", "1"),
}

LISTS: Final[Mapping[str, tuple[str, ...]]] = {
    "recompute_modules": ("core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe", "shared_experts"),
    "offload_modules": ("core_attn", "attn_proj", "expert_fc1", "moe_act", "attn_norm", "qkv_linear"),
    "cuda_graph_modules": ("attn", "mlp", "moe", "moe_router", "moe_preprocess"),
}

_OVERLAPS: Final = ("overlap_moe_expert_parallel_comm", "delay_wgrad_compute", "tp_comm_overlap")
_WRAPPERS: Final = ("overlap_grad_reduce", "overlap_param_gather")

RESET: Final[Mapping[str, Value]] = {
    **dict.fromkeys((f"comm_overlap.{name}" for name in (*_OVERLAPS, *_WRAPPERS)), False),
    **{knob: False for knob, values in POOL.items() if values == _RARELY},
    **of_release(
        "0.16.1",
        "overlap_moe_expert_parallel_comm cuda_graph_impl fp8 fp4 cpu_offloading_num_layers "
        "recompute_granularity pipeline_model_parallel_layout mtp_num_layers "
        "moe_pad_expert_input_to_capacity moe_expert_capacity_factor moe_shared_expert_overlap "
        "moe_router_load_balancing_type moe_grouped_gemm moe_permute_fusion cross_entropy_fusion_impl "
        "cp_comm_type ddp.overlap_param_gather ddp.overlap_grad_reduce "
        "optimizer.use_precision_aware_optimizer optimizer.exp_avg_dtype optimizer.exp_avg_sq_dtype "
        "checkpoint.ckpt_format expert_model_parallel_size pipeline_model_parallel_size "
        "context_parallel_size tensor_model_parallel_size moe_shared_expert_intermediate_size "
        "moe_ffn_hidden_size moe_router_fusion moe_latent_size defer_embedding_wgrad_compute "
        "use_transformer_engine_op_fuser moe_aux_loss_coeff overlap_p2p_comm_warmup_flush "
        "experimental_attention_variant deterministic_mode microbatch_group_size_per_vp_stage ",
    ),
    "mixed_precision": "bf16_mixed",
    "recompute_modules": ("layernorm",),
    "virtual_pipeline_model_parallel_size": None,
    "moe_token_dispatcher_type": "alltoall",
    "add_bias_linear": False,
    "sequence_parallel": True,
    "attention_dropout": 0.0,
    "hidden_dropout": 0.0,
    "ddp.check_for_nan_in_grad": False,
    "expert_tensor_parallel_size": 1,
    "env.CUDA_DEVICE_MAX_CONNECTIONS": "1",
    "env.PYTORCH_CUDA_ALLOC_CONF": "",
    "use_te_rng_tracker": True,
    "rng.te_rng_tracker": True,
    "bias_dropout_fusion": False,
    "apply_rope_fusion": False,
}
"""What no rule refuses by itself."""

"""Fields of Megatron-Core's TransformerConfig, MLATransformerConfig and ModelParallelConfig by version.

Source: the three classes at the tags core_v0.12.0, 0.13.0, 0.14.0, 0.15.0, 0.16.0, 0.16.1, 0.17.0, 0.18.0 and
0.19.0 and on main at d98e8a64 (2026-08-22). Left out: fields that hold functions, which no setting says, but
for the activation.
"""

from dataclasses import dataclass
from typing import Final

from traces.settings.settings import Value


@dataclass(frozen=True, slots=True)
class Field:
    """A field that some versions lack: in which it first is, in which it last is, and its default there.

    `until` is empty where it is still on main.
    """

    since: str
    until: str
    default: Value


_IN_ALL: Final = """
account_for_embedding_in_pipeline_split account_for_loss_in_pipeline_split activation_func
activation_func_fp8_input_store add_bias_linear add_qkv_bias apply_query_key_layer_scaling
apply_residual_connection_post_layernorm apply_rope_fusion attention_backend attention_dropout
attention_softmax_in_fp32 autocast_dtype barrier_with_L1_time batch_p2p_comm batch_p2p_sync beta_fast
beta_slow bf16 bias_activation_fusion bias_dropout_fusion calculate_per_token_loss
clone_scatter_output_in_embedding config_logger_dir context_parallel_size cp_comm_type cpu_offloading
cpu_offloading_activations cpu_offloading_num_layers cpu_offloading_weights cross_entropy_fusion_impl
cross_entropy_loss_fusion cuda_graph_retain_backward_graph cuda_graph_scope
cuda_graph_use_single_mempool cuda_graph_warmup_steps deallocate_pipeline_outputs
defer_embedding_wgrad_compute deterministic_mode disable_bf16_reduced_precision_matmul
disable_parameter_transpose_cache distribute_saved_activations enable_autocast enable_cuda_graph
expert_model_parallel_size expert_tensor_parallel_size external_cuda_graph ffn_hidden_size
first_last_layers_bf16 flash_decode fp16 fp32_residual_connection fp8 fp8_amax_compute_algo
fp8_amax_history_len fp8_dot_product_attention fp8_interval fp8_margin fp8_multi_head_attention
fp8_param fp8_recipe fp8_wgrad gated_linear_unit gradient_accumulation_fusion
heterogeneous_block_specs hidden_dropout hidden_size hierarchical_context_parallel_sizes
inference_rng_tracker init_method_std init_model_with_meta_device is_hybrid_model kv_channels
kv_lora_rank layernorm_epsilon layernorm_zero_centered_gamma mamba_head_dim mamba_num_groups
mamba_state_dim masked_softmax_fusion memory_efficient_layer_norm microbatch_group_size_per_vp_stage
moe_apply_probs_on_input moe_aux_loss_coeff moe_enable_deepep moe_expert_capacity_factor
moe_ffn_hidden_size moe_grouped_gemm moe_input_jitter_eps moe_layer_freq moe_layer_recompute
moe_pad_expert_input_to_capacity moe_per_layer_logging moe_permute_fusion moe_router_bias_update_rate
moe_router_dtype moe_router_enable_expert_bias moe_router_group_topk moe_router_load_balancing_type
moe_router_num_groups moe_router_pre_softmax moe_router_score_function moe_router_topk
moe_router_topk_limited_devices moe_router_topk_scaling_factor moe_shared_expert_intermediate_size
moe_shared_expert_overlap moe_token_dispatcher_type moe_token_drop_policy moe_token_dropping
moe_z_loss_coeff mrope_section mscale mscale_all_dim mtp_loss_scaling_factor mtp_num_layers
multi_latent_attention normalization num_attention_heads num_layers num_layers_at_end_in_bf16
num_layers_at_start_in_bf16 num_layers_in_first_pipeline_stage num_layers_in_last_pipeline_stage
num_microbatches_with_partial_activation_checkpoints num_moe_experts num_query_groups overlap_p2p_comm
overlap_p2p_comm_warmup_flush params_dtype perform_initialization persist_layer_norm pipeline_dtype
pipeline_model_parallel_comm_backend pipeline_model_parallel_size q_lora_rank qk_head_dim qk_layernorm
qk_pos_emb_head_dim recompute_granularity recompute_method recompute_modules recompute_num_layers
rope_type rotary_base rotary_interleaved rotary_percent rotary_scaling_factor sequence_parallel
softmax_scale tensor_model_parallel_size test_mode tp_comm_atomic_ag tp_comm_atomic_rs
tp_comm_bootstrap_backend tp_comm_bulk_dgrad tp_comm_bulk_wgrad tp_comm_overlap tp_comm_overlap_ag
tp_comm_overlap_disable_fc1 tp_comm_overlap_disable_qkv tp_comm_overlap_rs tp_comm_overlap_rs_dgrad
tp_comm_split_ag tp_comm_split_rs tp_only_amax_red use_cpu_initialization use_ring_exchange_p2p
use_te_rng_tracker v_head_dim variable_seq_lengths virtual_pipeline_model_parallel_size
wgrad_deferral_limit window_size
"""

ALWAYS: Final = frozenset(_IN_ALL.split())
"""In all versions from 0.12 to main."""

SOMETIMES: Final = {
    "activation_func_clamp_value": Field("0.15", "", None),
    "activation_offload_fraction": Field("0.19", "", 1.0),
    "async_tensor_model_parallel_allreduce": Field("0.12", "0.16", True),
    "attention_output_gate": Field("0.16", "", False),
    "batch_invariant_backend": Field("main", "", "te_native"),
    "batch_invariant_mode": Field("0.16", "", False),
    "cache_mla_latents": Field("0.14", "", False),
    "cpu_offloading_double_buffering": Field("0.14", "", False),
    "cpu_offloading_retain_pinned_cpu_buffers": Field("0.17", "", False),
    "cuda_graph_impl": Field("0.15", "", "none"),
    "cuda_graph_modules": Field("0.18", "", "full"),
    "delay_offload_until_cuda_graph": Field("0.19", "", False),
    "delay_wgrad_compute": Field("0.13", "", False),
    "delta_offload_bytes_across_pp_ranks": Field("0.19", "", 0),
    "dsa_indexer_head_dim": Field("0.16", "", None),
    "dsa_indexer_k_norm_epsilon": Field("0.19", "", None),
    "dsa_indexer_k_norm_fp32": Field("0.19", "", False),
    "dsa_indexer_loss_coeff": Field("0.16", "", None),
    "dsa_indexer_n_heads": Field("0.16", "", None),
    "dsa_indexer_rope_interleaved": Field("0.19", "", False),
    "dsa_indexer_rotate_activation": Field("0.19", "", True),
    "dsa_indexer_scoring_relu": Field("0.19", "", True),
    "dsa_indexer_skip_topk_offset": Field("0.19", "", 0),
    "dsa_indexer_topk": Field("0.16", "", None),
    "dsa_indexer_topk_freq": Field("0.19", "", 1),
    "dsa_indexer_use_sparse_loss": Field("0.16", "", False),
    "dsa_kernel_backend": Field("0.19", "", "none"),
    "embedding_init_method_std": Field("0.14", "", None),
    "enable_mhc_connections": Field("main", "", False),
    "ep_overlap_early_attn_memory_release": Field("0.16", "", False),
    "experimental_attention_variant": Field("0.16", "", None),
    "expert_gtp_weight_remat_size": Field("0.19", "", 1),
    "expert_tensor_parallel_num_weight_shards": Field("0.19", "", None),
    "fine_grained_activation_offloading": Field("0.16", "", False),
    "fine_grained_offloading_max_inflight_offloads": Field("0.18", "", None),
    "flash_attention_version": Field("0.19", "", None),
    "fp4": Field("0.15", "", None),
    "fp4_param": Field("0.15", "", False),
    "fp4_quantizer_factory": Field("0.16", "", None),
    "fp4_recipe": Field("0.15", "", "nvfp4"),
    "fp8_output_proj": Field("0.18", "", False),
    "fp8_quantizer_factory": Field("0.16", "", None),
    "fused_residual_rmsnorm": Field("0.17", "", False),
    "fused_single_qkv_rope": Field("0.15", "", False),
    "gdp_cutedsl_kernel": Field("main", "", False),
    "gdp_num_chunk_states_to_recompute": Field("main", "", 2),
    "gdp_num_householder": Field("main", "", 3),
    "glu_linear_offset": Field("0.15", "", 0.0),
    "gtp_remat_opt_in_modules": Field("main", "", ()),
    "gtp_weight_remat_size": Field("0.19", "", 1),
    "hetereogenous_dist_checkpoint": Field("0.13", "", False),
    "high_priority_a2a_comm_stream": Field("0.18", "", False),
    "hybrid_context_parallel": Field("0.16", "", False),
    "inference_cuda_graph_scope": Field("0.18", "", None),
    "inference_disable_triton_nvls_kernels": Field("0.17", "", False),
    "inference_fuse_tp_communication": Field("0.16", "", False),
    "inference_grouped_gemm_backend": Field("0.17", "", "vllm"),
    "inference_moe_disable_fused_quant_kernels": Field("0.17", "", False),
    "inference_moe_token_dispatcher_type": Field("0.18", "", "nvls"),
    "inference_sampling_seed": Field("0.15", "", 42),
    "kitchen_attention_backend": Field("0.16", "", "sdpa"),
    "linear_attention_freq": Field("0.16", "", None),
    "linear_conv_kernel_dim": Field("0.16", "", 4),
    "linear_key_head_dim": Field("0.16", "", 128),
    "linear_num_key_heads": Field("0.16", "", 16),
    "linear_num_value_heads": Field("0.16", "", 32),
    "linear_value_head_dim": Field("0.16", "", 128),
    "log_max_attention_logit": Field("0.16", "", False),
    "mamba_num_heads": Field("0.13", "", None),
    "mamba_training_ssm_states_dtype": Field("0.19", "", None),
    "max_position_embeddings": Field("0.12", "0.13", 4096),
    "max_seqlen_per_dp_cp_rank": Field("0.16", "", None),
    "mhc_init_gating_factor": Field("main", "", 0.01),
    "mhc_num_residual_streams": Field("main", "", 4),
    "mhc_recompute_layer_num": Field("main", "", None),
    "mhc_sinkhorn_iterations": Field("main", "", 20),
    "min_offloaded_tensor_size": Field("0.16", "", 1048576),
    "mla_down_proj_fusion": Field("0.17", "", False),
    "mlp_chunks_for_prefill": Field("0.13", "", 1),
    "mlp_chunks_for_training": Field("0.18", "", 1),
    "moe_combine_bwd_dtype": Field("main", "", "bf16"),
    "moe_deepep_num_sms": Field("0.13", "", None),
    "moe_dispatch_fwd_dtype": Field("main", "", "bf16"),
    "moe_enable_routing_replay": Field("0.16", "", False),
    "moe_expert_rank_capacity_factor": Field("0.18", "", None),
    "moe_extended_tp": Field("0.12", "0.16", False),
    "moe_flex_dispatcher_backend": Field("0.16", "", "deepep"),
    "moe_flex_dispatcher_num_sms": Field("0.19", "", None),
    "moe_hybridep_num_blocks_permute": Field("0.18", "", None),
    "moe_hybridep_num_blocks_unpermute": Field("0.18", "", None),
    "moe_hybridep_num_sms": Field("0.16", "", None),
    "moe_hybridep_num_sms_preprocessing": Field("0.18", "", 108),
    "moe_hybridep_pad_uneven_dispatch_inputs": Field("0.19", "", False),
    "moe_latent_size": Field("0.16", "", None),
    "moe_mlp_glu_interleave_size": Field("0.18", "", None),
    "moe_ncclep_static_shape": Field("0.19", "0.19", False),
    "moe_ncclep_zero_copy": Field("0.19", "", False),
    "moe_pad_experts_for_cuda_graph_inference": Field("0.17", "", False),
    "moe_paged_stash": Field("0.18", "", False),
    "moe_paged_stash_buffer_size_factor_cpu": Field("0.18", "", 0.0),
    "moe_paged_stash_buffer_size_factor_cuda": Field("0.18", "", 1.1),
    "moe_paged_stash_page_size": Field("0.18", "", 64),
    "moe_permute_fusion_into_hybridep": Field("0.18", "", False),
    "moe_router_force_biased": Field("0.17", "", None),
    "moe_router_force_load_balancing": Field("0.13", "", False),
    "moe_router_fusion": Field("0.14", "", False),
    "moe_router_padding_for_fp8": Field("0.13", "", False),
    "moe_router_padding_for_quantization": Field("0.16", "", False),
    "moe_router_quantile_balancing_ema": Field("0.19", "", 0.0),
    "moe_shared_expert_gate": Field("0.16", "", False),
    "moe_shared_expert_glu_interleave_size": Field("0.19", "", None),
    "moe_single_grouped_bias": Field("0.18", "", False),
    "moe_single_grouped_weight": Field("0.18", "", False),
    "moe_use_grouped_tensor": Field("main", "", False),
    "moe_use_legacy_grouped_gemm": Field("0.12", "0.16", False),
    "mtp_detach_heads": Field("0.19", "", False),
    "mtp_hsm": Field("main", "", False),
    "mtp_hybrid_override_pattern": Field("0.17", "", None),
    "mtp_standalone": Field("0.16", "", False),
    "mtp_use_repeated_layer": Field("0.17", "", False),
    "mup_attn_scale_power": Field("0.17", "", 1.0),
    "mup_base_head_dim": Field("0.17", "", None),
    "mup_base_hidden_size": Field("0.17", "", None),
    "mup_embedding_mult": Field("0.17", "", 1.0),
    "mup_output_mult": Field("0.17", "", 1.0),
    "mup_width_mult": Field("0.17", "", 1.0),
    "nccl_all_reduce_for_prefill": Field("0.17", "", False),
    "no_rope_freq": Field("0.13", "", None),
    "offload_modules": Field("0.16", "", ()),
    "original_max_position_embeddings": Field("0.14", "", 4096),
    "overlap_dispatch_backward_with_experts_wgrad": Field("0.18", "", False),
    "overlap_moe_expert_parallel_comm": Field("0.14", "", False),
    "pipeline_model_parallel_layout": Field("0.13", "", None),
    "pipeline_model_parallel_split_rank": Field("0.12", "0.13", None),
    "qk_clip": Field("0.16", "", False),
    "qk_clip_alpha": Field("0.16", "", 0.5),
    "qk_clip_threshold": Field("0.16", "", 100),
    "qk_l2_norm": Field("0.16", "", False),
    "softmax_type": Field("0.15", "", "vanilla"),
    "symmetric_ar_type": Field("0.13", "", None),
    "tensor_parallel_num_weight_shards": Field("0.19", "", None),
    "transformer_impl": Field("0.14", "", "transformer_engine"),
    "use_fused_weighted_squared_relu": Field("0.14", "", False),
    "use_grouped_gemm_for_dense_mlp": Field("0.18", "", False),
    "use_grouped_gemm_for_shared_expert": Field("0.19", "", False),
    "use_inference_optimized_layers": Field("0.16", "", False),
    "use_kitchen": Field("0.13", "", False),
    "use_kitchen_attention": Field("0.16", "", False),
    "use_mamba_mem_eff_path": Field("0.13", "", True),
    "use_mup": Field("0.17", "", False),
    "use_te_activation_func": Field("0.15", "", False),
    "use_transformer_engine_op_fuser": Field("0.18", "", False),
    "window_attn_skip_freq": Field("0.15", "", None),
}

_OF_MLA: Final = """
beta_fast beta_slow cache_mla_latents kv_lora_rank max_position_embeddings mla_down_proj_fusion mscale
mscale_all_dim original_max_position_embeddings q_lora_rank qk_head_dim qk_pos_emb_head_dim rope_type
rotary_base rotary_percent rotary_scaling_factor v_head_dim
"""

OF_MLA: Final = frozenset(_OF_MLA.split())
"""Only in MLATransformerConfig. The model provider of Bridge has some of the names for other models too."""


def is_core_field(knob: str) -> bool:
    """Whether some version has a field of this name."""
    return knob in ALWAYS or knob in SOMETIMES

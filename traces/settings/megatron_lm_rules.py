"""What Megatron-LM makes of its arguments (training/arguments.py, validate_args, core_v0.16.1 and main)."""

from typing import Final

from traces.settings.rules import Change, Facts, Rule

_BY: Final = "Megatron-LM, validate_args"


def _sequence_parallel(facts: Facts) -> tuple[Change, ...]:
    is_alone = facts.count("tensor_model_parallel_size") == 1
    if is_alone and facts.value("sequence_parallel") is True:
        return (Change("sequence_parallel", False, f"tensor_model_parallel_size 1, by {_BY}"),)
    return ()


def _point_to_point(facts: Facts) -> tuple[Change, ...]:
    """Without virtual stages nothing overlaps between stages."""
    if not facts.null("virtual_pipeline_model_parallel_size"):
        return ()
    why = f"no virtual pipeline stages, by {_BY}"
    return (
        Change("overlap_p2p_comm", False, why),
        Change("batch_p2p_comm", True, why),
        Change("ddp.align_param_gather", False, why),
    )


def _gradients(facts: Facts) -> tuple[Change, ...]:
    """BF16 sums its gradients in FP32 where nothing else is asked."""
    if facts.value("bf16") is not True or facts.value("optimizer.main_grads_dtype") not in ("fp32", None):
        return ()
    is_default = facts.settings.said("ddp.grad_reduce_in_fp32") == "default"
    return (Change("ddp.grad_reduce_in_fp32", True, f"bf16, by {_BY}"),) if is_default else ()


def _fsdp(facts: Facts) -> tuple[Change, ...]:
    if facts.value("ddp.use_megatron_fsdp") is not True or facts.value("ddp.megatron_fsdp_version") == 2:
        return ()
    why = f"use_megatron_fsdp, by {_BY}"
    return (
        Change("ddp.use_distributed_optimizer", True, why),
        Change("optimizer.use_distributed_optimizer", True, why),
        Change("ddp.reuse_grad_buf_for_mxfp8_param_ag", False, why),
    )


def _rng_tracker(facts: Facts) -> tuple[Change, ...]:
    """CUDA graphs switch Transformer Engine's random numbers on."""
    impl = facts.value("cuda_graph_impl")
    if impl in (None, "none") or "transformer_engine" not in (impl, facts.value("transformer_impl")):
        return ()
    why = f"cuda_graph_impl, by {_BY}"
    return (Change("rng.te_rng_tracker", True, why), Change("use_te_rng_tracker", True, why))


def _feed_forward(facts: Facts) -> tuple[Change, ...]:
    """A gated layer is two thirds as wide, in steps of 64."""
    hidden = facts.count("hidden_size")
    is_gated = facts.value("gated_linear_unit") is True and facts.value("activation_func") == "silu"
    if hidden and is_gated and facts.null("ffn_hidden_size"):
        size = int((4 * hidden * 2 / 3) / 64) * 64
        return (Change("ffn_hidden_size", size, f"hidden_size with --swiglu, by {_BY}"),)
    return ()


def _rope_fusion(facts: Facts) -> tuple[Change, ...]:
    """Only rotary positions have a fused form."""
    positions = facts.value("position_embedding_type")
    if positions in (None, "rope") or facts.value("apply_rope_fusion") is not True:
        return ()
    return (Change("apply_rope_fusion", False, f"position_embedding_type, by {_BY}"),)


def _offloading(facts: Facts) -> tuple[Change, ...]:
    """Layers to offload switch offloading on."""
    if facts.count("cpu_offloading_num_layers") and facts.value("cpu_offloading") is not True:
        return (Change("cpu_offloading", True, f"cpu_offloading_num_layers, by {_BY}"),)
    return ()


MEGATRON_LM_RULES: Final[tuple[Rule, ...]] = (
    _sequence_parallel,
    _point_to_point,
    _gradients,
    _fsdp,
    _rng_tracker,
    _feed_forward,
    _rope_fusion,
    _offloading,
)

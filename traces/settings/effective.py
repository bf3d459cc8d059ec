"""What the frameworks make of settings: names migrated, values written over others, switches dropped.

`said` of each changed knob says why. Nothing is changed where what decides it is unknown. Megatron-LM's rules
are those of training/arguments.py, validate_args (core_v0.16.1 and main).
"""

from collections.abc import Callable
from typing import Final

from traces.settings.effective_bridge import BRIDGE_RULES
from traces.settings.knobs import MAIN, release
from traces.settings.rules import Change, Facts, Rule
from traces.settings.settings import Settings, settings

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


_RENAMED: Final = "Megatron-Core, TransformerConfig.__post_init__"


def effective(said: Settings, core_version: str | None = None) -> Settings:
    """Settings as a run has them. `core_version`: of Megatron-Core; the newest where it is unknown.

    Rules apply in the frameworks' order: precision, overlap of communication, then Megatron-Core's own.
    """
    found = said
    own = {"megatron_bridge": BRIDGE_RULES, "megatron_lm": MEGATRON_LM_RULES}
    rules = own[said.framework] if said.framework else ()
    for rule in (*rules, *CORE_RULES):
        for change in rule(Facts(found, release(core_version) or MAIN)):
            if change.knob not in found or found.value(change.knob) != change.value:
                found = found.under(settings({change.knob: change.value}, change.why))
    return found


def _graph_switches(facts: Facts) -> tuple[Change, ...]:
    """Two switches of before 0.15."""
    if facts.core < (0, 15, 0) or facts.value("cuda_graph_impl") not in (None, "none"):
        return ()
    for switch, impl in (("enable_cuda_graph", "local"), ("external_cuda_graph", "transformer_engine")):
        if facts.value(switch) is True:
            return (Change("cuda_graph_impl", impl, f"{switch}, by {_RENAMED}"),)
    return ()


def _graph_modules(facts: Facts) -> tuple[Change, ...]:
    """`full` is the empty list since 0.16; `full_iteration` an implementation since 0.18."""
    modules = facts.value("cuda_graph_modules")
    if not isinstance(modules, tuple) or facts.core < (0, 16, 0):
        return ()
    why = "cuda_graph_modules, by Megatron-Core, cuda_graph_config.py"
    if modules == ("full",):
        return (Change("cuda_graph_modules", (), why),)
    if "full_iteration" in modules and facts.core >= (0, 18, 0):
        rest = tuple(module for module in modules if module != "full_iteration")
        return (
            Change("cuda_graph_impl", "full_iteration", why),
            Change("cuda_graph_modules", rest, why),
        )
    return ()


def _deepep_switch(facts: Facts) -> tuple[Change, ...]:
    """The switch of before 0.16 chooses the backend."""
    is_on = facts.value("moe_enable_deepep") is True and facts.core >= (0, 16, 0)
    why = f"moe_enable_deepep, by {_RENAMED}"
    return (Change("moe_flex_dispatcher_backend", "deepep", why),) if is_on else ()


def _layer_recompute(facts: Facts) -> tuple[Change, ...]:
    """The switch of before recompute_modules."""
    granularity, listed = "recompute_granularity", "recompute_modules"
    is_whole = facts.settings.framework == "megatron_lm"  # what its script leaves out is the default
    is_open = not is_whole and not (facts.known(granularity) and facts.known(listed))
    if facts.value("moe_layer_recompute") is not True or is_open or facts.value(granularity) == "full":
        return ()
    why = f"moe_layer_recompute, by {_RENAMED}"
    modules = facts.value(listed)
    before = modules if isinstance(modules, tuple) else ()
    return (
        Change("recompute_granularity", "selective", why),
        Change("recompute_modules", before if "moe" in before else (*before, "moe"), why),
    )


def _recompute_modules(facts: Facts) -> tuple[Change, ...]:
    """Selective recompute of nothing in particular is that of the attention core."""
    is_open = facts.known("recompute_modules") and facts.value("recompute_modules") is None
    if facts.value("recompute_granularity") == "selective" and is_open:
        return (Change("recompute_modules", ("core_attn",), f"selective recompute, by {_RENAMED}"),)
    return ()


def _sm_counts(facts: Facts) -> tuple[Change, ...]:
    """One count of SMs for all backends since 0.19."""
    if facts.core < (0, 19, 0) or facts.value("moe_flex_dispatcher_num_sms") is not None:
        return ()
    for old in ("moe_deepep_num_sms", "moe_hybridep_num_sms"):
        if (count := facts.value(old)) is not None and facts.settings.said(old) != "default":
            return (Change("moe_flex_dispatcher_num_sms", count, f"{old}, by {_RENAMED}"),)
    return ()


def _sizes(facts: Facts) -> tuple[Change, ...]:
    """Sizes that follow from others where they are said to be null."""
    hidden, heads = facts.count("hidden_size"), facts.count("num_attention_heads")
    found: list[Change] = []
    if hidden and heads and hidden % heads == 0 and facts.null("kv_channels"):
        found.append(Change("kv_channels", hidden // heads, f"hidden_size and heads, by {_RENAMED}"))
    if heads and facts.null("num_query_groups"):
        found.append(Change("num_query_groups", heads, f"num_attention_heads, by {_RENAMED}"))
    if hidden and facts.null("ffn_hidden_size"):
        found.append(Change("ffn_hidden_size", 4 * hidden, f"hidden_size, by {_RENAMED}"))
    if facts.null("expert_tensor_parallel_size") and (tp := facts.count("tensor_model_parallel_size")):
        why = "tensor_model_parallel_size, by Megatron-Core, ModelParallelConfig"
        found.append(Change("expert_tensor_parallel_size", tp, why))
    return tuple(found)


def _expert_size(facts: Facts) -> tuple[Change, ...]:
    """Experts as wide as a dense layer where nothing is said of them."""
    ffn = facts.count("ffn_hidden_size")
    if ffn and facts.count("num_moe_experts") and facts.null("moe_ffn_hidden_size"):
        return (Change("moe_ffn_hidden_size", ffn, f"ffn_hidden_size, by {_RENAMED}"),)
    return ()


CORE_RULES: Final[tuple[Callable[[Facts], tuple[Change, ...]], ...]] = (
    _graph_switches,
    _graph_modules,
    _deepep_switch,
    _layer_recompute,
    _recompute_modules,
    _sm_counts,
    _sizes,
    _expert_size,
)
"""Megatron-Core's own, at core_v0.16.1 and main."""

__all__ = ["CORE_RULES", "Rule", "effective"]

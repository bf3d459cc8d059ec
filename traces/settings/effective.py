"""What the frameworks make of settings: names migrated, values written over others, switches dropped.

`said` of each changed knob says why. Nothing is changed where what decides it is unknown.
"""

from collections.abc import Callable
from typing import Final

from traces.settings.effective_bridge import BRIDGE_RULES
from traces.settings.knobs import MAIN, release
from traces.settings.megatron_lm_rules import MEGATRON_LM_RULES
from traces.settings.rules import Change, Facts, Rule
from traces.settings.settings import Settings, settings

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

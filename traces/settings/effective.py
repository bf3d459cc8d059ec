"""What the frameworks make of settings: names migrated, values written over others, switches dropped.

`said` of each changed knob says why. Nothing is changed where what decides it is unknown. Megatron-LM's rules
are those of training/arguments.py, validate_args, Megatron-Core's its own (core_v0.16.1 and main),
Megatron-Bridge's those of training/config.py, runtime_config_update (067f987d).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Final, NamedTuple

from msgspec import Struct

from traces.settings.knobs import EP, ETP, MAIN, PP, TP, VIRTUAL_STAGES, Release, knobs, release
from traces.settings.settings import KnobView, Settings, Value, settings
from traces.toml_tables import read_table


class Change(NamedTuple):
    """A knob that a framework sets to another value. `why`: what makes it, and where."""

    knob: str
    value: Value
    why: str


class Facts(KnobView):
    """Settings as a rule asks them, and the release of Megatron-Core."""

    def __init__(self, settings: Settings, core: Release) -> None:
        super().__init__(settings)
        self.core = core


Rule = Callable[[Facts], Iterator[Change]]


def effective(said: Settings, core_version: str | None = None) -> Settings:
    """Settings as a run has them. `core_version`: of Megatron-Core; the newest where it is unknown.

    Rules apply in the frameworks' order: precision, overlap of communication, then Megatron-Core's own.
    """
    own = {"megatron_bridge": (*BRIDGE_RULES, _finalized), "megatron_lm": MEGATRON_LM_RULES}
    return _applied((*own.get(said.framework or "", ()), *CORE_RULES), said, core_version)


def finalized(written: Settings, core_version: str | None) -> Settings:
    """Settings with what Bridge's model fills in or drops before Megatron-Core checks it."""
    return _applied((_finalized,), written, core_version)


def _applied(rules: Iterable[Rule], found: Settings, core_version: str | None) -> Settings:
    for rule in rules:
        for knob, value, why in rule(Facts(found, release(core_version) or MAIN)):
            if knob not in found or found.value(knob) != value:
                found = found.under(settings({knob: value}, why))
    return found


_BY: Final = "Megatron-LM, validate_args"


def _sequence_parallel(facts: Facts) -> Iterator[Change]:
    if facts.count(TP) == 1 and facts.value("sequence_parallel") is True:
        yield Change("sequence_parallel", False, f"tensor_model_parallel_size 1, by {_BY}")


def _point_to_point(facts: Facts) -> Iterator[Change]:
    """Without virtual stages nothing overlaps between stages."""
    if facts.null(VIRTUAL_STAGES):
        why = f"no virtual pipeline stages, by {_BY}"
        yield Change("overlap_p2p_comm", False, why)
        yield Change("batch_p2p_comm", True, why)
        yield Change("ddp.align_param_gather", False, why)


def _gradients(facts: Facts) -> Iterator[Change]:
    """BF16 sums its gradients in FP32 where nothing else is asked."""
    is_default = facts.settings.said("ddp.grad_reduce_in_fp32") == "default"
    is_wide = facts.value("optimizer.main_grads_dtype") in ("fp32", None)
    if is_default and is_wide and facts.value("bf16") is True:
        yield Change("ddp.grad_reduce_in_fp32", True, f"bf16, by {_BY}")


def _fsdp(facts: Facts) -> Iterator[Change]:
    if facts.value("ddp.use_megatron_fsdp") is True and facts.value("ddp.megatron_fsdp_version") != 2:
        why = f"use_megatron_fsdp, by {_BY}"
        yield Change("ddp.use_distributed_optimizer", True, why)
        yield Change("optimizer.use_distributed_optimizer", True, why)
        yield Change("ddp.reuse_grad_buf_for_mxfp8_param_ag", False, why)


def _graphs_draw(facts: Facts) -> Iterator[Change]:
    """CUDA graphs switch Transformer Engine's random numbers on."""
    impl = facts.value("cuda_graph_impl")
    if impl not in (None, "none") and "transformer_engine" in (impl, facts.value("transformer_impl")):
        yield Change("rng.te_rng_tracker", True, f"cuda_graph_impl, by {_BY}")
        yield Change("use_te_rng_tracker", True, f"cuda_graph_impl, by {_BY}")


def _feed_forward(facts: Facts) -> Iterator[Change]:
    """A gated layer is two thirds as wide, in steps of 64."""
    hidden = facts.count("hidden_size")
    is_gated = facts.value("gated_linear_unit") is True and facts.value("activation_func") == "silu"
    if hidden and is_gated and facts.null("ffn_hidden_size"):
        size = int((4 * hidden * 2 / 3) / 64) * 64
        yield Change("ffn_hidden_size", size, f"hidden_size with --swiglu, by {_BY}")


def _rope_fusion(facts: Facts) -> Iterator[Change]:
    """Only rotary positions have a fused form."""
    is_other = facts.value("position_embedding_type") not in (None, "rope")
    if is_other and facts.value("apply_rope_fusion") is True:
        yield Change("apply_rope_fusion", False, f"position_embedding_type, by {_BY}")


def _offloading(facts: Facts) -> Iterator[Change]:
    if facts.count("cpu_offloading_num_layers"):
        yield Change("cpu_offloading", True, f"cpu_offloading_num_layers, by {_BY}")


MEGATRON_LM_RULES: Final[tuple[Rule, ...]] = (
    _sequence_parallel,
    _point_to_point,
    _gradients,
    _fsdp,
    _graphs_draw,
    _feed_forward,
    _rope_fusion,
    _offloading,
)


_RENAMED: Final = "Megatron-Core, TransformerConfig.__post_init__"


def _graph_switches(facts: Facts) -> Iterator[Change]:
    """Two switches of before 0.15; of both the first counts."""
    if facts.core < (0, 15, 0) or facts.value("cuda_graph_impl") not in (None, "none"):
        return
    for switch, impl in (("enable_cuda_graph", "local"), ("external_cuda_graph", "transformer_engine")):
        if facts.value(switch) is True:
            yield Change("cuda_graph_impl", impl, f"{switch}, by {_RENAMED}")
            return


def _graph_modules(facts: Facts) -> Iterator[Change]:
    """`full` is the empty list since 0.16; `full_iteration` an implementation since 0.18."""
    modules, why = (
        facts.value("cuda_graph_modules"),
        "cuda_graph_modules, by Megatron-Core, cuda_graph_config.py",
    )
    if modules == ("full",) and facts.core >= (0, 16, 0):
        yield Change("cuda_graph_modules", (), why)
    elif isinstance(modules, tuple) and "full_iteration" in modules and facts.core >= (0, 18, 0):
        yield Change("cuda_graph_impl", "full_iteration", why)
        yield Change("cuda_graph_modules", tuple(one for one in modules if one != "full_iteration"), why)


def _deepep_switch(facts: Facts) -> Iterator[Change]:
    """The switch of before 0.16 chooses the backend."""
    if facts.value("moe_enable_deepep") is True and facts.core >= (0, 16, 0):
        yield Change("moe_flex_dispatcher_backend", "deepep", f"moe_enable_deepep, by {_RENAMED}")


def _layer_recompute(facts: Facts) -> Iterator[Change]:
    """The switch of before recompute_modules."""
    granularity, listed = "recompute_granularity", "recompute_modules"
    is_whole = facts.settings.framework == "megatron_lm"  # what its script leaves out is the default
    is_told = is_whole or (facts.known(granularity) and facts.known(listed))
    if facts.value("moe_layer_recompute") is True and is_told and facts.value(granularity) != "full":
        modules = facts.value(listed)
        before = modules if isinstance(modules, tuple) else ()
        why = f"moe_layer_recompute, by {_RENAMED}"
        yield Change(granularity, "selective", why)
        yield Change(listed, before if "moe" in before else (*before, "moe"), why)


def _recompute_modules(facts: Facts) -> Iterator[Change]:
    """Selective recompute of nothing in particular is that of the attention core."""
    if facts.value("recompute_granularity") == "selective" and facts.null("recompute_modules"):
        yield Change("recompute_modules", ("core_attn",), f"selective recompute, by {_RENAMED}")


def _sm_counts(facts: Facts) -> Iterator[Change]:
    """One count of SMs for all backends since 0.19; of two older ones the first counts."""
    if facts.core < (0, 19, 0) or facts.value("moe_flex_dispatcher_num_sms") is not None:
        return
    for old in ("moe_deepep_num_sms", "moe_hybridep_num_sms"):
        if (count := facts.value(old)) is not None and facts.settings.said(old) != "default":
            yield Change("moe_flex_dispatcher_num_sms", count, f"{old}, by {_RENAMED}")
            return


def _sizes(facts: Facts) -> Iterator[Change]:
    """Sizes that follow from others where they are said to be null."""
    hidden, heads = facts.count("hidden_size"), facts.count("num_attention_heads")
    if hidden and heads and hidden % heads == 0 and facts.null("kv_channels"):
        yield Change("kv_channels", hidden // heads, f"hidden_size and heads, by {_RENAMED}")
    if heads and facts.null("num_query_groups"):
        yield Change("num_query_groups", heads, f"num_attention_heads, by {_RENAMED}")
    if hidden and facts.null("ffn_hidden_size"):
        yield Change("ffn_hidden_size", 4 * hidden, f"hidden_size, by {_RENAMED}")
    if facts.null(ETP) and (tp := facts.count(TP)):
        yield Change(ETP, tp, "tensor_model_parallel_size, by Megatron-Core, ModelParallelConfig")


def _expert_size(facts: Facts) -> Iterator[Change]:
    """Experts as wide as a dense layer where nothing is said of them."""
    ffn = facts.count("ffn_hidden_size")
    if ffn and facts.count("num_moe_experts") and facts.null("moe_ffn_hidden_size"):
        yield Change("moe_ffn_hidden_size", ffn, f"ffn_hidden_size, by {_RENAMED}")


CORE_RULES: Final[tuple[Rule, ...]] = (
    _graph_switches,
    _graph_modules,
    _deepep_switch,
    _layer_recompute,
    _recompute_modules,
    _sm_counts,
    _sizes,
    _expert_size,
)


_OVERLAP: Final = "comm_overlap, by Megatron-Bridge, CommOverlapConfig.setup"
OFF_UNLESS_SAID: Final = ("overlap_moe_expert_parallel_comm", "delay_wgrad_compute")
"""Fields of comm_overlap that are written over the model's, off where it does not say them."""
_DROPS_SEQUENCE_PARALLEL: Final = Release((0, 17, 0))
_EXPERT_TENSOR_ONE: Final = Release((0, 19, 0))
"""Since Megatron-Bridge 0.4.0 and 0.6.0, by the Megatron-Core that they have."""
_HIERARCHY: Final = "hierarchical_context_parallel_sizes"
BUCKET_ELEMENTS: Final = 128 * 1024 * 1024
"""Megatron-Bridge, training/comm_overlap.py, where data-parallel ranks are more than one."""


class _Recipes(Struct, frozen=True, forbid_unknown_fields=True):
    default: dict[str, Value]
    base: dict[str, dict[str, Value]]
    recipe: dict[str, dict[str, Value]]


@cache
def recipe(name: str) -> dict[str, Value]:
    """Fields of a mixed-precision recipe; empty where there is none of that name."""
    table = read_table("traces.settings", "precision_recipes.toml", _Recipes)
    base = table.base["fp16" if name.startswith("fp16") else "bf16"]
    return {**table.default, **base, **table.recipe[name]} if name in table.recipe else {}


def of_precision(name: Value, own: Mapping[str, Value]) -> dict[str, Value]:
    """Knobs that a precision writes over those of model, data-parallel wrapper and optimizer.

    `name`: of a recipe, or anything else for none; `own`: what the file says, as `mixed_precision.FIELD`.
    Source: Megatron-Bridge, training/mixed_precision.py, MixedPrecisionConfig.setup.
    """
    said = {knob.removeprefix("mixed_precision."): value for knob, value in own.items()}
    fields = (recipe(name) if isinstance(name, str) else {}) | said
    return {
        target: value
        for field, value in fields.items()
        for target in (field, f"ddp.{field}", f"optimizer.{field}")
        if target in knobs()
    }


def _precision(facts: Facts) -> Iterator[Change]:
    own = {knob: facts.value(knob) for knob in facts.group("mixed_precision.")}
    for knob, value in of_precision(facts.value("mixed_precision"), own).items():
        yield Change(knob, value, "mixed_precision, by Megatron-Bridge, MixedPrecisionConfig.setup")


def _has_overlap(facts: Facts) -> bool:
    return bool(facts.group("comm_overlap."))


def _is_told(facts: Facts, name: str) -> bool:
    """Whether the file says the knob in either place; else a recipe we do not see may say it."""
    return _has_overlap(facts) and (facts.known(f"comm_overlap.{name}") or facts.known(name))


def _tensor_parallel(facts: Facts) -> Iterator[Change]:
    """Asked of comm_overlap, and dropped without tensor or sequence parallelism."""
    if not _is_told(facts, "tp_comm_overlap"):
        return
    size = facts.count(TP)
    if facts.value("comm_overlap.tp_comm_overlap") is not True:
        yield Change("tp_comm_overlap", False, _OVERLAP)
    elif size is not None and size < 2:
        yield Change("tp_comm_overlap", False, f"tensor_model_parallel_size below 2: dropped; {_OVERLAP}")
    elif facts.value("sequence_parallel") is False:
        yield Change("tp_comm_overlap", False, f"sequence_parallel off: dropped; {_OVERLAP}")
    elif size is not None and facts.value("sequence_parallel") is True:
        yield Change("tp_comm_overlap", True, _OVERLAP)


def _expert_parallel(facts: Facts) -> Iterator[Change]:
    """comm_overlap's values, False where it has none, are written over the model's."""
    for name in OFF_UNLESS_SAID:
        if _is_told(facts, name):
            yield Change(name, facts.value(f"comm_overlap.{name}") is True, _OVERLAP)


def _pipeline(facts: Facts) -> Iterator[Change]:
    """Between stages: overlapped with virtual stages, batched without."""
    stages = facts.count(PP)
    if not _has_overlap(facts) or stages is None or (stages > 1 and not facts.known(VIRTUAL_STAGES)):
        return
    is_virtual = (facts.count(VIRTUAL_STAGES) or 1) > 1
    for name, is_way in (("overlap_p2p_comm", is_virtual), ("batch_p2p_comm", not is_virtual)):
        own = facts.value(f"comm_overlap.{name}")
        yield Change(name, stages > 1 and is_way if own is None else own, _OVERLAP)


def _data_parallel(facts: Facts) -> Iterator[Change]:
    """With the distributed optimizer: on where data-parallel ranks are more than one."""
    if not _has_overlap(facts) or facts.value("ddp.use_distributed_optimizer") is not True:
        return
    ranks = facts.count("comm_overlap.data_parallel_size") or facts.count("data_parallel_size")
    is_spread = (ranks or 0) > 1
    ways = {"overlap_grad_reduce": is_spread, "overlap_param_gather": is_spread}
    for name, value in {**ways, "bucket_size": BUCKET_ELEMENTS if is_spread else None}.items():
        own = facts.value(f"comm_overlap.{name}")
        if own is not None or ranks is not None:
            yield Change(f"ddp.{name}", value if own is None else own, _OVERLAP)


def _flex(facts: Facts) -> Iterator[Change]:
    """Since main of August 2026, flex without a backend is the all-to-all."""
    is_flex = facts.value("moe_token_dispatcher_type") == "flex"
    if facts.core >= MAIN and is_flex and facts.null("moe_flex_dispatcher_backend"):
        why = "flex without a backend, by Megatron-Bridge, validate_flex_dispatcher_backend"
        yield Change("moe_token_dispatcher_type", "alltoall", why)


def _rng_tracker(facts: Facts) -> Iterator[Change]:
    """Either of the two switches both on."""
    both = ("rng.te_rng_tracker", "use_te_rng_tracker")
    if any(facts.value(knob) is True for knob in both):
        why = "the other te_rng_tracker, by Megatron-Bridge, ConfigContainer.validate"
        yield from (Change(knob, True, why) for knob in both)


def _finalized(facts: Facts) -> Iterator[Change]:
    """What the model's configuration fills in or drops before Megatron-Core checks it."""
    why = "Megatron-Bridge, models/transformer_config.py, finalize"
    if (facts.count(PP) or 1) > 1 and facts.null("pipeline_dtype"):
        yield Change("pipeline_dtype", facts.value("params_dtype") or "bf16", f"params_dtype, by {why}")
    is_alone = facts.count(TP) == 1 and facts.core >= _DROPS_SEQUENCE_PARALLEL
    if is_alone and facts.value("sequence_parallel") is True:
        yield Change("sequence_parallel", False, f"tensor_model_parallel_size 1, by {why}")
    is_spread = (facts.count(EP) or 1) > 1
    if facts.core >= _EXPERT_TENSOR_ONE and is_spread and facts.null(ETP):
        yield Change(ETP, 1, f"expert_model_parallel_size, by {why}")
    kinds = facts.value("cp_comm_type")
    named = kinds if isinstance(kinds, tuple) else (kinds,)
    if "a2a+p2p" in named and not facts.known(_HIERARCHY):  # no recipe of Bridge sets either
        yield Change(_HIERARCHY, None, "default")


BRIDGE_RULES: Final[tuple[Rule, ...]] = (
    _precision,
    _tensor_parallel,
    _expert_parallel,
    _pipeline,
    _data_parallel,
    _flex,
    _rng_tracker,
)
"""In the order of runtime_config_update."""

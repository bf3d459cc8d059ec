"""What the frameworks make of settings: names migrated, values written over others, switches
dropped.

`said` of each changed knob says why. Nothing is changed where what decides it is unknown.
Megatron-LM's rules are those of training/arguments.py, validate_args, Megatron-Core's its own
(core_v0.16.1 and main), Megatron-Bridge's those of training/config.py, runtime_config_update
(067f987d).
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Final, NamedTuple

from msgspec import Struct

from traces.settings.knobs import FIRST, MAIN, PP, TP, VIRTUAL_STAGES, Release, knobs, release
from traces.settings.settings import KnobView, Settings, Value, Values, entries_of
from traces.texts import Texts
from traces.toml_tables import TableRow, read_table


class ImposedValue(NamedTuple):
    """A knob that a framework sets to another value. `why`: what makes it, and where."""

    knob: str
    value: Value
    why: str


Changes = Iterator[ImposedValue]


class RuleFacts(KnobView):
    """Settings as a rule asks them, and the release of Megatron-Core."""

    def __init__(self, settings: Settings, core: Release) -> None:
        super().__init__(settings)
        self.core = core

    def is_default(self, knob: str) -> bool:
        return self.settings.said(knob) == "default"


class ImposedRow(Struct, frozen=True, forbid_unknown_fields=True):
    """A row of `effective.toml`, which says what its fields are."""

    why: str
    when: dict[str, tuple[Value, ...]] = {}
    unless: dict[str, tuple[Value, ...]] = {}
    null: Texts = ()
    default: Texts = ()
    asked: Texts = ()
    since: Release = FIRST
    sets: Values = {}
    copies: dict[str, str] = {}

    def __call__(self, facts: RuleFacts) -> Changes:
        holds = (
            facts.core >= self.since
            and all(facts.value(knob) in values for knob, values in self.when.items())
            and not any(facts.value(knob) in values for knob, values in self.unless.items())
            and all(map(facts.null, self.null))
            and all(map(facts.is_default, self.default))
            and not any(map(facts.is_default, self.asked))
        )
        if not holds:
            return
        for knob, value in self.sets.items():
            yield ImposedValue(knob, value, self.why)
        for knob, source in self.copies.items():
            if (value := facts.value(source)) is not None:
                yield ImposedValue(knob, value, self.why)


Rule = Callable[[RuleFacts], Changes]


@cache
def _rules(name: str) -> tuple[Rule, ...]:
    table = read_table(
        "traces.settings", "effective.toml", dict[str, tuple[ImposedRow, ...]], {Release: release}
    )
    return (*_COMPUTED.get(name, ()), *table[name])


def effective(said: Settings, core_version: str | None = None) -> Settings:
    """Settings as a run has them. `core_version`: of Megatron-Core; the newest where it is unknown.

    Rules apply in the frameworks' order: precision, overlap of communication, then Megatron-Core's
    own.
    """
    own = {"megatron_bridge": ("megatron_bridge", "finalized"), "megatron_lm": ("megatron_lm",)}
    return _applied((*own.get(said.framework or "", ()), "core"), said, core_version)


def finalized(written: Settings, core_version: str | None) -> Settings:
    """Settings with what Bridge's model fills in or drops before Megatron-Core checks it."""
    return _applied(("finalized",), written, core_version)


def _applied(names: Iterable[str], settings: Settings, core_version: str | None) -> Settings:
    core = release(core_version) or MAIN
    for name in names:
        for rule in _rules(name):
            for knob, value, why in rule(RuleFacts(settings, core)):
                if knob not in settings or settings.value(knob) != value:
                    settings = settings.changed({knob: value}, why)
    return settings


def _feed_forward(facts: RuleFacts) -> Changes:
    """A gated layer is two thirds as wide, in steps of 64."""
    hidden = facts.count("hidden_size")
    is_gated = facts.value("gated_linear_unit") is True and facts.value("activation_func") == "silu"
    if hidden and is_gated and facts.null("ffn_hidden_size"):
        size = int((4 * hidden * 2 / 3) / 64) * 64
        yield ImposedValue(
            "ffn_hidden_size", size, "hidden_size with --swiglu, by Megatron-LM, validate_args"
        )


_RENAMED: Final = "Megatron-Core, TransformerConfig.__post_init__"


def _graph_of_all(facts: RuleFacts) -> Changes:
    """`full_iteration` is an implementation since 0.18."""
    modules = facts.value("cuda_graph_modules")
    why = "cuda_graph_modules, by Megatron-Core, cuda_graph_config.py"
    if isinstance(modules, tuple) and "full_iteration" in modules and facts.core >= (0, 18, 0):
        yield ImposedValue("cuda_graph_impl", "full_iteration", why)
        yield ImposedValue(
            "cuda_graph_modules", tuple(part for part in modules if part != "full_iteration"), why
        )


def _layer_recompute(facts: RuleFacts) -> Changes:
    """The switch that recompute_modules replaced."""
    granularity, listed = "recompute_granularity", "recompute_modules"
    # what its script leaves out is the default
    is_whole = facts.settings.framework == "megatron_lm"
    is_told = is_whole or (facts.known(granularity) and facts.known(listed))
    if (
        facts.value("moe_layer_recompute") is True
        and is_told
        and facts.value(granularity) != "full"
    ):
        before = facts.names(listed) or ()
        why = f"moe_layer_recompute, by {_RENAMED}"
        yield ImposedValue(granularity, "selective", why)
        yield ImposedValue(listed, tuple(dict.fromkeys((*before, "moe"))), why)


def _sizes(facts: RuleFacts) -> Changes:
    """Sizes that follow from others where they are said to be null."""
    hidden, heads = facts.count("hidden_size"), facts.count("num_attention_heads")
    if hidden and heads and hidden % heads == 0 and facts.null("kv_channels"):
        yield ImposedValue("kv_channels", hidden // heads, f"hidden_size and heads, by {_RENAMED}")
    if hidden and facts.null("ffn_hidden_size"):
        yield ImposedValue("ffn_hidden_size", 4 * hidden, f"hidden_size, by {_RENAMED}")


_OVERLAP: Final = "comm_overlap, by Megatron-Bridge, CommOverlapConfig.setup"
OFF_UNLESS_SAID: Final = ("overlap_moe_expert_parallel_comm", "delay_wgrad_compute")
"""Fields of comm_overlap that are written over the model's, off where it does not say them."""
_HIERARCHY: Final = "hierarchical_context_parallel_sizes"
BUCKET_ELEMENTS: Final = 128 * 1024 * 1024
"""Megatron-Bridge, training/comm_overlap.py, where data-parallel ranks are more than one."""


class _Recipes(TableRow):
    default: Values
    base: dict[str, Values]
    recipe: dict[str, Values]


@cache
def recipe(name: str) -> Values:
    """Fields of a mixed-precision recipe; empty where there is none of that name."""
    table = read_table("traces.settings", "precision_recipes.toml", _Recipes)
    base = table.base["fp16" if name.startswith("fp16") else "bf16"]
    if name in table.recipe:
        return {**table.default, **base, **table.recipe[name]}
    return {}


def of_precision(said: Settings) -> Values:
    """Knobs that a precision, named or spelled out as `mixed_precision.FIELD`, writes over those of
    model, data-parallel wrapper and optimizer.

    Source: Megatron-Bridge, training/mixed_precision.py, MixedPrecisionConfig.setup.
    """
    fields = dict(recipe(KnobView(said).word("mixed_precision") or ""))
    for knob in said.by_knob:
        if knob.startswith("mixed_precision."):
            fields[knob.removeprefix("mixed_precision.")] = said.value(knob)
    written = {}
    for field, value in fields.items():
        for target in (field, f"ddp.{field}", f"optimizer.{field}"):
            if target in knobs():
                written[target] = value
    return written


def _precision(facts: RuleFacts) -> Changes:
    for knob, value in of_precision(facts.settings).items():
        yield ImposedValue(
            knob, value, "mixed_precision, by Megatron-Bridge, MixedPrecisionConfig.setup"
        )


def _has_overlap(facts: RuleFacts) -> bool:
    return bool(facts.group("comm_overlap."))


def _is_told(facts: RuleFacts, name: str) -> bool:
    """Whether the file says the knob in either place; else a recipe we do not see may say it."""
    return _has_overlap(facts) and (facts.known(f"comm_overlap.{name}") or facts.known(name))


def _tensor_parallel(facts: RuleFacts) -> Changes:
    """Asked of comm_overlap, and dropped without tensor or sequence parallelism."""
    if not _is_told(facts, "tp_comm_overlap"):
        return
    size = facts.count(TP)
    if facts.value("comm_overlap.tp_comm_overlap") is not True:
        yield ImposedValue("tp_comm_overlap", False, _OVERLAP)
    elif size is not None and size < 2:
        yield ImposedValue(
            "tp_comm_overlap", False, f"tensor_model_parallel_size below 2: dropped; {_OVERLAP}"
        )
    elif facts.value("sequence_parallel") is False:
        yield ImposedValue("tp_comm_overlap", False, f"sequence_parallel off: dropped; {_OVERLAP}")
    elif size is not None and facts.value("sequence_parallel") is True:
        yield ImposedValue("tp_comm_overlap", True, _OVERLAP)


def _expert_parallel(facts: RuleFacts) -> Changes:
    """comm_overlap's values, False where it has none, are written over the model's."""
    for name in OFF_UNLESS_SAID:
        if _is_told(facts, name):
            yield ImposedValue(name, facts.value(f"comm_overlap.{name}") is True, _OVERLAP)


def _pipeline(facts: RuleFacts) -> Changes:
    """Between stages: overlapped with virtual stages, batched without."""
    stages = facts.count(PP)
    if (
        not _has_overlap(facts)
        or stages is None
        or (stages > 1 and not facts.known(VIRTUAL_STAGES))
    ):
        return
    is_virtual = (facts.count(VIRTUAL_STAGES) or 1) > 1
    for name, is_way in (("overlap_p2p_comm", is_virtual), ("batch_p2p_comm", not is_virtual)):
        own = facts.value(f"comm_overlap.{name}")
        yield ImposedValue(name, stages > 1 and is_way if own is None else own, _OVERLAP)


def _data_parallel(facts: RuleFacts) -> Changes:
    """With the distributed optimizer: on where data-parallel ranks are more than one."""
    if not _has_overlap(facts) or facts.value("ddp.use_distributed_optimizer") is not True:
        return
    ranks = facts.count("comm_overlap.data_parallel_size") or facts.count("data_parallel_size")
    is_spread = ranks is not None and ranks > 1
    ways = {"overlap_grad_reduce": is_spread, "overlap_param_gather": is_spread}
    for name, value in {**ways, "bucket_size": BUCKET_ELEMENTS if is_spread else None}.items():
        own = facts.value(f"comm_overlap.{name}")
        if own is not None or ranks is not None:
            yield ImposedValue(f"ddp.{name}", value if own is None else own, _OVERLAP)


def _hierarchy(facts: RuleFacts) -> Changes:
    """No recipe of Bridge sets it."""
    if "a2a+p2p" in entries_of(facts.value("cp_comm_type")) and not facts.known(_HIERARCHY):
        yield ImposedValue(_HIERARCHY, None, "default")


_COMPUTED: Final = {
    "megatron_lm": (_feed_forward,),
    "core": (_graph_of_all, _layer_recompute, _sizes),
    "megatron_bridge": (_precision, _tensor_parallel, _expert_parallel, _pipeline, _data_parallel),
    "finalized": (_hierarchy,),
}
"""Rules that compute something, which apply before the rows of their framework."""

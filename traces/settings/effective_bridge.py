"""What Megatron-Bridge makes of its configuration (training/config.py, runtime_config_update, 067f987d)."""

from collections.abc import Mapping
from functools import cache
from typing import Final

from msgspec import Struct

from traces.settings.knobs import MAIN, Release, knobs
from traces.settings.rules import Change, Facts, Rule
from traces.settings.settings import Value
from traces.toml_tables import read_table

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


def _precision(facts: Facts) -> tuple[Change, ...]:
    own = {knob: facts.value(knob) for knob in facts.group("mixed_precision.")}
    why = "mixed_precision, by Megatron-Bridge, MixedPrecisionConfig.setup"
    written = of_precision(facts.value("mixed_precision"), own)
    return tuple(Change(knob, value, why) for knob, value in written.items())


def _has_overlap(facts: Facts) -> bool:
    return bool(facts.group("comm_overlap."))


def _tensor_parallel(facts: Facts) -> tuple[Change, ...]:
    """Asked of comm_overlap, and dropped without tensor or sequence parallelism."""
    if not _has_overlap(facts):
        return ()
    asked = facts.value("comm_overlap.tp_comm_overlap")
    if not _is_told(facts, "tp_comm_overlap"):
        return ()
    if asked is not True:
        return (Change("tp_comm_overlap", False, _OVERLAP),)
    size = facts.count("tensor_model_parallel_size")
    if size is not None and size < 2:
        return (Change("tp_comm_overlap", False, f"tensor_model_parallel_size below 2: dropped; {_OVERLAP}"),)
    if facts.value("sequence_parallel") is False:
        return (Change("tp_comm_overlap", False, f"sequence_parallel off: dropped; {_OVERLAP}"),)
    is_told = size is not None and facts.value("sequence_parallel") is True
    return (Change("tp_comm_overlap", True, _OVERLAP),) if is_told else ()


def _expert_parallel(facts: Facts) -> tuple[Change, ...]:
    """comm_overlap's values, False where it has none, are written over the model's."""
    if not _has_overlap(facts):
        return ()
    return tuple(
        Change(name, facts.value(f"comm_overlap.{name}") is True, _OVERLAP)
        for name in OFF_UNLESS_SAID
        if _is_told(facts, name)
    )


def _is_told(facts: Facts, name: str) -> bool:
    """Whether the file says the knob in either place; else a recipe we do not see may say it."""
    return facts.known(f"comm_overlap.{name}") or facts.known(name)


def _pipeline(facts: Facts) -> tuple[Change, ...]:
    """Between stages: overlapped with virtual stages, batched without."""
    stages = facts.count("pipeline_model_parallel_size")
    if not _has_overlap(facts) or stages is None:
        return ()
    if stages > 1 and not facts.known("virtual_pipeline_model_parallel_size"):
        return ()
    is_virtual = (facts.count("virtual_pipeline_model_parallel_size") or 1) > 1
    ways = {"overlap_p2p_comm": stages > 1 and is_virtual, "batch_p2p_comm": stages > 1 and not is_virtual}
    return tuple(Change(name, _or_own(facts, name, value), _OVERLAP) for name, value in ways.items())


def _data_parallel(facts: Facts) -> tuple[Change, ...]:
    """With the distributed optimizer: on where data-parallel ranks are more than one."""
    if not _has_overlap(facts) or facts.value("ddp.use_distributed_optimizer") is not True:
        return ()
    ranks = facts.count("comm_overlap.data_parallel_size") or facts.count("data_parallel_size")
    found: list[Change] = []
    for name in ("overlap_grad_reduce", "overlap_param_gather"):
        own = facts.value(f"comm_overlap.{name}")
        if own is not None or ranks is not None:
            value = (ranks or 0) > 1 if own is None else own
            found.append(Change(f"ddp.{name}", value, _OVERLAP))
    own_size = facts.value("comm_overlap.bucket_size")
    if own_size is not None or ranks is not None:
        size = (BUCKET_ELEMENTS if (ranks or 0) > 1 else None) if own_size is None else own_size
        found.append(Change("ddp.bucket_size", size, _OVERLAP))
    return tuple(found)


def _or_own(facts: Facts, name: str, value: bool) -> Value:
    own = facts.value(f"comm_overlap.{name}")
    return value if own is None else own


def _flex(facts: Facts) -> tuple[Change, ...]:
    """Since main of August 2026, flex without a backend is the all-to-all."""
    is_flex = facts.value("moe_token_dispatcher_type") == "flex"
    if facts.core < MAIN or not is_flex or not facts.null("moe_flex_dispatcher_backend"):
        return ()
    why = "flex without a backend, by Megatron-Bridge, validate_flex_dispatcher_backend"
    return (Change("moe_token_dispatcher_type", "alltoall", why),)


def _rng_tracker(facts: Facts) -> tuple[Change, ...]:
    """Either of the two switches both on."""
    both = ("rng.te_rng_tracker", "use_te_rng_tracker")
    if not any(facts.value(knob) is True for knob in both):
        return ()
    why = "the other te_rng_tracker, by Megatron-Bridge, ConfigContainer.validate"
    return tuple(Change(knob, True, why) for knob in both)


def finalized(facts: Facts) -> tuple[Change, ...]:
    """What the model's configuration fills in or drops before Megatron-Core checks it."""
    why = "Megatron-Bridge, models/transformer_config.py, finalize"
    stages, size = facts.count("pipeline_model_parallel_size"), facts.count("tensor_model_parallel_size")
    found: list[Change] = []
    if stages is not None and stages > 1 and facts.null("pipeline_dtype"):
        found.append(
            Change("pipeline_dtype", facts.value("params_dtype") or "bf16", f"params_dtype, by {why}")
        )
    if facts.core >= _DROPS_SEQUENCE_PARALLEL and size == 1 and facts.value("sequence_parallel") is True:
        found.append(Change("sequence_parallel", False, f"tensor_model_parallel_size 1, by {why}"))
    is_spread = (facts.count("expert_model_parallel_size") or 1) > 1
    if facts.core >= _EXPERT_TENSOR_ONE and is_spread and facts.null("expert_tensor_parallel_size"):
        found.append(Change("expert_tensor_parallel_size", 1, f"expert_model_parallel_size, by {why}"))
    kinds = facts.value("cp_comm_type")
    named = kinds if isinstance(kinds, tuple) else (kinds,)
    if "a2a+p2p" in named and not facts.known(_HIERARCHY):  # no recipe of Bridge sets either
        found.append(Change(_HIERARCHY, None, "default"))
    return tuple(found)


BRIDGE_RULES: Final[tuple[Rule, ...]] = (
    _precision,
    _tensor_parallel,
    _expert_parallel,
    _pipeline,
    _data_parallel,
    _flex,
    _rng_tracker,
    finalized,
)
"""In the order of runtime_config_update."""

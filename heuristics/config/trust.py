"""One order of trust: option, configuration file, log, trace. Only what is certain is inferred."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Final

from heuristics.config.about import OPTIONS, Given, Routing, option_of
from heuristics.config.features import FLEX
from heuristics.config.observed import Observed
from traces.settings.derive import with_ranks
from traces.settings.effective import effective, finalized, of_precision
from traces.settings.knobs import VIRTUAL_STAGES, knobs, release
from traces.settings.precision import RECIPES
from traces.settings.settings import Setting, Settings, Value, Values, settings

TRACE: Final = "trace"
"""Where a setting is from that only the trace tells."""

_ROUTINGS: Final[Mapping[Routing | None, Values]] = {
    "dropless": {
        "moe_expert_capacity_factor": None,
        "moe_pad_expert_input_to_capacity": False,
        "moe_router_force_load_balancing": False,
    },
    "drop_pad": {"moe_pad_expert_input_to_capacity": True},
    "force_balance": {"moe_router_force_load_balancing": True},
}
_WIDE: Final = ("bf16", "fp16", "fp32", "tf32")
_DISPATCHERS: Final[Mapping[str, Values]] = {
    "alltoall": {"moe_token_dispatcher_type": "alltoall"},
    "allgather": {"moe_token_dispatcher_type": "allgather"},
    **{
        backend: {"moe_token_dispatcher_type": "flex", "moe_flex_dispatcher_backend": backend}
        for backend in FLEX
    },
}


def by_trust(given: Given, observed: Observed, files: Settings) -> Settings:
    """All sources in one: options over files (where the configuration outweighs the log) over the
    trace.
    """
    if given.precision:  # a recipe of the file would write over the precision that was given
        stale = OPTIONS["precision"].knobs
        kept = {knob: setting for knob, setting in files.by_knob.items() if knob not in stale}
        files = Settings(kept, files.framework)
    return with_ranks(observed_settings(observed).under(files).under(given_settings(given)))


def files_alone(given: Given) -> Given:
    return replace(given, **{name: None for name, option in OPTIONS.items() if option.knobs})  # type: ignore[arg-type]


def files_by_trust(configuration: Settings, log: Settings | None) -> Settings:
    """What files configure: the configuration over what the log printed of it."""
    return (log or Settings()).under(configuration)


def effective_settings(written: Settings, core_version: str | None) -> Settings:
    """Settings as the framework has them, a named recipe of Bridge's precision included."""
    return _without_later_knobs(core_version).under(effective(_with_recipe(written), core_version))


@cache
def _without_later_knobs(core_version: str | None) -> Settings:
    """What a release of Megatron-Core cannot have on, as the setting came later: off, or at its
    default.
    """
    core = release(core_version)
    if core is None:
        return Settings()
    off = {}
    for knob in knobs().values():
        if knob.is_core and core < knob.since:
            off[knob.id] = False if knob.kind == "bool" else None
    return settings(off, f"not in Megatron-Core {core_version}")


def given_settings(given: Given) -> Settings:
    by_knob = {}
    for field, row in OPTIONS.items():
        value = getattr(given, field)
        if row.is_knob and value is not None:
            by_knob[row.knobs[0]] = Setting(value, option_of(field))
    # an option tells more than kernels do, which leave a smaller part of the work unknown
    off = {"fp8": None, "fp4": None} if given.precision in _WIDE else {}
    variables = (variable.partition("=") for variable in given.env or ())
    values: Mapping[str, Values] = {
        "--vpp": {VIRTUAL_STAGES: None} if given.vpp == 1 else {},
        "--precision": {**_precision_knobs(given.precision), **off},
        "--routing": _ROUTINGS.get(given.routing, {}),
        "--env": {f"env.{name}": text for name, _, text in variables},
    }
    for option, option_values in values.items():
        by_knob |= settings(option_values, option).by_knob
    return Settings(by_knob)


def observed_settings(observed: Observed) -> Settings:
    shown = {
        **_DISPATCHERS.get(observed.dispatcher, {}),
        **_precision_knobs(observed.precision),
    }
    if observed.grouped_gemm:
        shown["moe_grouped_gemm"] = True
    if observed.ep_overlap:
        shown["overlap_moe_expert_parallel_comm"] = True
    return settings(shown | _recompute_knobs(observed), TRACE)


def validated_settings(written: Settings, core_version: str | None) -> Settings:
    """Settings as the framework's checks see them.

    Megatron-LM changes its arguments, with a word, before any is looked at; Megatron-Bridge's are
    checked as written, but for a recipe of precision and what its model fills in.
    """
    if written.framework == "megatron_lm":
        return effective_settings(written, core_version)
    without_later = _without_later_knobs(core_version).under(_with_recipe(written))
    if written.framework is None:
        return without_later
    return finalized(without_later, core_version)


def _with_recipe(written: Settings) -> Settings:
    """With the fields that Bridge's precision, named or spelled out, writes over those of the
    model.
    """
    place = written.said("mixed_precision") or "mixed_precision"
    return written.under(settings(of_precision(written), place))


def _recompute_knobs(observed: Observed) -> dict[str, Value]:
    """Some modules run again, and not all: selective. A repeated MoE layer repeats its activation
    too.
    """
    modules = observed.recompute_modules
    if not modules or observed.recompute_full is not False:
        return {}
    named = tuple(name for name in modules if name != "moe_act" or "moe" not in modules)
    return {"recompute_granularity": "selective", "recompute_modules": named}


def _precision_knobs(precision: str | None) -> Values:
    """What matrix work in a precision tells; its FP8 format (e4m3, hybrid) nothing does."""
    if precision in _WIDE:
        return {"bf16": precision == "bf16", "fp16": precision == "fp16"}
    if precision in RECIPES:
        return {"fp8_recipe": RECIPES[precision]}
    if precision == "nvfp4":
        return {"fp4_recipe": "nvfp4"}
    return {}

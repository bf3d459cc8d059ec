"""One order of trust: option, configuration file, log, trace. Only what is certain is inferred."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from heuristics.config.precision import RECIPES
from heuristics.run.given import Given, Routing
from heuristics.run.observed import Observed
from traces.settings.effective import effective
from traces.settings.effective_bridge import of_precision, recipe
from traces.settings.settings import Setting, Settings, Value

Understand = Callable[[Settings, str | None], Settings]
"""What a framework makes of settings, by the version of Megatron-Core."""

TRACE: Final = "trace"
"""Where a setting is from that only the trace tells."""

_OPTIONS: Final = {
    "ep": ("--ep", "expert_model_parallel_size"),
    "etp": ("--etp", "expert_tensor_parallel_size"),
    "tp": ("--tp", "tensor_model_parallel_size"),
    "cp": ("--cp", "context_parallel_size"),
    "pp": ("--pp", "pipeline_model_parallel_size"),
    "vpp": ("--vpp", "virtual_pipeline_model_parallel_size"),
    "pp_layout": ("--pp-layout", "pipeline_model_parallel_layout"),
    "graph_impl": ("--graph-impl", "cuda_graph_impl"),
    "graph_modules": ("--graph-modules", "cuda_graph_modules"),
    "router_padding": ("--router-padding", "moe_router_padding_for_quantization"),
    "te_op_fuser": ("--te-op-fuser", "use_transformer_engine_op_fuser"),
    "cpu_bound_to_numa": ("--cpu-bound-to-numa", "launcher.numa_binding"),
}
"""Field of `Given` -> its option and the one knob it is."""

_DISPATCHERS: Final[Mapping[str, Mapping[str, Value]]] = {
    "alltoall": {"moe_token_dispatcher_type": "alltoall"},
    "allgather": {"moe_token_dispatcher_type": "allgather"},
    **{
        backend: {"moe_token_dispatcher_type": "flex", "moe_flex_dispatcher_backend": backend}
        for backend in ("deepep", "hybridep", "ncclep")
    },
}


def by_trust(given: Given, observed: Observed, files: Settings) -> Settings:
    """All sources in one: options over files (where the configuration outweighs the log) over the trace."""
    return observed_settings(observed).under(files).under(given_settings(given))


def files_by_trust(configuration: Settings, log: Settings | None) -> Settings:
    """What files configure: the configuration over what the log printed of it."""
    return (log or Settings()).under(configuration)


def effective_settings(written: Settings, core_version: str | None) -> Settings:
    """Settings as the framework has them, a named recipe of Bridge's precision included."""
    return effective(_with_recipe(written), core_version)


def given_settings(given: Given) -> Settings:
    """What the options configure, by the option's name."""
    found: dict[str, Setting] = {}
    for field, (option, knob) in _OPTIONS.items():
        value: Value = getattr(given, field)
        if value is not None:
            found[knob] = Setting(value, option)
    if given.vpp == 1:
        found["virtual_pipeline_model_parallel_size"] = Setting(None, "--vpp")
    for knob, value in (*_precision_knobs(given.precision).items(), *_wide(given.precision).items()):
        found[knob] = Setting(value, "--precision")
    for knob, value in _routing_knobs(given.routing).items():
        found[knob] = Setting(value, "--routing")
    return Settings(found)


def observed_settings(observed: Observed) -> Settings:
    """What the trace tells of settings, for certain."""
    knobs: dict[str, Value] = dict(_DISPATCHERS.get(observed.dispatcher, {}))
    knobs.update(_precision_knobs(observed.precision))
    if observed.grouped_gemm:
        knobs["moe_grouped_gemm"] = True
    if observed.ep_overlap:
        knobs["overlap_moe_expert_parallel_comm"] = True
    knobs.update(_recompute_knobs(observed))
    return Settings({knob: Setting(value, TRACE) for knob, value in knobs.items()})


def validated_settings(written: Settings, core_version: str | None) -> Settings:
    """Settings as the framework's checks see them.

    Megatron-LM changes its arguments, with a word, before any is looked at; Megatron-Bridge's are checked as
    written, a named recipe of precision included.
    """
    is_lm = written.framework == "megatron_lm"
    return effective_settings(written, core_version) if is_lm else _with_recipe(written)


def _with_recipe(written: Settings) -> Settings:
    """With the fields that a named recipe of Bridge writes over those of model, wrapper and optimizer."""
    name = written.value("mixed_precision")
    if not isinstance(name, str) or not recipe(name):
        return written
    own = {knob: written.value(knob) for knob in written.by_knob if knob.startswith("mixed_precision.")}
    place = written.said("mixed_precision")
    fields = of_precision(name, own)
    return written.under(Settings({knob: Setting(value, place) for knob, value in fields.items()}))


def _recompute_knobs(observed: Observed) -> dict[str, Value]:
    """Some modules run again, and not all: selective. A repeated MoE layer repeats its activation too."""
    modules = observed.recompute_modules
    if not modules or observed.recompute_full is not False:
        return {}
    named = tuple(name for name in modules if name != "moe_act" or "moe" not in modules)
    return {"recompute_granularity": "selective", "recompute_modules": named}


def _precision_knobs(precision: str | None) -> dict[str, Value]:
    """What matrix work in a precision tells; its FP8 format (e4m3, hybrid) nothing does."""
    if precision in ("bf16", "fp16"):
        return {"bf16": precision == "bf16", "fp16": precision == "fp16"}
    if precision in ("fp32", "tf32"):
        return {"bf16": False, "fp16": False}
    if precision in RECIPES:
        return {"fp8_recipe": RECIPES[precision]}
    return {"fp4_recipe": "nvfp4"} if precision == "nvfp4" else {}


def _wide(precision: str | None) -> dict[str, Value]:
    """What an option tells beyond kernels, which leave a smaller part of the work unknown."""
    wide = precision in ("bf16", "fp16", "fp32", "tf32")
    return {"fp8": None, "fp4": None} if wide else {}


def _routing_knobs(routing: Routing | None) -> dict[str, Value]:
    if routing == "dropless":
        return {
            "moe_expert_capacity_factor": None,
            "moe_pad_expert_input_to_capacity": False,
            "moe_router_force_load_balancing": False,
        }
    if routing == "drop_pad":
        return {"moe_pad_expert_input_to_capacity": True}
    return {"moe_router_force_load_balancing": True} if routing == "force_balance" else {}

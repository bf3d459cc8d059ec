"""What was given and what a trace shows, as settings; and what settings give beside what was given.

Order of trust: option, configuration file, log, trace. Only what is certain is inferred.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from heuristics.config.hardware import gpu_family
from heuristics.run.run import Given, Routing, Shown
from traces.limits import Limit
from traces.settings.derive import with_ranks
from traces.settings.settings import Setting, Settings, Value, settings

TRACE: Final = "trace"
WHOLE: Final = Limit(
    100,
    "knobs",
    "ours: overrides and scripts name tens, a dumped configuration or block of arguments every one",
)

FIELD_KNOBS: Final[Mapping[str, tuple[str, ...]]] = {
    "gpu": ("launcher.gpu",),
    "world_size": ("world_size",),
    "gpus_per_node": ("launcher.gpus_per_node",),
    "ep": ("expert_model_parallel_size",),
    "etp": ("expert_tensor_parallel_size",),
    "tp": ("tensor_model_parallel_size",),
    "cp": ("context_parallel_size",),
    "pp": ("pipeline_model_parallel_size",),
    "vpp": (
        "virtual_pipeline_model_parallel_size",
        "pipeline_model_parallel_layout",
        "pipeline_model_parallel_size",
    ),
    "precision": (
        "bf16",
        "fp16",
        "fp8",
        "fp4",
        "fp8_recipe",
        "fp4_recipe",
        "mixed_precision",
        "mixed_precision.fp8",
        "mixed_precision.fp8_recipe",
        "mixed_precision.fp4",
    ),
    "routing": (
        "moe_expert_capacity_factor",
        "moe_pad_expert_input_to_capacity",
        "moe_router_force_load_balancing",
    ),
    "graph_impl": ("cuda_graph_impl", "enable_cuda_graph", "external_cuda_graph"),
    "graph_modules": ("cuda_graph_modules",),
    "packed_sequences": (
        "sft",
        "dataset.enable_offline_packing",
        "dataset.enable_in_batch_packing",
        "dataset.packing_buffer_size",
    ),
    "router_padding": ("moe_router_padding_for_quantization", "moe_router_padding_for_fp8"),
    "te_op_fuser": ("use_transformer_engine_op_fuser",),
    "cpu_bound_to_numa": ("launcher.numa_binding",),
    "pp_layout": ("pipeline_model_parallel_layout",),
    "family": ("num_layers", "hidden_size", "num_moe_experts", "moe_router_topk"),
}
"""Fields of `Given` and the knobs that tell them."""

_SIZES: Final = {
    "world_size": ("--world-size", "world_size"),
    "gpus_per_node": ("--gpus-per-node", "launcher.gpus_per_node"),
    "ep": ("--ep", "expert_model_parallel_size"),
    "etp": ("--etp", "expert_tensor_parallel_size"),
    "tp": ("--tp", "tensor_model_parallel_size"),
    "cp": ("--cp", "context_parallel_size"),
    "pp": ("--pp", "pipeline_model_parallel_size"),
    "vpp": ("--vpp", "virtual_pipeline_model_parallel_size"),
}
_AS_GIVEN: Final = {
    "pp_layout": ("--pp-layout", "pipeline_model_parallel_layout"),
    "graph_impl": ("--graph-impl", "cuda_graph_impl"),
    "graph_modules": ("--graph-modules", "cuda_graph_modules"),
    "router_padding": ("--router-padding", "moe_router_padding_for_quantization"),
    "te_op_fuser": ("--te-op-fuser", "use_transformer_engine_op_fuser"),
    "cpu_bound_to_numa": ("--cpu-bound-to-numa", "launcher.numa_binding"),
}

RECIPES: Final = {
    "fp8_delayed": "delayed",
    "fp8_current": "tensorwise",
    "fp8_blockwise": "blockwise",
    "mxfp8": "mxfp8",
}
"""A precision by our name -> `fp8_recipe` of Megatron-Core."""
_MIXED: Final = (
    ("mxfp8", "mxfp8"),
    ("nvfp4", "nvfp4"),
    ("fp8_delayed", "fp8_delayed"),
    ("fp8_current", "fp8_current"),
    ("fp8_subchannel", "fp8_blockwise"),
)
"""Part of a recipe's name in Megatron-Bridge, training/mixed_precision.py -> precision by our name."""

_DISPATCHERS: Final[Mapping[str, Mapping[str, Value]]] = {
    "alltoall": {"moe_token_dispatcher_type": "alltoall"},
    "allgather": {"moe_token_dispatcher_type": "allgather"},
    **{
        backend: {"moe_token_dispatcher_type": "flex", "moe_flex_dispatcher_backend": backend}
        for backend in ("deepep", "hybridep", "ncclep")
    },
}

_FAMILIES: Final = {
    (61, 7168, 256, 8): "dsv3",
    (94, 4096, 128, 8): "qwen3_235b",
    (48, 2048, 128, 8): "qwen3_30b",
    (48, 2048, 512, 10): "qwen3_next",
}
"""(num_layers, hidden_size, num_moe_experts, moe_router_topk) -> family, as Megatron-Bridge's recipes of
deepseek_v3, qwen3_235b_a22b, qwen3_30b_a3b and qwen3_next_80b_a3b have them."""


def settings_of(given: Given, shown: Shown) -> Settings:
    """What the options and the trace say, in knob ids; said by the option's name, or by "trace".

    `given` as the options gave it: what `given_of` filled in would be called an option's.
    """
    options: dict[str, Setting] = {}
    for field, (option, knob) in (*_SIZES.items(), *_AS_GIVEN.items()):
        value: Value = getattr(given, field)
        if value is not None:
            options[knob] = Setting(value, option)
    if given.vpp == 1:
        options["virtual_pipeline_model_parallel_size"] = Setting(None, "--vpp")
    for knob, value in (
        *_precision_knobs(given.precision).items(),
        *_said_precision(given.precision).items(),
    ):
        options[knob] = Setting(value, "--precision")
    for knob, value in _routing_knobs(given.routing).items():
        options[knob] = Setting(value, "--routing")
    options.update(environment_of(given).by_knob)
    return Settings({**_trace_knobs(shown), **options})


def environment_of(given: Given) -> Settings:
    """Variables that options give: as good as written in a file, which may have no place for them."""
    pairs = (variable.partition("=") for variable in given.env or ())
    return settings({f"env.{name}": text for name, _, text in pairs}, "--env")


def is_whole(settings: Settings) -> bool:
    """Whether the file says all that the run has: what it does not name is then the framework's default."""
    return settings.framework == "megatron_lm" or len(settings.by_knob) >= WHOLE.value


def only_data_parallel(given: Given, said: Settings) -> bool:
    """Whether tensor, expert, pipeline and context parallelism are all said to be 1.

    `said`: what files say of the run. Where they say all that it has, what they leave out is 1.
    """
    told = given_of(said, given, {})
    sizes = [told.tp, told.ep, told.pp, told.cp]
    if is_whole(said):
        sizes = [1 if size is None else size for size in sizes]
    return all(size == 1 for size in sizes) and told.etp in (None, 1)


def settings_by_trust(options_and_trace: Settings, file: Settings | None, log: Settings | None) -> Settings:
    """All sources in one: options over the configuration file over the log over the trace."""
    by_knob = options_and_trace.by_knob
    shown = Settings({knob: one for knob, one in by_knob.items() if one.said == TRACE})
    options = Settings({knob: one for knob, one in by_knob.items() if one.said != TRACE})
    return with_ranks(shown.under(log or Settings()).under(file or Settings()).under(options))


def given_of(settings: Settings, given: Given, versions: Mapping[str, str]) -> Given:
    """What was given, filled up from the settings; `versions` by package: core, bridge, torch, te."""
    found: dict[str, object] = {field: _size(settings, knob) for field, (_, knob) in _SIZES.items()}
    found["vpp"] = _virtual_stages(settings)
    found["etp"] = _expert_tensor(settings)
    found["precision"] = _precision(settings)
    found["routing"] = _routing(settings)
    found["graph_impl"] = _graph_impl(settings)
    found["graph_modules"] = _names(settings, "cuda_graph_modules")
    found["packed_sequences"] = _any_on(settings, FIELD_KNOBS["packed_sequences"])
    found["router_padding"] = _any_on(settings, FIELD_KNOBS["router_padding"])
    found["te_op_fuser"] = _on(settings, "use_transformer_engine_op_fuser")
    found["cpu_bound_to_numa"] = _on(settings, "launcher.numa_binding")
    found["pp_layout"] = _text(settings, "pipeline_model_parallel_layout")
    found["family"] = _family(settings)
    found["gpu"] = gpu_family(_text(settings, "launcher.gpu") or "")
    for package in ("core", "bridge", "torch", "te"):
        found[f"{package}_version"] = versions.get(package)
    missing = {
        field: value for field, value in found.items() if value is not None and getattr(given, field) is None
    }
    return replace(given, **missing)  # type: ignore[arg-type]


def _trace_knobs(shown: Shown) -> dict[str, Setting]:
    knobs: dict[str, Value] = dict(_DISPATCHERS.get(shown.dispatcher, {}))
    knobs.update(_precision_knobs(shown.precision))
    if shown.grouped_gemm:
        knobs["moe_grouped_gemm"] = True
    knobs.update(_recompute_knobs(shown))
    return {knob: Setting(value, TRACE) for knob, value in knobs.items()}


def _recompute_knobs(shown: Shown) -> dict[str, Value]:
    """Some modules run again, and not all: selective. A repeated MoE layer repeats its activation too."""
    modules = shown.recompute_modules
    if not modules or shown.recompute_full is not False:
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


def _said_precision(precision: str | None) -> dict[str, Value]:
    """What an option says beyond kernels, which leave a smaller part of the work untold."""
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


def _size(settings: Settings, knob: str) -> int | None:
    value = settings.value(knob)
    if knob in settings and value is None:
        return 1
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _virtual_stages(settings: Settings) -> int | None:
    """None said is 1, but not beside a layout string, which has virtual stages of its own."""
    knob = "virtual_pipeline_model_parallel_size"
    if settings.value(knob) is None and settings.value("pipeline_model_parallel_layout"):
        return None
    return _size(settings, knob)


def _expert_tensor(settings: Settings) -> int | None:
    """None said is the tensor-parallel size."""
    knob = "expert_tensor_parallel_size"
    null = knob in settings and settings.value(knob) is None
    return _size(settings, "tensor_model_parallel_size" if null else knob)


def _on(settings: Settings, knob: str) -> bool | None:
    return bool(settings.value(knob)) if knob in settings else None


def _any_on(settings: Settings, knobs: tuple[str, ...]) -> bool | None:
    """True where one is on, False where all that are known are off and one is known."""
    said = [on for knob in knobs if (on := _on(settings, knob)) is not None]
    return any(said) if said else None


def _text(settings: Settings, knob: str) -> str | None:
    value = settings.value(knob)
    return value if isinstance(value, str) else None


def _names(settings: Settings, knob: str) -> tuple[str, ...] | None:
    value = settings.value(knob)
    if isinstance(value, str):
        return () if value == "full" else tuple(value.split(","))
    if isinstance(value, tuple):
        return tuple(str(name) for name in value)
    return () if knob in settings else None


def _precision(settings: Settings) -> str | None:
    bridge = _text(settings, "mixed_precision")
    recipe = _text(settings, "mixed_precision.fp8_recipe") or _text(settings, "fp8_recipe")
    if bridge and "mixed_precision.fp8_recipe" not in settings:
        named = next((precision for part, precision in _MIXED if part in bridge), None)
        return named or {"bf16_mixed": "bf16", "fp16_mixed": "fp16"}.get(bridge)
    fp8, fp4 = _low(settings, "fp8"), _low(settings, "fp4")
    if fp4:
        return "nvfp4"
    if fp8:
        return next((precision for precision, core in RECIPES.items() if core == recipe), "fp8")
    if fp8 is None or fp4 is None:
        return None
    halves = (_on(settings, "bf16"), _on(settings, "fp16"))
    return "bf16" if halves[0] else "fp16" if halves[1] else "fp32" if halves == (False, False) else None


def _low(settings: Settings, name: str) -> bool | None:
    said = (_on(settings, f"mixed_precision.{name}"), _on(settings, name))
    return True if True in said else False if False in said else None


def _routing(settings: Settings) -> Routing | None:
    if settings.value("moe_expert_capacity_factor") and settings.value("moe_pad_expert_input_to_capacity"):
        return "drop_pad"
    forced = _on(settings, "moe_router_force_load_balancing")
    if forced:
        return "force_balance"
    factor = "moe_expert_capacity_factor"
    dropless = factor in settings and settings.value(factor) is None
    return "dropless" if dropless and forced is False else None


def _graph_impl(settings: Settings) -> str | None:
    impl = _text(settings, "cuda_graph_impl")
    if impl not in (None, "none"):
        return impl
    if settings.value("enable_cuda_graph"):
        return "local"
    return "transformer_engine" if settings.value("external_cuda_graph") else impl


def _family(settings: Settings) -> str | None:
    sizes = tuple(settings.value(knob) for knob in FIELD_KNOBS["family"])
    return next((family for known, family in _FAMILIES.items() if known == sizes), None)

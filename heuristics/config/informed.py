"""A run with its configuration read: what was neither given nor shown is what the configuration says.

Options outweigh the trace, and the trace outweighs the configuration, which only tells what was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import lru_cache
from typing import Final

from heuristics.fixes.preconditions import count, is_on, overlap_on, said
from heuristics.run.run import Given, Routing, Run, Shown

_SIZES: Final = {
    "ep": "expert_model_parallel_size",
    "etp": "expert_tensor_parallel_size",
    "tp": "tensor_model_parallel_size",
    "cp": "context_parallel_size",
    "pp": "pipeline_model_parallel_size",
}
_VIRTUAL: Final = "virtual_pipeline_model_parallel_size"
_VERSIONS: Final = {
    "core_version": "core",
    "bridge_version": "bridge",
    "torch_version": "torch",
    "te_version": "te",
}
_RECIPES: Final = {"delayed": "fp8_delayed", "tensorwise": "fp8_current", "blockwise": "fp8_blockwise"}
_BRIDGE_RECIPES: Final = {
    "delayed_scaling": "fp8_delayed",
    "current_scaling": "fp8_current",
    "subchannel": "fp8_blockwise",
    "mxfp8": "mxfp8",
    "nvfp4": "nvfp4",
    "fp8": "fp8",
    "bf16": "bf16",
    "fp16": "fp16",
}
"""Part of a recipe's name in Megatron-Bridge's training/mixed_precision.py (067f987d), what tells most first,
-> precision."""
_DISPATCHERS: Final = ("alltoall", "allgather")
_FLEX: Final = ("deepep", "hybridep", "ncclep")


def informed(run: Run) -> Run:
    """The run where its configuration and its log answer what nobody gave and nothing shows."""
    if not run.settings.by_knob and run.log is None:
        return run
    return _informed(_Same(run))


class _Same:
    """A run, told by which object it is: what it holds cannot be hashed."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def __hash__(self) -> int:
        return id(self.run)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.run is self.run


@lru_cache(maxsize=8)  # every fix of the catalogue asks it of the same run, several times
def _informed(same: _Same) -> Run:
    run = same.run
    given = replace(run.given, **_open(run.given, _to_give(run)))  # type: ignore[arg-type]
    known = replace(run, given=given)
    return replace(known, shown=replace(run.shown, **_open(run.shown, _to_show(run))))  # type: ignore[arg-type]


def _open(known: Given | Shown, told: Mapping[str, object]) -> dict[str, object]:
    """Of what is told, what is not known."""
    unknown = {one.name for one in fields(known) if getattr(known, one.name) in (None, "unknown")}
    return {name: value for name, value in told.items() if name in unknown and value is not None}


def _to_give(run: Run) -> dict[str, object]:
    sizes: dict[str, object] = {name: count(run, knob) for name, knob in _SIZES.items()}
    versions = run.log.versions if run.log else {}
    return {
        **sizes,
        **{name: versions.get(package) for name, package in _VERSIONS.items()},
        "vpp": count(run, _VIRTUAL) or (1 if _VIRTUAL in run.settings else None),
        "precision": _refined(run),
        "routing": _routing(run),
        "cpu_bound_to_numa": is_on(run, "launcher.numa_binding"),
        "pp_layout": _text(run, "pipeline_model_parallel_layout"),
        "graph_impl": _text(run, "cuda_graph_impl"),
        "graph_modules": words(run, "cuda_graph_modules"),
        "router_padding": is_on(run, "moe_router_padding_for_quantization", "moe_router_padding_for_fp8"),
        "te_op_fuser": is_on(run, "use_transformer_engine_op_fuser"),
    }


def _to_show(run: Run) -> dict[str, object]:
    full, modules = _recompute(run)
    experts = count(run, "num_moe_experts")
    return {
        "moe": experts > 1 if experts else is_on(run, "num_moe_experts"),
        "dispatcher": _dispatcher(run),
        "ep_overlap": overlap_on(run, "overlap_moe_expert_parallel_comm"),
        "tp_overlap": overlap_on(run, "tp_comm_overlap"),
        "graph_frac": 0.0 if said(run, "cuda_graph_impl") == "none" else None,
        "recompute_full": full,
        "recompute_modules": modules,
        "offload": True if is_on(run, "fine_grained_activation_offloading") else None,
        "grouped_gemm": is_on(run, "moe_grouped_gemm"),
        "permute_fused": is_on(run, "moe_permute_fusion"),
    }


def words(run: Run, knob: str) -> tuple[str, ...] | None:
    """The words of a list, or of one word; None where the configuration has none of them."""
    value = run.settings.value(knob)
    if isinstance(value, str):
        return tuple(value.replace(",", " ").split())
    return None if not isinstance(value, tuple) else tuple(str(one) for one in value)


def _text(run: Run, knob: str) -> str | None:
    value = said(run, knob)
    return value if isinstance(value, str) else None


def _routing(run: Run) -> Routing | None:
    """Forced balance is seen first: whatever else is set, it is what the benchmark measures."""
    if is_on(run, "moe_router_force_load_balancing"):
        return "force_balance"
    capacity = is_on(run, "moe_expert_capacity_factor")
    if capacity and is_on(run, "moe_pad_expert_input_to_capacity"):
        return "drop_pad"
    return "dropless" if capacity is False else None


def _dispatcher(run: Run) -> str | None:
    """What is asked for; flex with no backend runs whatever the release takes."""
    kind = said(run, "moe_token_dispatcher_type")
    if kind in _DISPATCHERS:
        return str(kind)
    backend = said(run, "moe_flex_dispatcher_backend")
    if kind != "flex":
        return None
    return str(backend) if backend in _FLEX else "deepep" if is_on(run, "moe_enable_deepep") else None


def _recompute(run: Run) -> tuple[bool | None, tuple[str, ...] | None]:
    """Whether whole layers are recomputed, and which modules are; Megatron-Core's default is core_attn."""
    if "recompute_granularity" not in run.settings:
        return None, None
    granularity = said(run, "recompute_granularity")
    if granularity == "selective":
        return False, words(run, "recompute_modules") or ("core_attn",)
    return granularity == "full", None if granularity == "full" else ()


def _refined(run: Run) -> str | None:
    """Precision as configured, where the trace does not speak against it: a trace cannot tell FP8 recipes."""
    asked, seen = _precision(run), run.shown.precision
    if asked is None or seen in (None, "mixed"):
        return asked
    return asked if "fp8" in seen and "fp8" in asked else None


def _precision(run: Run) -> str | None:
    if is_on(run, "mixed_precision.fp4", "fp4"):
        return "nvfp4"
    recipe, name = said(run, "mixed_precision.fp8_recipe", "fp8_recipe"), said(run, "mixed_precision")
    told = next((value for part, value in _BRIDGE_RECIPES.items() if part in str(name)), None)
    if is_on(run, "mixed_precision.fp8", "fp8") or "fp8" in (told or ""):
        return "mxfp8" if recipe == "mxfp8" else _RECIPES.get(str(recipe), told or "fp8")
    if told:
        return told
    halves = [kind for kind in ("bf16", "fp16") if is_on(run, kind)]
    return halves[0] if halves else "fp32" if is_on(run, "bf16") is is_on(run, "fp16") is False else None

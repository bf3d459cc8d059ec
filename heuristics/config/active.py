"""What runs as far as is known: what was observed, and where nothing was, what is configured.

A configuration only asks; a recording shows. So the trace outweighs files here, and an option both.
"""

from collections.abc import Mapping
from dataclasses import fields, replace

from heuristics.config.view import Config
from heuristics.run.observed import Observed


def active(observed: Observed, config: Config) -> Observed:
    """What was observed, filled up by the configuration where it is unknown."""
    unknown = {one.name for one in fields(observed) if getattr(observed, one.name) in (None, "unknown")}
    found = _configured(config)
    return replace(observed, **{name: found[name] for name in unknown & {*found} if found[name] is not None})  # type: ignore[arg-type]


def active_precision(observed: str | None, config: Config, given: str | None) -> str | None:
    """Precision as configured, where the trace does not speak against it: a trace cannot tell FP8 recipes."""
    configured = given or config.precision
    if given or configured is None or observed in (None, "mixed"):
        return configured or observed
    return configured if "fp8" in observed and "fp8" in configured else observed


def _configured(config: Config) -> Mapping[str, object]:
    full, modules = _recompute(config)
    return {
        "moe": config.moe(),
        "dispatcher": None if config.dispatcher == "flex" else config.dispatcher,
        "ep_overlap": config.ep_overlap,
        "tp_overlap": config.overlap("tp_comm_overlap"),
        "graph_frac": 0.0 if config.graph_impl == "none" else None,
        "recompute_full": full,
        "recompute_modules": modules,
        "offload": config.on("fine_grained_activation_offloading") or None,
        "grouped_gemm": config.on("moe_grouped_gemm"),
        "permute_fused": config.on("moe_permute_fusion"),
    }


def _recompute(config: Config) -> tuple[bool | None, tuple[str, ...] | None]:
    """Whether whole layers are recomputed, and which modules are; nothing tells which of whole layers."""
    full = config.full_recompute
    return full, None if full else config.recompute_modules()

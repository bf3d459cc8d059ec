"""Features that a trace shows, where the configuration does not tell them."""

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cached_property

from heuristics.config.features import Features
from heuristics.config.observed import Observed


class Observing(Features):
    """Features as configured, else as observed."""

    _observed: Observed

    @cached_property
    def active(self) -> Observed:
        """What runs as far as is known: what was observed, filled up by what is configured.

        A configuration only asks; a recording shows. So the trace outweighs files here, and an option both.
        """
        seen, found = self._observed, _configured(self)
        unknown = {one.name for one in fields(seen) if getattr(seen, one.name) in (None, "unknown")}
        known = {name: value for name, value in found.items() if name in unknown and value is not None}
        return replace(seen, **known)  # type: ignore[arg-type]

    @property
    def full_recompute(self) -> bool | None:
        """Whether whole layers are recomputed."""
        found = super().full_recompute
        return self._observed.recompute_full if found is None else found

    def recompute_modules(self) -> tuple[str, ...] | None:
        """Recomputed modules."""
        found = super().recompute_modules()
        return (self._observed.recompute_modules or None) if found is None else found

    @property
    def ep_overlap(self) -> bool | None:
        """Expert all-to-all under compute."""
        found = super().ep_overlap
        return self._observed.ep_overlap if found is None else found

    @property
    def graph_impl(self) -> str | None:
        """CUDA-graph implementation: `none` where the trace replays none."""
        found = super().graph_impl
        return "none" if found is None and self._observed.graph_frac == 0 else found

    @property
    def expert_parallel(self) -> bool | None:
        """Whether experts are spread over ranks: by EP, else by a dispatcher that moves tokens."""
        if (size := self.size("expert_model_parallel_size")) is not None:
            return size > 1
        if self._observed.moe is False or self._observed.dispatcher == "none":
            return False
        return self.dispatcher in ("alltoall", "deepep", "hybridep", "ncclep") or None

    @property
    def pipeline_parallel(self) -> bool | None:
        """Whether layers are cut into pipeline stages: by PP, else by their traffic."""
        size = self.size("pipeline_model_parallel_size")
        return self._observed.pp_active if size is None else size > 1

    @property
    def tensor_parallel(self) -> bool | None:
        """Whether layers are cut across ranks: by TP, else by their traffic."""
        size = self.size("tensor_model_parallel_size")
        return self._observed.tp_active if size is None else size > 1


def active_precision(observed: str | None, configured: str | None, given: str | None) -> str | None:
    """Precision as configured, where the trace does not speak against it: a trace cannot tell FP8 recipes."""
    configured = given or configured
    if given or configured is None or observed in (None, "mixed"):
        return configured or observed
    return configured if "fp8" in observed and "fp8" in configured else observed


def _configured(config: Observing) -> Mapping[str, object]:
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


def _recompute(config: Observing) -> tuple[bool | None, tuple[str, ...] | None]:
    """Whether whole layers are recomputed, and which modules are; nothing tells which of whole layers."""
    full = config.full_recompute
    return full, None if full else config.recompute_modules()

"""Features that a trace shows, where the configuration does not tell them."""

from heuristics.config.features import Features
from heuristics.run.observed import Observed


class Observing(Features):
    """Features as configured, else as observed."""

    _observed: Observed

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

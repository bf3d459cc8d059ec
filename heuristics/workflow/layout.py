"""How a run is cut over its ranks: the mesh of attention and dense layers, and that of the experts."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from heuristics.run.run import Run
from traces.settings.stages import stage_count


@dataclass(frozen=True, slots=True)
class Layout:
    """Counts of ranks, None where unknown; `vpp`: virtual stages of a rank, 1 without.

    `world`: all ranks. `dp` and `edp`: copies of a dense and of an expert layer, None where the others do not
    divide the world.
    """

    tp: int | None
    cp: int | None
    pp: int | None
    vpp: int | None
    ep: int | None
    etp: int | None
    world: int | None
    dp: int | None
    edp: int | None

    @property
    def expert_ranks(self) -> int | None:
        """Ranks that one set of all experts takes: EP x ETP."""
        return None if self.ep is None or self.etp is None else self.ep * self.etp

    @property
    def attention(self) -> str:
        """TP x CP x DP x PP in numbers."""
        return _mesh((("TP", self.tp), ("CP", self.cp), ("DP", self.dp), ("PP", self.pp)))

    @property
    def experts(self) -> str:
        """ETP x EP x EDP x PP in numbers."""
        return _mesh((("ETP", self.etp), ("EP", self.ep), ("EDP", self.edp), ("PP", self.pp)))


def layout_of(run: Run) -> Layout:
    """Layout by the configuration, then by the options.

    ETP is TP where nobody sets it, as in Megatron-Core (parallel_state.initialize_model_parallel).
    """
    config = run.config
    tp, cp, pp, ep, etp = config.tp, config.cp, config.pp, config.ep, config.expert_tensor_size
    world, dp = config.world, config.dp
    dp = _rest(world, tp, cp, pp) if world is not None else dp
    return Layout(tp, cp, pp, virtual_stages(run), ep, etp, world, dp, _rest(world, etp, ep, pp))


def _rest(world: int | None, *sizes: int | None) -> int | None:
    known = [size for size in sizes if size]
    if world is None or len(known) < len(sizes) or world % prod(known):
        return None
    return world // prod(known)


def _mesh(axes: tuple[tuple[str, int | None], ...]) -> str:
    return " x ".join(f"{name}{'?' if size is None else size}" for name, size in axes)


def virtual_stages(run: Run) -> int | None:
    """Virtual stages of a rank; 1 without, None where unknown."""
    pp = run.config.positive("pipeline_model_parallel_size")
    stages = stage_count(run.config.word("pipeline_model_parallel_layout") or "")
    if stages and pp:
        return max(1, stages // pp)
    if (said := run.config.positive("virtual_pipeline_model_parallel_size")) is not None:
        return said
    layers, per_stage = (
        run.config.positive("num_layers"),
        run.config.positive("num_layers_per_virtual_pipeline_stage"),
    )
    if layers and per_stage and pp:
        return max(1, layers // pp // per_stage)
    none_said = run.config.known("virtual_pipeline_model_parallel_size")
    return 1 if pp == 1 or none_said else None

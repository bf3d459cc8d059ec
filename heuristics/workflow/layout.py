"""How a run is cut over its ranks: the mesh of attention and dense layers, and that of the experts."""

from dataclasses import dataclass

from heuristics.run.run import Run


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
    """The configured layout; ETP is TP where nobody sets it, as in Megatron-Core (parallel_state)."""
    config = run.config
    return Layout(
        config.tp,
        config.cp,
        config.pp,
        config.vpp,
        config.ep,
        config.expert_tensor_size,
        config.world,
        config.dp,
        config.edp,
    )


def _mesh(axes: tuple[tuple[str, int | None], ...]) -> str:
    return " x ".join(f"{name}{'?' if size is None else size}" for name, size in axes)

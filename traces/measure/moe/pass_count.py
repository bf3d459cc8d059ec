"""How often one step passes through MoE layers."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PassCount:
    """Passes of one step, each with one dispatch and one combine, over all layers and microbatches."""

    forward: int
    recompute: int
    backward: int

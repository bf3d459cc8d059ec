"""Whether two runs can be compared: what must be the same before a difference is put down to one change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from heuristics.run.run import Run

HELD_FIXED: Final[Mapping[str, Callable[[Run], object]]] = {
    "GPU": lambda run: run.gpu,
    "precision": lambda run: run.precision,
    "routing mode": lambda run: run.given.routing,
    "EP": lambda run: run.given.ep,
    "expert TP": lambda run: run.given.etp,
    "TP": lambda run: run.given.tp,
    "CP": lambda run: run.given.cp,
    "PP": lambda run: run.given.pp,
    "VPP": lambda run: run.given.vpp,
    "PP layout": lambda run: run.given.pp_layout,
    "CUDA-graph implementation": lambda run: run.given.graph_impl,
    "CUDA-graph modules": lambda run: run.given.graph_modules,
    "CUDA graphs": lambda run: None if run.shown.graph_frac is None else run.shown.graph_frac > 0,
    "container": lambda run: run.given.container,
    "Megatron-Core": lambda run: run.given.core_version,
    "Megatron-Bridge": lambda run: run.given.bridge_version,
    "PyTorch": lambda run: run.given.torch_version,
    "Transformer Engine": lambda run: run.given.te_version,
}
"""What a comparison of dispatchers holds fixed. Megatron-Bridge, skill perf-moe-dispatcher-selection,
pitfalls 1 and 4: container, routing mode, pipeline layout and graph scope can move a result as much."""


def comparable(run_a: Run, run_b: Run) -> tuple[str, ...]:
    """What differs between two runs beside the one change; empty where nothing known does.

    Forced balance and dropless routing are no baselines for each other. What is unknown of either run is no
    difference: see `untold`.
    """
    told = {name: (value(run_a), value(run_b)) for name, value in HELD_FIXED.items()}
    return tuple(
        f"{name}: {_text(a)} against {_text(b)}"
        for name, (a, b) in told.items()
        if a is not None and b is not None and a != b
    )


def untold(run_a: Run, run_b: Run) -> tuple[str, ...]:
    """What could differ unseen: known of one run or of none."""
    return tuple(name for name, value in HELD_FIXED.items() if value(run_a) is None or value(run_b) is None)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return "+".join(value) or "none" if isinstance(value, tuple) else str(value)

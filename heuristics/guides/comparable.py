"""Whether two runs can be compared: what must be the same before a difference is put down to one change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from heuristics.run.run import Run

HELD_FIXED: Final[Mapping[str, Callable[[Run], object]]] = {
    "GPU": lambda run: run.gpu,
    "precision": lambda run: run.precision,
    "routing mode": lambda run: run.config.routing,
    "EP": lambda run: run.config.ep,
    "expert TP": lambda run: run.config.etp,
    "TP": lambda run: run.config.tp,
    "CP": lambda run: run.config.cp,
    "PP": lambda run: run.config.pp,
    "VPP": lambda run: run.config.vpp,
    "PP layout": lambda run: run.config.pp_layout,
    "CUDA-graph implementation": lambda run: run.config.graph_impl,
    "CUDA-graph modules": lambda run: run.config.graph_modules,
    "CUDA graphs": lambda run: None if run.active.graph_frac is None else run.active.graph_frac > 0,
    "container": lambda run: run.config.container,
    "Megatron-Core": lambda run: run.config.version_text("core"),
    "Megatron-Bridge": lambda run: run.config.version_text("bridge"),
    "PyTorch": lambda run: run.config.version_text("torch"),
    "Transformer Engine": lambda run: run.config.version_text("te"),
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

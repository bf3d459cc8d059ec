"""One thing CUDA graphs must not be combined with: the form of a row, and the words rows are written in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from heuristics.config.versions import numbers
from heuristics.guides.graph_config import GraphConfig

CORE_CONFIG: Final = "Megatron-Core, transformer/transformer_config.py"
LM_ARGUMENTS: Final = "Megatron-LM, training/arguments.py"
BRIDGE_CONFIG: Final = "Megatron-Bridge, training/config.py"
BRIDGE_OVERLAP: Final = "Megatron-Bridge, training/comm_overlap.py"
GRAPH_SKILL: Final = "Megatron-Bridge, skill perf-cuda-graphs"


@dataclass(frozen=True, slots=True)
class GraphConstraint:
    """A row. `broken`: whether a setting breaks it, None where unknown. `what`: the module or implementation.

    `needs`: what to set with the graphs so that it holds, where one setting does that.
    """

    id: str
    what: str
    broken: Callable[[GraphConfig], bool | None]
    reason: str
    source: str
    needs: str = ""


def graphs_on(config: GraphConfig) -> bool:
    """Any graphs at all."""
    return config.impl != "none"


def per_layer_te(config: GraphConfig) -> bool:
    """Graphs per layer, by Transformer Engine."""
    return config.impl == "transformer_engine"


def full_iteration(config: GraphConfig) -> bool:
    """One graph of forward and backward."""
    return config.impl == "full_iteration"


def scoped(config: GraphConfig, module: str) -> bool:
    """Graphs per layer that name this module."""
    return config.impl in ("local", "transformer_engine") and module in config.modules


def before(version: str | None, than: str) -> bool | None:
    """Whether a release is older; unknown stays unknown."""
    return None if version is None else numbers(version) < numbers(than)

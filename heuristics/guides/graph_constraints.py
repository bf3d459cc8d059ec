"""A setting of CUDA graphs against everything it must not be combined with, version by version."""

from __future__ import annotations

from heuristics.guides.graph_config import GraphConfig
from heuristics.guides.graph_conflicts import CONFLICTS
from heuristics.guides.graph_scopes import SCOPES
from heuristics.guides.table import Refusal


def graph_refusals(config: GraphConfig) -> tuple[Refusal, ...]:
    """Everything that a setting breaks for certain."""
    return tuple(
        Refusal(row.what, row.reason, row.source) for row in (*SCOPES, *CONFLICTS) if row.broken(config)
    )


def graph_needs(config: GraphConfig) -> tuple[str, ...]:
    """What to set with the graphs, where it is not known to be set."""
    return tuple(row.needs for row in (*SCOPES, *CONFLICTS) if row.needs and row.broken(config) is not False)

"""All that is known of a difference before anybody has an opinion of its cause."""

from __future__ import annotations

from dataclasses import dataclass

from heuristics.comparison.difference.changed import Changed
from heuristics.comparison.difference.kernels import KernelDelta
from heuristics.comparison.difference.rows import Attribution, LayerDelta
from traces.results.result import Rank, Result


@dataclass(frozen=True, slots=True)
class Facts:
    """Both sides, the ranks that are compared, and what differs between them."""

    base: Result
    new: Result
    base_rank: Rank
    new_rank: Rank
    attribution: Attribution
    layers: tuple[LayerDelta, ...]
    kernels: tuple[KernelDelta, ...] | None
    changed: tuple[Changed, ...]

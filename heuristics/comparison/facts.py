"""All that is known of a difference before anybody has an opinion of its cause."""

from dataclasses import dataclass

from heuristics.comparison.difference.changed import Changed
from heuristics.comparison.difference.rows import Attribution
from heuristics.result.compared import KernelDelta, LayerDelta
from heuristics.result.result import Result
from traces.sections.rank import Rank


@dataclass(frozen=True, slots=True)
class Facts:
    """Both sides, the ranks that are compared, and what differs between them."""

    base: Result
    new: Result
    base_rank: Rank
    new_rank: Rank
    attribution: Attribution
    layers: tuple[LayerDelta, ...]
    kernels: tuple[KernelDelta, ...]
    changed: tuple[Changed, ...]

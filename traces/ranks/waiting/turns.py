"""Collectives counted from one step in every group, so that equal numbers are of one place of the
program.

Windows may begin within a step, elsewhere on each rank: the first collective of one group is then
of another place than that of a like group.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from traces.arrays import IntArray
from traces.ranks.matching.match import Matched
from traces.ranks.rows import parts
from traces.ranks.summaries.summary import UNKNOWN
from traces.ranks.waiting.side_by_side import Grid


def counted_from_one_step(matched: Matched, grid: Grid, step: IntArray) -> Matched:
    """The same, with numbers from 0 at a group's first collective of the latest step in which a
    group begins.

    `step`, shape (n,), of each instance. A group that has none in that step keeps its numbers.
    """
    first = parts.begins_of(matched.group)  # groups rise, and numbers in them
    if _as_early(matched, first, grid):
        return matched
    in_step = step != UNKNOWN
    if not in_step.any():
        return matched
    far = grid.step_count
    begins = parts.least(np.where(in_step, step, far), first)
    in_whole = in_step & (step == int(begins[begins < far].max()))
    at = parts.least(np.where(in_whole, matched.sequence, _FAR), first)
    base = np.where(at < _FAR, at, 0)
    return replace(matched, sequence=matched.sequence - parts.spread(base, first))


_FAR: Final = 1 << 60
"""Above any number."""


def _as_early(matched: Matched, first: IntArray, grid: Grid) -> bool:
    """Whether every group is counted from its first collective, in the first step of the run."""
    heads = matched.first[first[:-1]]
    step = matched.step[heads]
    begun = (step != UNKNOWN) & (step + grid.later[matched.place[heads]] == 0)
    return bool(begun.all() and (matched.sequence[first[:-1]] == 0).all())

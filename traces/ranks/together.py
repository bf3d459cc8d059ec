"""Summaries put together into one run: what does not belong to it is named and left out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from traces.columns import BoolArray, IntArray
from traces.ranks.cause import ProblemKind
from traces.ranks.clocks import align
from traces.ranks.links import together
from traces.ranks.match import Matched, match
from traces.ranks.problems import (
    Problem,
    before_matching,
    of_other_work,
    truncated,
)
from traces.ranks.summary import GroupSource, RankSummary


@dataclass(frozen=True, slots=True)
class Together:
    """The summaries of one run, in order of rank: `indices` are their places as given."""

    used: tuple[RankSummary, ...]
    indices: tuple[int, ...]
    matched: Matched
    world_size: int | None
    problems: tuple[Problem, ...]

    @property
    def all_ranks_seen(self) -> bool:
        """Whether no rank is known to be missing."""
        return self.world_size is None or len(self.used) >= self.world_size


def put_together(summaries: Sequence[RankSummary]) -> Together:
    """The largest set of summaries that are of one run, matched."""
    order = sorted(range(len(summaries)), key=lambda index: _name(summaries[index]))
    ordered = [summaries[index] for index in order]
    problems = before_matching(ordered)
    left = _without(range(len(ordered)), problems)
    matched = _matched([ordered[index] for index in left])
    lengths = np.array([len(ordered[index].instances) for index in left], dtype=np.int64)
    if len(others := of_other_work(matched, lengths)):
        reason = "their collectives do something else than those of the others, or with other sizes"
        problems.append(_about(ProblemKind.MIXED_RUNS, others, left, reason, left_out=True))
        left = _without(left, problems)
        matched = _matched([ordered[index] for index in left])
    number = together(matched, np.ones(len(matched), dtype=np.bool_), len(left))
    apart = number != np.bincount(number).argmax() if len(left) else number > 0
    if apart.any():
        problems += _strangers(left, matched, apart)
        remaining = _without(left, problems)
        if len(remaining) < len(left):
            left, matched = remaining, _matched([ordered[index] for index in remaining])
    used = tuple(ordered[index] for index in left)
    if len(short := truncated(matched, len(used))):
        reason = "they hold fewer of the collectives of their groups than the other recordings do"
        problems.append(_about(ProblemKind.TRUNCATED, short, left, reason))
    size = next((one.identity.world_size for one in used if one.identity.world_size is not None), None)
    problems += _missing(used, size)
    told = tuple(_as_given(problem, order) for problem in problems)
    return Together(used, tuple(order[index] for index in left), matched, size, told)


def _matched(summaries: Sequence[RankSummary]) -> Matched:
    """Their collectives matched: groups known by order only by the clock of the others, where that is one."""
    matched = match(summaries)
    if not (by_order := matched.by_order).any():
        return matched
    clocks = align(summaries, matched.take(~by_order)).clocks
    fits = clocks.by_fingerprint()
    known = clocks.aligned and all(one.identity.clock in fits for one in summaries)
    return match(summaries, fits) if known else matched


def _name(summary: RankSummary) -> tuple[int, str, int, int]:
    identity = summary.identity
    rank = 1 << 40 if identity.rank is None else identity.rank
    return rank, identity.trace, identity.device, identity.recording


def _without(indices: Sequence[int], problems: Sequence[Problem]) -> list[int]:
    gone = {index for problem in problems if problem.left_out for index in problem.indices}
    return [index for index in indices if index not in gone]


def _about(
    kind: ProblemKind, places: IntArray, left: Sequence[int], reason: str, *, left_out: bool = False
) -> Problem:
    return Problem(kind, tuple(left[place] for place in places.tolist()), reason, left_out)


def _strangers(left: Sequence[int], matched: Matched, apart: BoolArray) -> list[Problem]:
    """Ranks without a collective in common with most; those that share some with each other are left out."""
    several = np.bincount(matched.place, minlength=len(left)) > 0
    reason = "they took part in no collective with the others"
    found = []
    for which, left_out in ((apart & several, True), (apart & ~several, False)):
        if which.any():
            places = np.flatnonzero(which)
            found.append(_about(ProblemKind.APART, places, left, reason, left_out=left_out))
    return found


def _missing(used: Sequence[RankSummary], size: int | None) -> list[Problem]:
    if size is None:
        return _missing_in_groups(used)
    seen = {one.identity.rank for one in used if one.identity.rank is not None}
    if len(used) >= size:
        return []
    gone = tuple(rank for rank in range(size) if rank not in seen) if len(seen) == len(used) else ()
    reason = f"{len(used)} of {size} ranks were recorded; nothing is known of the others"
    return [Problem(ProblemKind.MISSING_RANKS, (), reason, ranks=gone)]


def _missing_in_groups(used: Sequence[RankSummary]) -> list[Problem]:
    """Ranks that a communicator has and no recording is of; the one that misses most tells.

    Which they are is known where those that are here have their own numbers in it.
    """
    seen: dict[int, dict[int, int | None]] = defaultdict(dict)
    sizes: dict[int, int] = {}
    for one in used:
        for group in one.groups:
            if group.source is GroupSource.COMMUNICATOR and group.size and group.own is not None:
                seen[group.key][group.own] = one.identity.rank
                sizes[group.key] = group.size
    worst = max(sorted(sizes), key=lambda key: sizes[key] - len(seen[key]), default=None)
    if worst is None or len(seen[worst]) >= sizes[worst]:
        return []
    here, size = seen[worst], sizes[worst]
    by_number = all(place == rank for place, rank in here.items())
    gone = tuple(place for place in range(size) if place not in here) if by_number else ()
    reason = f"{len(here)} of {size} ranks of a communicator were recorded; nothing is known of the others"
    return [Problem(ProblemKind.MISSING_RANKS, (), reason, ranks=gone)]


def _as_given(problem: Problem, order: Sequence[int]) -> Problem:
    return replace(problem, indices=tuple(sorted(order[index] for index in problem.indices)))

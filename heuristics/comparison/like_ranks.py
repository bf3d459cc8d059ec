"""Which group of like ranks of one run does the work of which group of the other."""

from collections.abc import Callable
from typing import Final

from msgspec import UNSET

from heuristics.result.result import Result
from traces.sections.rank import Rank
from traces.sections.run import LikeRanks, RankInRun, Run

_KEYS: Final[tuple[Callable[[LikeRanks], tuple[object, ...]], ...]] = (
    lambda one: (one.attention_kernels, one.router_kernels, one.has_experts, one.has_embedding, one.has_loss),
    lambda one: (one.has_experts, one.has_embedding, one.has_loss),
)
"""What groups of both runs have in common, the surest first: a change of kernels may change their number."""


def like_groups(base: Run, new: Run) -> tuple[tuple[int, int], ...]:
    """Pairs of groups, by their numbers in either run; each group is in one pair at most."""
    found: dict[int, int] = {}
    for key in _KEYS:
        for number, one in enumerate(base.groups):
            free = (place for place in range(len(new.groups)) if place not in found.values())
            like = next((place for place in free if key(new.groups[place]) == key(one)), None)
            if number not in found and like is not None:
                found[number] = like
    return tuple(sorted(found.items()))


def pairs_by_group(base: Result, new: Result) -> tuple[tuple[Rank, Rank], ...]:
    """Ranks in the same place of like groups; none where a side is one rank alone."""
    if base.run is UNSET or new.run is UNSET:
        return ()
    return tuple(
        (base.ranks[base.run.ranks[one].index], new.ranks[new.run.ranks[other].index])
        for mine, its in like_groups(base.run, new.run)
        for one, other in zip(base.run.groups[mine].ranks, new.run.groups[its].ranks, strict=False)
    )


def rank_in_run(result: Result, rank: Rank) -> RankInRun | None:
    """What several ranks show of one of them; None where it was recorded alone."""
    place = next(place for place, one in enumerate(result.ranks) if one is rank)
    ranks = () if result.run is UNSET else result.run.ranks
    return next((one for one in ranks if one.index == place), None)


def same_size(base: Result, new: Result) -> bool:
    """Whether rank k of one run is rank k of the other: with more ranks it may be another stage."""
    if base.run is UNSET or new.run is UNSET:
        return True
    return base.run.ranks_seen == new.run.ranks_seen or base.run.world_size == new.run.world_size

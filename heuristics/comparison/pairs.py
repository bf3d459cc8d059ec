"""Which rank of one result is held against which of the other."""

from dataclasses import dataclass
from typing import Literal

from heuristics.comparison.like_ranks import pairs_by_group, same_size
from heuristics.result.result import Result
from traces.errors import EmptySelection
from traces.missing import known
from traces.sections.rank import Rank


@dataclass(frozen=True, slots=True)
class Pair:
    """Two ranks that are the same place of the run, and how that is known."""

    base: Rank
    new: Rank
    by: Literal["rank", "group", "order", "chosen"]


def pair_ranks(base: Result, new: Result, base_gpu: int | None, new_gpu: int | None) -> tuple[Pair, ...]:
    """Pairs, the one that is compared in full first. At least one.

    By number of rank and device where both sides record it, share one and have as many ranks; else by the
    groups of like ranks and the place in them; else in their order. Where a GPU is chosen, the first rank on
    it. Raises `EmptySelection` where a side has no such GPU.
    """
    if base_gpu is not None or new_gpu is not None:
        return (Pair(_on(base, base_gpu, "base"), _on(new, new_gpu, "new"), "chosen"),)
    before, after = _numbered(base), _numbered(new)
    shared = sorted(before.keys() & after.keys())
    if shared and same_size(base, new):
        return tuple(Pair(before[key], after[key], "rank") for key in shared)
    if like := pairs_by_group(base, new):
        return tuple(Pair(one, other, "group") for one, other in like)
    if shared:
        return tuple(Pair(before[key], after[key], "rank") for key in shared)
    return tuple(Pair(one, other, "order") for one, other in zip(base.ranks, new.ranks, strict=False))


def _numbered(result: Result) -> dict[tuple[int, int], Rank]:
    """Ranks by number and device, as one process may have several GPUs; of equals the first."""
    numbered: dict[tuple[int, int], Rank] = {}
    for rank in result.ranks:
        number = known(rank.rank)
        if number is not None:
            numbered.setdefault((number, rank.device), rank)
    return numbered


def _on(result: Result, gpu: int | None, side: str) -> Rank:
    for rank in result.ranks:
        if gpu is None or rank.device == gpu:
            return rank
    there = ", ".join(str(device) for device in sorted({rank.device for rank in result.ranks}))
    raise EmptySelection(f"{side} has no GPU {gpu}; it has {there}. Give --{side}-gpu {there.split(',')[0]}")

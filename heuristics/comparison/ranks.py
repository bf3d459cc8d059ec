"""Which rank of one run is held against which of the other, and what several ranks of both show."""

from collections.abc import Iterator, Sequence
from operator import attrgetter, sub
from typing import Final

from msgspec import UNSET, UnsetType

from heuristics.result.compared import PairedBy
from heuristics.result.compared_ranks import (
    ComparedGroup,
    ComparedLate,
    ComparedRank,
    ComparedRun,
    LateState,
    Place,
)
from heuristics.result.result import Result, index_of, late_rank, rank_in_run
from heuristics.words import lacking
from traces.errors import EmptySelection
from traces.frozen import frozen
from traces.missing import Missing, OrMissing, known, of_known
from traces.sections.cause import Cause
from traces.sections.rank import Rank
from traces.sections.run import Late, Run
from traces.sections.section import copied

_PARTS: Final = ("has_experts", "has_embedding", "has_loss")
_KEYS: Final = attrgetter("attention_kernels", "router_kernels", *_PARTS), attrgetter(*_PARTS)
"""What groups of both runs have in common, the surest first: a change of kernels may change their
number."""


@frozen
class Pair:
    """Two ranks that are the same place of the run, and how that is known."""

    base: Rank
    new: Rank
    by: PairedBy


def pair_ranks(
    base: Result, new: Result, base_gpu: int | None, new_gpu: int | None
) -> tuple[Pair, ...]:
    """Pairs, the one that is compared in full first. At least one.

    By number of rank and device where both sides record it, share one and have as many ranks; else
    by the groups of like ranks and the place in them; else in their order. Where a GPU is chosen,
    the first rank on it. Raises `EmptySelection` where a side has no such GPU.
    """
    if base_gpu is not None or new_gpu is not None:
        return (Pair(_on(base, base_gpu, "base"), _on(new, new_gpu, "new"), "chosen"),)
    before, after = _numbered(base), _numbered(new)
    by_number = [
        Pair(before[key], after[key], "rank") for key in sorted(before.keys() & after.keys())
    ]
    if by_number and same_size(base, new):
        return tuple(by_number)
    in_order = (
        Pair(mine, theirs, "order") for mine, theirs in zip(base.ranks, new.ranks, strict=False)
    )
    return tuple([*_by_group(base, new)] or by_number or in_order)


def _numbered(result: Result) -> dict[tuple[int, int], Rank]:
    """Ranks by number and device, as one process may have several GPUs; of equals the first."""
    numbered = dict[tuple[int, int], Rank]()
    for rank in result.ranks:
        number = known(rank.rank)
        if number is not None:
            numbered.setdefault((number, rank.device), rank)
    return numbered


def _on(result: Result, gpu: int | None, side: str) -> Rank:
    for rank in result.ranks:
        if gpu is None or rank.device == gpu:
            return rank
    devices = ", ".join(map(str, sorted({rank.device for rank in result.ranks})))
    raise EmptySelection(
        f"{side} has no GPU {gpu}; it has {devices}. Give --{side}-gpu {devices.split(',')[0]}"
    )


def like_groups(base: Run, new: Run) -> tuple[tuple[int, int], ...]:
    """Pairs of groups, by their numbers in either run; each group is in one pair at most."""
    pairs = dict[int, int]()
    for key in _KEYS:
        for number, base_group in enumerate(base.groups):
            for place, new_group in enumerate(new.groups):
                is_free = number not in pairs and place not in pairs.values()
                if is_free and key(new_group) == key(base_group):
                    pairs[number] = place
    return tuple(sorted(pairs.items()))


def _by_group(base: Result, new: Result) -> Iterator[Pair]:
    if base.run is not UNSET and new.run is not UNSET:
        for mine, its in like_groups(base.run, new.run):
            for base_rank, new_rank in zip(
                base.run.groups[mine].ranks, new.run.groups[its].ranks, strict=False
            ):
                indexes = base.run.ranks[base_rank].index, new.run.ranks[new_rank].index
                yield Pair(base.ranks[indexes[0]], new.ranks[indexes[1]], "group")


def place_of(result: Result, rank: Rank) -> Place:
    return Place(index_of(result, rank), rank.device, rank.rank)


def same_size(base: Result, new: Result) -> bool:
    """Whether rank k of one run is rank k of the other: with more ranks it may be another stage."""
    if base.run is UNSET or new.run is UNSET:
        return True
    return base.run.ranks_seen == new.run.ranks_seen or base.run.world_size == new.run.world_size


def compare_runs(base: Result, new: Result, pairs: Sequence[Pair]) -> ComparedRun | UnsetType:
    """What several ranks of both sides show; nothing where a side is one rank alone."""
    if base.run is UNSET or new.run is UNSET:
        return UNSET
    groups = []
    for mine, its in like_groups(base.run, new.run):
        before, after = base.run.groups[mine], new.run.groups[its]
        delta_ns = _delta(before.step_ns, after.step_ns)
        groups.append(ComparedGroup(mine, its, len(before.ranks), len(after.ranks), delta_ns))
    ranks = sorted(_ranks(base, new, pairs), key=_change, reverse=True)
    return ComparedRun(
        base_ranks=base.run.ranks_seen,
        new_ranks=new.run.ranks_seen,
        base_waiting_frac=_waiting(base.run),
        new_waiting_frac=_waiting(new.run),
        groups=tuple(groups),
        ranks=tuple(ranks),
        late=_late(base, new, {rank.base_index: rank.new_index for rank in ranks}),
    )


def _change(rank: ComparedRank) -> tuple[int, int]:
    """Steps of ranks that wait for each other change alike: who made them longer tells more."""
    return abs(known(rank.caused_delta_ns) or 0), abs(known(rank.step_delta_ns) or 0)


def _ranks(base: Result, new: Result, pairs: Sequence[Pair]) -> Iterator[ComparedRank]:
    """Ranks that do the same work; of runs of another size no number tells that."""
    if not same_size(base, new) and pairs[0].by != "group":
        return
    for pair in pairs:
        base_rank, new_rank = rank_in_run(base, pair.base), rank_in_run(new, pair.new)
        if base_rank is not None and new_rank is not None:
            yield copied(
                ComparedRank,
                new_rank,
                pair,
                base_index=base_rank.index,
                new_index=new_rank.index,
                step_delta_ns=_delta(base_rank.step_ns, new_rank.step_ns),
                waited_delta_ns=new_rank.waited_ns - base_rank.waited_ns,
                caused_delta_ns=_delta(base_rank.caused_ns, new_rank.caused_ns),
            )


def _waiting(run: Run) -> OrMissing[float]:
    whole_ns = run.wait_ns + run.transfer_ns
    if not whole_ns:
        return lacking("comparison.no-match")
    return run.wait_ns / whole_ns


def _delta(base: OrMissing[int], new: OrMissing[int]) -> OrMissing[int]:
    for side in (base, new):
        if isinstance(side, Missing):
            return side
    return of_known(sub, new, base)


def _late(base: Result, new: Result, matched: dict[int | None, int]) -> ComparedLate:
    """The late rank before and after; what nobody can tell of one side is no change."""
    before, after = late_rank(base), late_rank(new)
    return ComparedLate(
        _state(before, after, matched),
        before.cause if before else None,
        after.cause if after else None,
        _place(base, before),
        _place(new, after),
    )


def _place(result: Result, late: Late | None) -> Place | None:
    if late is None or late.index is None:
        return None
    return place_of(result, result.ranks[late.index])


def _state(before: Late | None, after: Late | None, matched: dict[int | None, int]) -> LateState:
    if before is None or after is None:
        return LateState.UNKNOWN
    if before.cause is Cause.NONE:
        if after.cause is Cause.NONE:
            return LateState.NONE
        return LateState.APPEARED
    if after.cause is Cause.NONE:
        return LateState.GONE
    if matched.get(before.index) == after.index and before.cause is after.cause:
        return LateState.SAME
    return LateState.OTHER

"""Two runs of several ranks: how groups of like ranks moved, which rank changed most, who is late."""

from collections.abc import Sequence

from msgspec import UNSET

from heuristics.comparison.like_ranks import like_groups, rank_in_run, same_size
from heuristics.comparison.pairs import Pair
from heuristics.result.compared_run import (
    ComparedGroup,
    ComparedLate,
    ComparedRank,
    ComparedRun,
    LateState,
    Place,
)
from heuristics.result.result import Result
from traces.missing import Missing, OrMissing, known
from traces.ranks.cause import Cause
from traces.sections.run import Late, Run


def compare_runs(base: Result, new: Result, pairs: Sequence[Pair]) -> ComparedRun | None:
    """What several ranks of both sides show; None where a side is one rank alone."""
    if base.run is UNSET or new.run is UNSET:
        return None
    ranks = sorted(_ranks(base, new, pairs), key=_change, reverse=True)
    return ComparedRun(
        base_ranks=base.run.ranks_seen,
        new_ranks=new.run.ranks_seen,
        base_waiting_frac=_waiting(base.run),
        new_waiting_frac=_waiting(new.run),
        groups=tuple(
            ComparedGroup(mine, its, len(one.ranks), len(other.ranks), _delta(one.step_ns, other.step_ns))
            for mine, its in like_groups(base.run, new.run)
            for one, other in ((base.run.groups[mine], new.run.groups[its]),)
        ),
        ranks=tuple(ranks),
        late=_late(base, new, {one.base_index: one.new_index for one in ranks}),
    )


def _change(one: ComparedRank) -> tuple[int, int]:
    """Steps of ranks that wait for each other change alike: who made them longer tells more."""
    return abs(known(one.caused_delta_ns) or 0), abs(known(one.step_delta_ns) or 0)


def _ranks(base: Result, new: Result, pairs: Sequence[Pair]) -> list[ComparedRank]:
    """Ranks that do the same work; of runs of another size no number tells that."""
    found = []
    for pair in pairs if same_size(base, new) or pairs[0].by == "group" else ():
        one, other = rank_in_run(base, pair.base), rank_in_run(new, pair.new)
        if one is not None and other is not None:
            found.append(
                ComparedRank(
                    base_index=one.index,
                    new_index=other.index,
                    rank=other.rank,
                    by=pair.by,
                    step_delta_ns=_delta(one.step_ns, other.step_ns),
                    waited_delta_ns=other.waited_ns - one.waited_ns,
                    caused_delta_ns=_delta(one.caused_ns, other.caused_ns),
                )
            )
    return found


def _waiting(run: Run) -> OrMissing[float]:
    whole_ns = run.wait_ns + run.transfer_ns
    if not whole_ns:
        return Missing("", "no collective could be matched across ranks", "record NCCL's ranges on all ranks")
    return run.wait_ns / whole_ns


def _delta(base: OrMissing[int], new: OrMissing[int]) -> OrMissing[int]:
    one, other = known(base), known(new)
    if one is None or other is None:
        return next((side for side in (base, new) if isinstance(side, Missing)), None)
    return other - one


def _late(base: Result, new: Result, matched: dict[int, int]) -> ComparedLate:
    """The late rank before and after; what nobody can tell of one side is no change."""
    before, after = (None if one.run is UNSET else known(one.run.late) for one in (base, new))
    return ComparedLate(
        _state(before, after, matched),
        None if before is None else before.cause,
        None if after is None else after.cause,
        _place(base, before),
        _place(new, after),
    )


def _place(result: Result, late: Late | None) -> Place | None:
    if late is None or late.index is None:
        return None
    rank = result.ranks[late.index]
    return Place(late.index, rank.device, rank.rank)


def _state(before: Late | None, after: Late | None, matched: dict[int, int]) -> LateState:
    if before is None or after is None:
        return LateState.UNKNOWN
    was, is_ = before.cause is not Cause.NONE, after.cause is not Cause.NONE
    if not was or not is_:
        return LateState.NONE if was == is_ else LateState.APPEARED if is_ else LateState.GONE
    same_rank = (None if before.index is None else matched.get(before.index)) == after.index
    return LateState.SAME if same_rank and before.cause is after.cause else LateState.OTHER

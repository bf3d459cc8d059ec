"""What the changes found in a recording would give, over the ranks that could be replayed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from traces.replay.changes.change import Change
from traces.replay.costs import Costs


@dataclass(frozen=True, slots=True)
class Replayed:
    """One rank: its costs, the changes found in it, the length of its windows in ns, its place in the run."""

    costs: Costs
    changes: Sequence[Change]
    window_ns: int
    place: int = 0


@dataclass(frozen=True, slots=True)
class Gain:
    """What one kind of change gives, as parts of all windows, from a pessimistic replay to a ceiling.

    `low_frac` is negative where it may cost more than it gives, and None where no lower end can be defended,
    as `because` says. `across`: it acts on several walls, so that what one of them costs is no bound.
    """

    low_frac: float | None
    high_frac: float
    because: str | None
    across: bool = False


def gains_of(ranks: Sequence[Replayed]) -> Mapping[str, Gain]:
    """Kind of change -> its gain. A rank where it was not found gives nothing, or at most what it acts on."""
    whole_ns = sum(rank.window_ns for rank in ranks)
    kinds = sorted({change.kind for rank in ranks for change in rank.changes})
    return {kind: _gain(kind, ranks, whole_ns) for kind in kinds}


def _gain(kind: str, ranks: Sequence[Replayed], whole_ns: int) -> Gain:
    found = [next((one for one in rank.changes if one.kind == kind), None) for rank in ranks]
    told = [one for one in found if one is not None]
    high_ns = sum(
        most_ns(rank.costs, told[0]) if one is None else one.high_ns
        for rank, one in zip(ranks, found, strict=True)
    )
    across = any(len(one.acts_on) > 1 for one in told)
    open_ = [one.because for one in told if one.low_ns is None]
    if open_:
        return Gain(None, high_ns / whole_ns, open_[0], across)
    return Gain(sum(one.low_ns or 0 for one in told) / whole_ns, high_ns / whole_ns, None, across)


def most_ns(costs: Costs, change: Change) -> int:
    """What the kinds that a change acts on cost a rank; all of the wall where its cost is not split."""
    told = ((costs.of(wall), kinds) for wall, kinds in change.acts_on.items())
    return sum(cost.of_kinds_ns(kinds) for cost, kinds in told if cost is not None)

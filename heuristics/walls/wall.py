"""What a wall's judge answers: a wall as the result has it, with the evidence that its outcome rests on."""

from collections.abc import Callable, Sequence
from typing import Final

from heuristics.figures.figures import Figures, frac_of
from heuristics.result.judged import Evidence, Outcome, Wall
from heuristics.result.known import OrMissing
from heuristics.run.run import WallId
from heuristics.walls.price import STEADY, WALL, Price, Unpriced
from traces.missing import Missing

_OF_WINDOWS: Final = "fraction of the windows"


def shown(
    measure: str, value: float, unit: str, because: str, limit: float | None = None, rank: int | None = None
) -> Evidence:
    """A value that no single place shows; `limit`: what it is held against, None for context.

    `rank`: the place in the document of the one that shows it best.
    """
    return Evidence(measure, value, unit, limit, because, None, None, None, rank)


def only_in_first_step(wall: Wall) -> bool:
    """Whether the used steps after the first hardly pay its cost, so that it may be warm-up."""
    steady = [one.value for one in wall.evidence if one.measure == "steady_cost_frac"]
    return bool(steady) and steady[0] < STEADY.value


def judged(
    wall: WallId, told: Price | Unpriced, ranks: Sequence[Figures], evidence: Sequence[Evidence]
) -> Wall:
    """A finding from the limit up, else clear; the cost itself is the first evidence.

    A cost that is unknown, or may be more than it seems, is clear only where even the most it can be is below
    the limit.
    """
    most = told.at_most_frac
    if isinstance(told, Unpriced):
        if most is None or most >= WALL.value:
            return unmeasurable(wall, told.why, evidence, most)
        ns = round(most * sum(rank.judged_ns for rank in ranks))
        because = f"the most it can be by the partition of the windows; not replayed: {told.why.reason}"
        bound = shown("cost_frac", most, _OF_WINDOWS, because, WALL.value)
        return Wall(wall, "clear", ns, most, {}, most, (bound, *evidence), (), "")
    costs = [shown("cost_frac", told.frac, _OF_WINDOWS, WALL.because, WALL.value, told.rank)]
    if told.steady_frac is not None:
        costs.append(shown("steady_cost_frac", told.steady_frac, STEADY.unit, STEADY.because, STEADY.value))
    stands = told.frac >= WALL.value
    if not stands and told.at_least is not None and (most is None or most >= WALL.value):
        return unmeasurable(wall, told.at_least, (*costs, *evidence), most)
    outcome: Outcome = "finding" if stands else "clear"
    return Wall(wall, outcome, told.ns, told.frac, told.by_kind_ns, most, (*costs, *evidence), (), "")


def shown_frac(
    measure: str, ranks: Sequence[Figures], read: Callable[[Figures], int | None], because: str
) -> list[Evidence]:
    """A length as part of the windows, over the ranks that tell it; nothing where none does."""
    frac = frac_of(ranks, read)
    return [] if frac is None else [shown(measure, frac, _OF_WINDOWS, because)]


def unmeasurable(
    wall: WallId, why: Missing, evidence: Sequence[Evidence] = (), at_most_frac: float | None = None
) -> Wall:
    """What could not be looked at is never clear."""
    most: OrMissing[float] = why if at_most_frac is None else at_most_frac
    return Wall(wall, "unmeasurable", why, why, why, most, tuple(evidence), (why.reason,), why.cure)

"""What a wall's judge answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from heuristics.figures.figures import Figures, frac_of
from heuristics.walls.price import STEADY, WALL, Price, Unpriced
from traces.missing import Missing
from traces.sections.tables import WallId

Outcome = Literal["finding", "clear", "unmeasurable"]
_OF_WINDOWS: Final = "fraction of the windows"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One measured value behind an outcome, and the limit it is held against (None: context).

    `start_ns` to `end_ns`, `step` and `rank` (its place in the document) say where it can be seen, where one
    place shows it best.
    """

    measure: str
    value: float
    unit: str
    limit: float | None
    because: str
    start_ns: int | None = None
    end_ns: int | None = None
    step: int | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class WallJudgement:
    """One wall of a run.

    `cost_ns` is what the windows would lose if the overhead vanished, a ceiling; None where unmeasurable.
    `step_cost_frac`: the same per replayed step, as part of that step. `comes_first`: hard evidence that puts
    this wall before larger ones. `missing` says what could not be looked at, `cure` how to record it.
    `at_most_frac`: where no proven replay tells the cost, the most that it can be by the partition alone.
    `at_least_frac`: what was measured of a cost of which a part could not be seen.
    """

    id: WallId
    outcome: Outcome
    cost_ns: int | None
    cost_frac: float | None
    cost_by_kind_ns: Mapping[str, int]
    step_cost_frac: tuple[float, ...]
    evidence: tuple[Evidence, ...]
    comes_first: bool = False
    missing: tuple[str, ...] = ()
    cure: str = ""
    at_most_frac: float | None = None
    at_least_frac: float | None = None

    @property
    def only_in_first_step(self) -> bool:
        """Whether the used steps after the first hardly pay its cost, so that it may be warm-up."""
        steady = [one.value for one in self.evidence if one.measure == "steady_cost_frac"]
        return bool(steady) and steady[0] < STEADY.value


def judged(
    wall: WallId, told: Price | Unpriced, ranks: Sequence[Figures], evidence: Sequence[Evidence]
) -> WallJudgement:
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
        bound = Evidence("cost_frac", most, _OF_WINDOWS, WALL.value, because)
        return WallJudgement(wall, "clear", ns, most, {}, (), (bound, *evidence), at_most_frac=most)
    shown = [Evidence("cost_frac", told.frac, _OF_WINDOWS, WALL.value, WALL.because, rank=told.rank)]
    if told.steady_frac is not None:
        steady = Evidence("steady_cost_frac", told.steady_frac, STEADY.unit, STEADY.value, STEADY.because)
        shown.append(steady)
    stands = told.frac >= WALL.value
    if not stands and told.at_least is not None and (most is None or most >= WALL.value):
        return unmeasurable(wall, told.at_least, (*shown, *evidence), most)
    return WallJudgement(
        wall,
        "finding" if stands else "clear",
        told.ns,
        told.frac,
        told.by_kind_ns,
        told.step_frac,
        (*shown, *evidence),
        at_most_frac=most,
    )


def shown_frac(
    measure: str, ranks: Sequence[Figures], read: Callable[[Figures], int | None], because: str
) -> list[Evidence]:
    """A length as part of the windows, over the ranks that tell it; nothing where none does."""
    frac = frac_of(ranks, read)
    return [] if frac is None else [Evidence(measure, frac, _OF_WINDOWS, None, because)]


def unmeasurable(
    wall: WallId, why: Missing, evidence: Sequence[Evidence] = (), at_most_frac: float | None = None
) -> WallJudgement:
    """What could not be looked at is never clear."""
    return WallJudgement(
        wall,
        "unmeasurable",
        None,
        None,
        {},
        (),
        tuple(evidence),
        missing=(why.reason,),
        cure=why.cure,
        at_most_frac=at_most_frac,
    )

"""What a plan is made of: fixes to try, those refused and why, in the order that pays."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix
from heuristics.fixes.precondition import Needs, Release
from heuristics.result.judged import Knobs, Refusal
from heuristics.walls.bound import MEASURE_IT
from traces.arrays import codes_of
from traces.frozen import frozen
from traces.limits import LITTLE
from traces.texts import Texts


@frozen
class Planned:
    """A fix of the plan.

    `knobs`: the lines of its `change`. `ceiling_frac`: no gain is above it, as part of the window:
    what it acts on costs no more, and a replay of the change at its best gives no more; only the
    latter where it acts on several walls. `low_frac`: what a pessimistic replay of it gives,
    negative where it may cost more than it gives, None where no lower end can be defended, as
    `low_because` says and `low_cure` would change. `replayed`: whether a replay of the change
    itself gave them; else the ceiling is only what it acts on. `shares_with`: fixes of the plan
    that act on the same costs, so that their gains do not add up. `after`: earlier fixes of the
    plan without which the configuration forbids it.
    """

    fix: Fix
    knobs: Knobs
    preconditions: Needs
    ceiling_frac: float | None
    low_frac: float | None = None
    low_because: str = ""
    low_cure: str = MEASURE_IT
    shares_with: Texts = ()
    after: Texts = ()
    change: Change = field(default_factory=Change)
    replayed: bool = False

    @property
    def is_late(self) -> bool:
        """Whether it comes behind others, as a recipe may have it already."""
        return any(need.late for need in self.preconditions)

    @property
    def gains_little(self) -> bool:
        return self.ceiling_frac is not None and self.ceiling_frac < LITTLE.value


@frozen
class Refused:
    """A fix that is not in the plan, why, and what would let it in.

    `kind`: of what sort the reason is. `source`: who forbids it, empty where the fix's own sources
    say so. `is_turn`: it only waits for its turn behind another. `is_set`: the run has all that it
    would change.
    """

    fix: Fix
    kind: Refusal
    because: str
    unlocked_by: str = ""
    source: str = ""
    is_turn: bool = False
    is_set: bool = False


@frozen
class Rejection:
    """What the framework says of a fix that it rejects, in its own words, and which release says
    so.
    """

    text: str
    source: str


Rejections = Mapping[str, Rejection]
"""By the id of a fix."""


@frozen
class Plan:
    """Fixes in the order to try; those refused; where no wall stands levers, whose gain nothing
    proves.

    `releases`: of the upgrades among its steps; the steps after them are for a run with these.
    """

    fixes: tuple[Planned, ...]
    refused: tuple[Refused, ...]
    levers: tuple[Planned, ...]
    releases: tuple[Release, ...] = ()


def ids_of(fixes: Iterable[Planned | Refused]) -> Texts:
    return tuple(step.fix.id for step in fixes)


def in_paying_order(fixes: Sequence[Planned], first: Sequence[str] = ()) -> list[Planned]:
    """Fixes by the saving that their replay defends, whatever their wall.

    Those whose ids are in `first` lead, in its order. After the defended ones come those without a
    defended saving, in the order they have, then those that gain little at most, then those that a
    recipe may have already. One that others wait for stands before them.
    """
    result = list[Planned]()
    lead = codes_of(dict.fromkeys(first))
    for step in sorted(
        fixes, key=lambda planned: (lead.get(planned.fix.id, len(lead)), *_place(planned))
    ):
        _put(step, fixes, result)
    return result


def _place(step: Planned) -> tuple[int, float]:
    """How late a fix comes, and what it is sorted by among those as late."""
    if step.is_late:
        return 2, 0.0
    if step.gains_little:
        return 1, 0.0
    return 0, -max(step.low_frac or 0.0, 0.0)


def _put(step: Planned, fixes: Sequence[Planned], result: list[Planned]) -> None:
    if step in result:
        return
    needs = {*step.after, *(need.cure for need in step.preconditions if need.state != "met")} - {""}
    for earlier in fixes[: fixes.index(step)]:
        if {earlier.fix.id, earlier.fix.same_as} & needs:
            _put(earlier, fixes, result)
    result.append(step)

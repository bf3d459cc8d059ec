"""What a plan is made of: fixes to try, those refused and why."""

from dataclasses import dataclass, field

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix
from heuristics.fixes.precondition import Precondition, Release
from heuristics.result.judged import Knobs, Refusal
from heuristics.walls.unproven import MEASURE_IT


@dataclass(frozen=True, slots=True)
class Planned:
    """A fix of the plan.

    `knobs`: the lines of its `change`. `ceiling_frac`: no gain is above it, as part of the window: what it
    acts on costs no more, and a replay of the change at its best gives no more; only the latter where it acts
    on several walls. `low_frac`: what a pessimistic replay of it gives, negative where it may cost more than
    it gives, None where no lower end can be defended, as `low_because` says and `low_cure` would change.
    `replayed`: whether a replay of the change itself gave them; else the ceiling is only what it acts on.
    `shares_with`: fixes of the plan
    that act on the same costs, so that their gains do not add up. `after`: earlier fixes of the plan without
    which the configuration forbids it.
    """

    fix: Fix
    knobs: Knobs
    preconditions: tuple[Precondition, ...]
    ceiling_frac: float | None
    low_frac: float | None = None
    low_because: str = ""
    low_cure: str = MEASURE_IT
    shares_with: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    change: Change = field(default_factory=Change)
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """A fix that is not in the plan, why, and what would let it in.

    `kind`: of what sort the reason is. `source`: who forbids it, empty where the fix's own sources say so.
    """

    fix: Fix
    kind: Refusal
    because: str
    unlocked_by: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Rejection:
    """What the framework says of a fix that it rejects, in its own words, and which release says so."""

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Fixes in the order to try; those refused; where no wall stands levers, whose gain nothing proves.

    `releases`: of the upgrades among its steps; the steps after them are for a run with these.
    """

    fixes: tuple[Planned, ...]
    refused: tuple[Refused, ...]
    levers: tuple[Planned, ...]
    releases: tuple[Release, ...] = ()

"""Which cause it is: each proposes what to take away, the run is replayed without it, and the one that saves
the most counts, where it saves more than resampled steps give by chance.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from heuristics.late import device, experts, host, links, loader, pauses, stages
from heuristics.late.beside import COST
from traces.arrays import FloatArray
from traces.limits import HALF_A_WALL, WALL, Limit
from traces.ranks.edit import Edit
from traces.ranks.run import MeasuredRun
from traces.ranks.summary import UNKNOWN
from traces.ranks.without import Replayed, replay_without
from traces.sections.cause import Cause

CHANCE: Final = Limit(0.05, "of resampled runs", "statistics: the usual error level, one-sided")
_RESAMPLES: Final = 1000
_STEADY: Final = (
    device.propose,
    host.propose,
    loader.propose,
    links.propose,
    experts.propose,
    stages.propose,
)


_ANYWHERE: Final = (Cause.ROTATING_JITTER, Cause.ROUTING_IMBALANCE)
"""Any host pauses now and then, and no routing is even."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A possible cause, replayed, and what it saves of a mean step; where it cannot be, what it costs."""

    edit: Edit
    replayed: Replayed | None
    saved_ns: float

    @property
    def cost_ns(self) -> float:
        """The late ranks' own time beyond like ranks in a mean step."""
        told_ns = self.edit.cost_ns[~np.isnan(self.edit.cost_ns)]
        return float(told_ns.mean()) if len(told_ns) else 0.0


def judged_by_replay(run: MeasuredRun) -> Tried | None:
    """The cause; None where none saves enough. Pauses are of ranks that are not late for their own reason."""
    if run.grid.step_count < 2 or not run.aligned.clocks.aligned or not len(run.together.matched):
        return None
    steady = [one for propose in _STEADY for edit in propose(run) if (one := tried(run, edit)) is not None]
    worst = _most(run, [one for one in steady if one.replayed is not None])
    places = () if worst is None else worst.edit.places
    others = [one for edit in pauses.propose(run, places) if (one := tried(run, edit)) is not None]
    found = [*steady, *others]
    best = _most(run, [one for one in found if one.replayed is not None]) or _most(run, found)
    if best is None or best.replayed is None or best.edit.whole is None:
        return best
    return replace(best, replayed=replay_without(run, replace(best.edit, edited=best.edit.whole)))


def _most(run: MeasuredRun, found: Sequence[Tried]) -> Tried | None:
    """What saves the most; of several that save as much, to a hundredth of the step, that of fewest ranks."""
    most_ns = max((one.saved_ns for one in found), default=0.0)
    as_much = [one for one in found if one.saved_ns >= most_ns - COST.value * run.step_ns]
    return min(as_much, key=lambda one: (len(one.edit.places) or len(run.nodes), -one.saved_ns), default=None)


def tried(run: MeasuredRun, edit: Edit) -> Tried | None:
    """A cause that is no chance, and worth to be said: what it costs of its own, and what the run saves.

    What any run has some of, what comes now and then and what cannot be replayed have to save half a wall;
    where one step alone shows it, a wall.
    """
    own_ns = at_least(edit.cost_ns, edit)
    if own_ns < COST.value * run.step_ns:
        return None
    replayed = replay_without(run, edit)
    if replayed is None or not replayed.step_ns or _lacks_the_way(run, replayed):
        found, sure_ns = Tried(edit, None, 0.0), own_ns
        found = replace(found, saved_ns=found.cost_ns)
    else:
        found = Tried(edit, replayed, float(replayed.step_ns - replayed.without_ns))
        several = edit.cause in _ANYWHERE and _known(replayed.saved_ns) > 1
        sure_ns = at_least(replayed.saved_ns, edit) if several else own_ns
    least = HALF_A_WALL if found.replayed is None or edit.by_step or edit.cause in _ANYWHERE else COST
    if len(_drawn_from(edit.cost_ns, edit)) < 2:
        least = WALL
    enough = sure_ns >= COST.value * run.step_ns and found.saved_ns >= least.value * run.step_ns
    return found if enough else None


def _known(values: FloatArray) -> int:
    return int(np.count_nonzero(~np.isnan(values)))


def _lacks_the_way(run: MeasuredRun, replayed: Replayed) -> bool:
    """Whether the replay shows nothing, and collectives are missing by which the delay may go."""
    return replayed.saved_frac < COST.value and unmatched(run) >= COST.value


def unmatched(run: MeasuredRun) -> float:
    """The part of the collectives that was not matched."""
    matched = run.together.matched
    return 1 - len(matched.place) / len(matched.recorded.rows)


def at_least(values: FloatArray, edit: Edit) -> float:
    """What the mean of these is at least, of steps drawn again; of one step that is known it is as it is.

    Deviations are widened for few values (T. Hesterberg, What Teachers Should Know About the Bootstrap, The
    American Statistician 69, 2015).
    """
    some = _drawn_from(values, edit)
    count = len(some)
    if not count:
        return 0.0
    drawn = np.random.default_rng(0).integers(0, count, (_RESAMPLES, count))
    apart = (some[drawn].mean(axis=1) - some.mean()) * np.sqrt(count / max(1, count - 1))
    least = float(some.mean() + np.quantile(apart, CHANCE.value))
    return least * count / _known(values)


def _drawn_from(values: FloatArray, edit: Edit) -> FloatArray:
    """What is known; of a rank that is late in some of the steps, in these."""
    told = ~np.isnan(values)
    if edit.places and edit.by_step:
        told &= np.array(edit.by_step) != UNKNOWN
    return values[told]

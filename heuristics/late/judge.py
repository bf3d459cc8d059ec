"""Which cause it is: each proposes what to take away, the run is replayed without it, and the one
that saves the most counts, where it saves more than resampled steps give by chance.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from heuristics.late import device, experts, host, links, loader, pauses, stages
from heuristics.late.beside import COST
from traces.arrays import FloatArray
from traces.frozen import frozen
from traces.limits import HALF_A_WALL, Limit
from traces.ranks.replay.edit import Edit
from traces.ranks.replay.run import MeasuredRun
from traces.ranks.replay.without import Replayed, replay_without
from traces.ranks.summaries.summary import UNKNOWN
from traces.sections.cause import Cause
from traces.statistics.resampled import CHANCE, drawn_again

_STEADY: Final = (
    device.propose,
    host.propose,
    loader.propose,
    links.propose,
    experts.propose,
    stages.propose,
)
_ALL_SHARE: Final = (Cause.ROTATING_JITTER, Cause.PIPELINE_IMBALANCE)
"""What all ranks have a part in, so that nobody's own time says what it is worth."""


@frozen
class Tried:
    """A possible cause, replayed, and what it saves of a mean step; where it cannot be, what it
    costs.
    """

    edit: Edit
    replayed: Replayed | None
    saved_ns: float

    @property
    def cost_ns(self) -> float:
        """The late ranks' own time beyond like ranks in a mean step."""
        return mean(self.edit.cost_ns)


def judged_by_replay(run: MeasuredRun) -> Tried | None:
    """The cause; None where none saves enough. Pauses are of ranks that are not late for their own
    reason.
    """
    if run.grid.step_count < 2 or not run.aligned.clocks.aligned or not len(run.together.matched):
        return None
    found = list[Tried]()
    for propose in _STEADY:
        found += _worth(run, propose(run))
    worst = _most(run, filter(_is_replayed, found))
    if worst is not None and worst.edit.cause is Cause.ROUTING_IMBALANCE:
        return worst  # what uneven work of experts holds up looks like pauses
    found += _worth(run, pauses.propose(run, worst.edit.places if worst else ()))
    return _most(run, filter(_is_replayed, found)) or _most(run, found)


def _worth(run: MeasuredRun, edits: Iterable[Edit]) -> Iterator[Tried]:
    return filter(None, map(partial(tried, run), edits))


def _is_replayed(one: Tried) -> bool:
    return one.replayed is not None


def _most(run: MeasuredRun, several: Iterable[Tried]) -> Tried | None:
    """What saves the most; of several that save as much, to a hundredth of the step, that of fewest
    ranks.
    """
    found = [*several]
    most_ns = max((one.saved_ns for one in found), default=0.0)
    as_much = [one for one in found if one.saved_ns >= most_ns - COST.value * run.step_ns]
    return min(
        as_much,
        key=lambda one: (len(one.edit.places) or len(run.nodes), -one.saved_ns),
        default=None,
    )


def tried(run: MeasuredRun, edit: Edit) -> Tried | None:
    """A cause that is no chance, and worth to be said: what it costs of its own, and what the run
    saves.
    """
    # All kernels of one step tell a device.
    several = edit.cause is Cause.SLOW_DEVICE or _times(run, edit) > 1
    least_ns = COST.value * run.step_ns
    if _surely(edit.cost_ns, edit, several) < least_ns:
        return None
    found = _replayed(run, edit)
    if min(found.saved_ns, _surely_saved(found, several)) < least_ns:
        return None
    worth_ns = max(found.saved_ns, found.cost_ns)
    if edit.cause in _ALL_SHARE:
        worth_ns = found.saved_ns if found.replayed else 0.0
    if worth_ns >= _least(found, several).value * run.step_ns:
        return _with_all(run, found)
    return None


def _least(found: Tried, several: bool) -> Limit:
    """Half a wall, of what comes once, of what healthy runs have some of, and of what cannot be
    replayed.
    """
    if not several or found.edit.ordinary or found.replayed is None:
        return HALF_A_WALL
    return COST


def _surely(values: FloatArray, edit: Edit, several: bool) -> float:
    if several:
        return at_least(values, edit)
    return mean(values)


def _surely_saved(found: Tried, several: bool) -> float:
    """Any host pauses, so that pauses must save it surely; of others their own time tells it."""
    if found.replayed is None or found.edit.cause is not Cause.ROTATING_JITTER:
        return found.saved_ns
    return _surely(found.replayed.saved_ns, found.edit, several)


def _replayed(run: MeasuredRun, edit: Edit) -> Tried:
    """The run without it; where that cannot be replayed, what it costs is what it saves."""
    replayed = replay_without(run, edit)
    if replayed is None or not replayed.step_ns or _lacks_the_way(run, replayed):
        return Tried(edit, None, mean(edit.cost_ns))
    return Tried(edit, replayed, float(replayed.step_ns - replayed.without_ns))


def _with_all(run: MeasuredRun, found: Tried) -> Tried:
    """The same with all that goes with it."""
    if found.replayed is None or found.edit.whole is None:
        return found
    replayed = replay_without(run, replace(found.edit, edited=found.edit.whole))
    if replayed is None:
        return found
    return Tried(found.edit, replayed, float(replayed.step_ns - replayed.without_ns))


def _times(run: MeasuredRun, edit: Edit) -> int:
    """In how many steps it comes, as far as these are known."""
    if edit.cause is Cause.ROTATING_JITTER:
        return int(np.count_nonzero(edit.cost_ns >= COST.value * run.step_ns))
    return len(_drawn_from(edit.cost_ns, edit))


def mean(values: FloatArray) -> float:
    """Of what is known; 0 without any."""
    if _known(values):
        return float(np.nanmean(values))
    return 0.0


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
    """What the mean of these is at least, of steps drawn again; of one step that is known it is as
    it is.

    Deviations are widened for few values (T. Hesterberg, What Teachers Should Know About the
    Bootstrap, The American Statistician 69, 2015).
    """
    some = _drawn_from(values, edit)
    count = len(some)
    if not count:
        return 0.0
    apart = (some[drawn_again(count)].mean(axis=1) - some.mean()) * np.sqrt(
        count / max(1, count - 1)
    )
    return float(some.mean() + np.quantile(apart, CHANCE.value)) * count / _known(values)


def _drawn_from(values: FloatArray, edit: Edit) -> FloatArray:
    """What is known; of a rank that is late in some of the steps, in these."""
    told = ~np.isnan(values)
    if edit.places and edit.by_step:
        told &= np.array(edit.by_step) != UNKNOWN
    return values[told]

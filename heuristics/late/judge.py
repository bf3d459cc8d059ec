"""Which cause it is: each proposes what to take away, the run is replayed without it, and the one
that saves the most counts, where it saves more than resampled steps give by chance.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from operator import attrgetter
from typing import Final

import numpy as np

from heuristics.late import device, experts, host, links, loader, pauses, stages
from heuristics.late.beside import COST
from traces.arrays import FloatArray, summed
from traces.frozen import frozen
from traces.limits import HALF_A_WALL, Limit
from traces.ranks.replay.edit import Edit
from traces.ranks.replay.run import MeasuredRun
from traces.ranks.replay.without import ReplayedStep, replay_without
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
    replayed: ReplayedStep | None
    saved_ns: float

    @property
    def cost_ns(self) -> float:
        """The late ranks' own time beyond like ranks in a mean step."""
        return mean(self.edit.cost_ns)


def judged_by_replay(run: MeasuredRun) -> Tried | None:
    """The cause; None where none saves enough. Pauses are of ranks that are not late for their own
    reason.
    """
    if run.grid.step_count < 2 or not run.aligned.clocks.aligned or not len(run.matched):
        return None
    causes = list[Tried]()
    for propose in _STEADY:
        causes += _worth(run, propose(run))
    worst = _most(run, filter(_is_replayed, causes))
    if worst is not None and worst.edit.cause is Cause.ROUTING_IMBALANCE:
        return worst  # what uneven work of experts holds up looks like pauses
    causes += _worth(run, pauses.propose(run, worst.edit.places if worst else ()))
    return _most(run, filter(_is_replayed, causes)) or _most(run, causes)


def _worth(run: MeasuredRun, edits: Iterable[Edit]) -> Iterator[Tried]:
    return filter(None, map(partial(tried, run), edits))


def _is_replayed(cause: Tried) -> bool:
    return cause.replayed is not None


def _most(run: MeasuredRun, candidates: Iterable[Tried]) -> Tried | None:
    """What saves the most; of several that save as much, as far as steps tell, that of fewest
    ranks.
    """
    causes = [*candidates]
    if not causes:
        return None
    most = max(causes, key=attrgetter("saved_ns"))

    def ranks(cause: Tried) -> tuple[int, float]:
        edit = cause.edit
        if edit.group == UNKNOWN or edit.ordinary:
            return len(edit.places) or len(run.nodes), -cause.saved_ns
        return len(run.alike[edit.group].places), -cause.saved_ns  # an uneven stage

    return min(
        (cause for cause in causes if _surely_more(most, cause) < COST.value * run.step_ns),
        key=ranks,
    )


def _surely_more(most: Tried, other: Tried) -> float:
    """What it saves beyond another at least, of the same steps drawn again."""
    if most.replayed is None or other.replayed is None:
        return most.saved_ns - other.saved_ns
    return at_least(most.replayed.saved_ns - other.replayed.saved_ns, most.edit)


def tried(run: MeasuredRun, edit: Edit) -> Tried | None:
    """A cause that is no chance, and worth to be said: what it costs of its own, and what the run
    saves.
    """
    # All kernels of one step tell a device.
    repeated = edit.cause is Cause.SLOW_DEVICE or _times(run, edit) > 1
    least_ns = COST.value * run.step_ns
    if _surely(edit.cost_ns, edit, repeated and not edit.told) < least_ns:
        return None
    cause = _replayed(run, edit)
    if min(cause.saved_ns, _surely_saved(cause, repeated)) < least_ns:
        return None
    worth_ns = max(cause.saved_ns, cause.cost_ns)
    if edit.cause in _ALL_SHARE:
        worth_ns = cause.saved_ns if cause.replayed else 0.0
    if worth_ns >= _least(cause, repeated).value * run.step_ns:
        return cause
    return None


def _least(cause: Tried, repeated: bool) -> Limit:
    """Half a wall, of what comes once, of what healthy runs have some of, and of what cannot be
    replayed.
    """
    if not repeated or cause.edit.ordinary or cause.replayed is None:
        return HALF_A_WALL
    return COST


def _surely(values: FloatArray, edit: Edit, repeated: bool) -> float:
    if repeated:
        return at_least(values, edit)
    return mean(values)


def _surely_saved(cause: Tried, repeated: bool) -> float:
    """Any host pauses, so that pauses must save it surely; of others their own time tells it."""
    if cause.replayed is None or cause.edit.cause is not Cause.ROTATING_JITTER:
        return cause.saved_ns
    return _surely(cause.replayed.saved_ns, cause.edit, repeated)


def _replayed(run: MeasuredRun, edit: Edit) -> Tried:
    """The run without it; where that cannot be replayed, what it costs is what it saves."""
    replayed = replay_without(run, edit)
    if replayed is None or not replayed.step_ns or _lacks_the_way(run, replayed):
        return Tried(edit, None, mean(edit.cost_ns))
    return Tried(edit, replayed, float(replayed.step_ns - replayed.without_ns))


def _times(run: MeasuredRun, edit: Edit) -> int:
    """In how many steps it comes, as far as these are known."""
    if edit.cause is Cause.ROTATING_JITTER:
        return summed(edit.cost_ns >= COST.value * run.step_ns)
    return len(_drawn_from(edit.cost_ns, edit))


def mean(values: FloatArray) -> float:
    """Of what is known; 0 without any."""
    if _known(values):
        return float(np.nanmean(values))
    return 0.0


def _known(values: FloatArray) -> int:
    return summed(~np.isnan(values))


def _lacks_the_way(run: MeasuredRun, replayed: ReplayedStep) -> bool:
    """Whether the replay shows nothing, and collectives are missing by which the delay may go."""
    return replayed.saved_frac < COST.value and unmatched(run) >= COST.value


def unmatched(run: MeasuredRun) -> float:
    """The part of the collectives that was not matched."""
    matched = run.matched
    return 1 - len(matched.place) / len(matched.recorded.rows)


def at_least(values: FloatArray, edit: Edit) -> float:
    """What the mean of these is at least, of steps drawn again; of one step that is known it is as
    it is.

    Deviations are widened for few values (T. Hesterberg, What Teachers Should Know About the
    Bootstrap, The American Statistician 69, 2015).
    """
    drawn = _drawn_from(values, edit)
    count = len(drawn)
    if not count:
        return 0.0
    apart = (drawn[drawn_again(count)].mean(axis=1) - drawn.mean()) * np.sqrt(
        count / max(1, count - 1)
    )
    return float(drawn.mean() + np.quantile(apart, CHANCE.value)) * count / _known(values)


def _drawn_from(values: FloatArray, edit: Edit) -> FloatArray:
    """What is known; of a rank that is late in some of the steps, in these."""
    known = ~np.isnan(values)
    if edit.places and edit.by_step:
        known &= np.array(edit.by_step) != UNKNOWN
    return values[known]

"""The run without what makes it late: replayed over all ranks, so that everyone who waited moves
too.

It is a ceiling of what a repair can win, since only collectives hold the ranks together in it. Of a
transfer that becomes shorter only what was exposed is won: beneath the rest the rank worked.
"""

from dataclasses import replace

import numpy as np

from traces.arrays import BoolArray, FloatArray, IntArray, none_of, unknown, zeros
from traces.frozen import frozen
from traces.limits import WALL
from traces.ranks.replay.beneath import BESIDE, EVERY_KIND
from traces.ranks.replay.borders import StepBorders, mean_step_ns
from traces.ranks.replay.chains import NEVER, chains_of, replayed, with_beside
from traces.ranks.replay.edit import Edit
from traces.ranks.replay.run import MeasuredRun
from traces.ranks.rows.ends import NO_ROW
from traces.ranks.summaries.summary import UNKNOWN
from traces.ranks.waiting.side_by_side import middles
from traces.ranks.waiting.waits import LASTS
from traces.sections.cause import Cause


@frozen
class ReplayedStep:
    """A mean step as recorded and without the cause, and what each step of the run saves, shape
    (steps,), NaN where it is not known.
    """

    step_ns: int
    without_ns: int
    saved_ns: FloatArray

    @property
    def saved_frac(self) -> float:
        if self.step_ns:
            return 1 - self.without_ns / self.step_ns
        return 0.0


def replay_without(run: MeasuredRun, edit: Edit) -> ReplayedStep | None:
    """Replay the run; None where the recorded order contradicts itself, so that the replay comes to
    no end.

    Replayed with all that was recorded, every time is as recorded.
    """
    matched = run.matched
    if edit.skipped is not EVERY_KIND:
        run = replace(run, chains=chains_of(matched, run.aligned, run.role, edit.skipped))
    if edit.cause is Cause.SLOW_LINK:
        run = replace(run, chains=with_beside(run.chains, matched, run.aligned))
    free = _begins_alone(run)
    ways = [np.zeros_like(free), free] if free.any() else [free]
    replays = []
    for way in ways:
        lasts = _lasts(run, edit, way)
        if lasts is None:
            return None
        replays.append(lasts)
    return max(replays, key=lambda replay: replay.saved_frac)  # late beginners only hold up


def _lasts(run: MeasuredRun, edit: Edit, free: BoolArray) -> ReplayedStep | None:
    """The run without the cause; None where the replay comes to no end."""
    end_ns = _goes_on_ns(run, edit.edited(run.chains), free)
    if (end_ns == NEVER).any():
        return None
    borders = StepBorders(
        run.together.used, run.grid, run.aligned, run.chains, common=bool(free.any())
    )
    before_ns, after_ns = borders.steps_ns(run.aligned.end_ns), borders.steps_ns(end_ns)
    return ReplayedStep(
        mean_step_ns(before_ns), mean_step_ns(after_ns), middles((before_ns - after_ns).T)
    )


def _goes_on_ns(run: MeasuredRun, without: tuple[IntArray, IntArray], free: BoolArray) -> IntArray:
    """When work that each participation held up goes on, shape (p,).

    `without`: own work and transfers without the cause.
    """
    chains, (own_ns, moving_ns) = run.chains, without
    less_ns = np.maximum(0, chains.moving_ns - moving_ns)
    if not less_ns.any():
        return replayed(chains, own_ns, moving_ns, free)
    queued = _queued(run)
    hidden_ns = _hidden(run, less_ns, queued)
    own_ns = own_ns + np.where(chains.after == NO_ROW, 0, hidden_ns[chains.after])
    own_ns = np.where(queued, own_ns - np.maximum(0, chains.moving_ns[chains.behind]), own_ns)
    end_ns = replayed(chains, own_ns, moving_ns, free)
    return np.where(end_ns == NEVER, NEVER, end_ns + hidden_ns)


def _queued(run: MeasuredRun) -> BoolArray:
    """Gradients and parameters that waited in their stream, shape (p,): ready while those before
    moved.
    """
    chains = run.chains
    behind_ns = chains.start_ns - run.aligned.end_ns[chains.behind]
    queued = (chains.behind != NO_ROW) & (behind_ns <= LASTS.value)
    return queued & np.isin(run.matched.kind, BESIDE)


def _hidden(run: MeasuredRun, less_ns: IntArray, queued: BoolArray) -> IntArray:
    """By how much each participation ends sooner while its rank's compute does not, shape (p,).

    What is queued ends as much sooner as those before it as well, but for what of them was exposed.
    """
    matched, behind = run.matched, run.chains.behind
    beyond_ns = less_ns - matched.exposed_ns
    order = np.lexsort((run.chains.start_ns, matched.group[matched.instance], matched.place))
    begins = ~queued[order]
    begins[1:] |= behind[order[1:]] != order[:-1]
    total_ns = np.cumsum(beyond_ns[order])
    stretch = np.cumsum(begins) - 1
    before_ns = (total_ns - beyond_ns[order])[begins][stretch]
    far_ns = int(np.abs(total_ns).max()) * 2 + 1
    least_ns = (
        np.minimum.accumulate(np.minimum(total_ns, before_ns) - stretch * far_ns) + stretch * far_ns
    )
    result = zeros(len(order))
    result[order] = total_ns - least_ns
    return result


def _begins_alone(run: MeasuredRun) -> BoolArray:
    """The first collectives of ranks, shape (p,), where like ranks begin within steps, each
    elsewhere.

    Without the cause they would have begun with the others, as much later than these as they did.
    """
    matched, grid, chains = run.matched, run.grid, run.chains
    first = chains.after == NO_ROW
    within = (grid.later != grid.later[:1]).any() or (matched.step[first] == UNKNOWN).any()
    begin_ns = unknown(len(grid.later))
    np.fmin.at(begin_ns, matched.place[first], chains.own_ns[first].astype(np.float64))
    widest_ns = 0.0
    for group in run.alike:
        few_ns = begin_ns[[*group.places]]
        widest_ns = np.fmax(widest_ns, np.fmax.reduce(few_ns) - np.fmin.reduce(few_ns))
    if within and widest_ns > WALL.value * run.step_ns:
        return first
    return none_of(len(first))

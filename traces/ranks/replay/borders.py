"""Steps of a run by its collectives, so that a replay says how long they take."""

import numpy as np

from traces.arrays import FloatArray, IntArray, bools, none_of, zeros
from traces.ranks.one_run.align import Aligned
from traces.ranks.replay.chains import NEVER, Chains
from traces.ranks.rows.ends import NO_ROW
from traces.ranks.summaries.summary import Summaries
from traces.ranks.waiting.side_by_side import Grid


class StepBorders:
    """The borders of each rank's steps, as work after a collective of the rank.

    `common`: of the steps that all ranks recorded, where there are any, and of the ranks that
    recorded what was before.
    """

    def __init__(
        self,
        summaries: Summaries,
        grid: Grid,
        aligned: Aligned,
        chains: Chains,
        *,
        common: bool,
    ) -> None:
        fits = aligned.clocks.by_fingerprint()
        placed = bools([summary.identity.clock in fits for summary in summaries])
        count = (~np.isnan(grid.length_ns)).sum(axis=1)
        whole = np.flatnonzero((count > 0) & placed)
        begin, end = zeros(len(count)), count
        if common and len(whole):
            last = int((grid.later + count)[whole].min())
            at = int(grid.later[whole].max())
            if last > at:
                begin, end = at - grid.later, last - grid.later
        self._table = np.full((len(whole), grid.step_count + 1), NEVER)
        for row, place in enumerate(whole.tolist()):
            fit, steps = fits[summaries[place].identity.clock], summaries[place].steps
            own_ns = np.append(
                steps.start_ns[begin[place] : end[place]], steps.end_ns[end[place] - 1]
            )
            first = begin[place] + grid.later[place]
            self._table[row, first : first + len(own_ns)] = fit.times_of(own_ns)
        known = self._table != NEVER
        places = np.broadcast_to(whole[:, np.newaxis], known.shape)[known]
        self._chains, self._after = chains, np.full(known.shape, NO_ROW)
        self._after[known] = chains.ends.before(places, self._table[known])
        self._own_ns = self._table - np.where(self._after == NO_ROW, 0, aligned.end_ns[self._after])
        if common:
            is_known = self._after[np.arange(len(whole)), known.argmax(axis=1)] != NO_ROW
            rows = is_known if is_known.any() else ~none_of(len(is_known))
            self._table, self._after = self._table[rows], self._after[rows]
            self._own_ns = self._own_ns[rows]

    def steps_ns(self, end_ns: IntArray) -> FloatArray:
        """How long each step of each rank takes where collectives end so; shape (ranks, steps)."""
        ended_ns = np.append(end_ns, NEVER)
        at_ns = (
            self._chains.since_ns(self._after.ravel(), ended_ns).reshape(self._after.shape)
            + self._own_ns
        )
        known = self._table != NEVER
        return np.where(known[:, 1:] & known[:, :-1], np.diff(at_ns, axis=1), np.nan)


def mean_step_ns(steps_ns: FloatArray) -> int:
    """The mean step of the median rank."""
    count = (~np.isnan(steps_ns)).sum(axis=1)
    rows = count > 0
    if rows.any():
        return int(np.median(np.nansum(steps_ns[rows], axis=1) // count[rows]))
    return 0

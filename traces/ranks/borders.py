"""Steps of a run by its collectives, so that a replay says how long they take."""

from collections.abc import Sequence

import numpy as np

from traces.arrays import IntArray
from traces.ranks.chains import NEVER, Chains
from traces.ranks.clocks import Aligned
from traces.ranks.ends import NO_ROW
from traces.ranks.side_by_side import Grid
from traces.ranks.summary import RankSummary


class Borders:
    """The first and last border of each rank's steps, as work after a collective of the rank.

    `common`: of the steps that all ranks recorded, where there are any, and of the ranks that recorded what
    was before.
    """

    def __init__(
        self, summaries: Sequence[RankSummary], grid: Grid, aligned: Aligned, chains: Chains, *, common: bool
    ) -> None:
        fits = aligned.clocks.by_fingerprint()
        placed = np.array([one.identity.clock in fits for one in summaries], dtype=np.bool_)
        count = (~np.isnan(grid.length_ns)).sum(axis=1)
        whole = np.flatnonzero((count > 0) & placed)
        begin, end = np.zeros(len(count), dtype=np.int64), count
        if common and len(whole):
            last = int((grid.later + count)[whole].min())
            at = int(grid.later[whole].max())
            if last > at:
                begin, end = at - grid.later, last - grid.later
        place = np.tile(whole, 2)
        some = [(summaries[one], begin[one], end[one]) for one in whole.tolist()]
        begins = [fits[one.identity.clock].time_of(int(one.steps.start_ns[at])) for one, at, _ in some]
        ends = [fits[one.identity.clock].time_of(int(one.steps.end_ns[to - 1])) for one, _, to in some]
        time_ns = np.array(begins + ends, dtype=np.int64)
        self._chains, self._after = chains, chains.ends.before(place, time_ns)
        self._own_ns = time_ns - np.where(self._after == NO_ROW, 0, aligned.end_ns[self._after])
        self._counts = (end - begin)[whole]
        half = len(whole)
        known = self._after[:half] != NO_ROW
        if common and known.any():
            self._after, self._own_ns = (one[np.tile(known, 2)] for one in (self._after, self._own_ns))
            self._counts = self._counts[known]

    def step_ns(self, end_ns: IntArray) -> int:
        """The mean step of the median rank, where collectives end so."""
        at = self._chains.since_ns(self._after, np.append(end_ns, NEVER)) + self._own_ns
        half = len(at) // 2
        return int(np.median((at[half:] - at[:half]) // self._counts)) if half else 0

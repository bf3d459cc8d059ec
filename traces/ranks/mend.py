"""The run without what makes it late: replayed over all ranks, so that everyone who waited moves too.

It is a ceiling of what a repair can win, since only collectives hold the ranks together in it. Of a transfer
that becomes shorter only what was exposed is won: beneath the rest the rank worked.
"""

import numpy as np

from traces.columns import IntArray
from traces.missing import Missing, gap
from traces.ranks.cause import Cause
from traces.ranks.chains import NEVER, NO_ROW, Ends, chains_of, replayed
from traces.ranks.edits import edited
from traces.ranks.judged import Judged
from traces.sections.run import RunWithout


def replay_without(judged: Judged) -> RunWithout | Missing:
    """Replay the run without the cause. `Missing` where there is no cause, or nothing to replay.

    Replayed with all that was recorded, every time is as recorded.
    """
    if (missing := judged.aligned.clocks.missing) is not None:
        return missing
    if judged.suspicion.cause is Cause.NONE:
        reason = "no rank makes the others late, so there is nothing to take away"
        return gap(reason, "none is needed")
    matched, aligned = judged.together.matched, judged.aligned
    if not len(matched) or not judged.grid.step_count:
        reason = "the ranks share no step with matched collectives, which is what is replayed"
        return gap(reason, "record whole steps of all ranks at the same time")
    chains = chains_of(matched, aligned)
    own_ns, moving_ns = edited(judged, chains)
    hidden_ns = np.maximum(0, chains.moving_ns - moving_ns - matched.exposed_ns)
    own_ns = own_ns + np.where(chains.after == NO_ROW, 0, hidden_ns[chains.after])
    after = replayed(chains, own_ns, moving_ns)
    if (after == NEVER).any():
        reason = "the recorded order of collectives contradicts itself, so the run cannot be replayed"
        return gap(reason, "record NCCL's ranges, or the process groups beside kernels")
    borders = _Borders(judged, chains.ends)
    step_ns, without_ns = borders.step_ns(aligned.end_ns), borders.step_ns(after + hidden_ns)
    saved_frac = 1 - without_ns / step_ns if step_ns else 0.0
    return RunWithout(step_ns, without_ns, min(1.0, max(0.0, saved_frac)))


class _Borders:
    """The first and last border of each rank's steps, as work after a collective of the rank."""

    def __init__(self, judged: Judged, row_ends: Ends) -> None:
        summaries, grid, aligned = judged.together.used, judged.grid, judged.aligned
        fits = aligned.clocks.by_fingerprint()
        placed = np.array([one.identity.clock in fits for one in summaries], dtype=np.bool_)
        every_step = (~np.isnan(grid.length_ns)).all(axis=1)
        whole = np.flatnonzero(every_step & placed)
        self._count = grid.step_count
        place = np.tile(whole, 2)
        some = [summaries[one] for one in whole.tolist()]
        begins = [fits[one.identity.clock].time_of(int(one.steps.start_ns[0])) for one in some]
        ends = [fits[one.identity.clock].time_of(int(one.steps.end_ns[-1])) for one in some]
        time_ns = np.array(begins + ends, dtype=np.int64)
        self._after = row_ends.before(place, time_ns)
        self._own_ns = time_ns - np.where(self._after == NO_ROW, 0, aligned.end_ns[self._after])

    def step_ns(self, end_ns: IntArray) -> int:
        """The mean step of the median rank, where collectives end so."""
        at = np.where(self._after == NO_ROW, 0, end_ns[self._after]) + self._own_ns
        half = len(at) // 2
        return int(np.median(at[half:] - at[:half])) // self._count if half else 0

"""The run without what makes it late: replayed over all ranks, so that everyone who waited moves too.

It is a ceiling of what a repair can win, since only collectives hold the ranks together in it. Of a transfer
that becomes shorter only what was exposed is won: beneath the rest the rank worked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from traces.arrays import BoolArray, FloatArray, IntArray
from traces.limits import Limit
from traces.missing import Missing, gap
from traces.ranks import parts
from traces.ranks.beneath import BESIDE, GRADIENTS
from traces.ranks.borders import Borders
from traces.ranks.chains import BEHIND, NEVER, chains_of, replayed, with_beside
from traces.ranks.ends import NO_ROW
from traces.ranks.group_links import over_nodes
from traces.ranks.late import COST
from traces.ranks.mend import Judged, edited
from traces.ranks.nodes import nodes_of
from traces.ranks.shared_ways import ROUNDS, shares
from traces.ranks.summary import UNKNOWN
from traces.sections.cause import Cause
from traces.sections.run import RunWithout
from traces.spelling import percent

UNMATCHED: Final = Limit(
    0.01,
    "of the collectives",
    "ours: of 12 runs of another simulator the replay of three showed nothing, and these lacked 2 to 5 %; of "
    "the five that lacked none it showed what a repair saves",
)


_SKIPPED: Final[Mapping[Cause, Sequence[int]]] = {
    Cause.PIPELINE_IMBALANCE: (),
    Cause.ROUTING_IMBALANCE: GRADIENTS,
}
"""Kinds that hold nothing up beneath compute where the work of whole layers becomes less, or that of experts:
all others may then.
"""


def replay_without(judged: Judged) -> RunWithout | Missing:
    """Replay the run without the cause. `Missing` where there is no cause, or nothing to replay.

    Replayed with all that was recorded, every time is as recorded.
    """
    if (missing := judged.aligned.clocks.missing) is not None:
        return missing
    if judged.suspicion.cause is Cause.NONE:
        reason = "no rank makes the others late, so there is nothing to take away"
        return gap(reason, "none is needed")
    matched = judged.together.matched
    if not len(matched) or not judged.grid.step_count:
        reason = "the ranks share no step with matched collectives, which is what is replayed"
        return gap(reason, "record whole steps of all ranks at the same time")
    if (skipped := _SKIPPED.get(judged.suspicion.cause)) is not None:
        judged = replace(judged, chains=chains_of(matched, judged.aligned, judged.role, skipped))
    if judged.suspicion.cause is Cause.SLOW_LINK:
        judged = replace(judged, chains=with_beside(judged.chains, matched, judged.aligned))
    free = _begins_alone(judged)
    ways = [np.zeros_like(free), free] if free.any() else [free]
    found = [_lasts(judged, one) for one in ways]
    if None in found:
        reason = "the recorded order of collectives contradicts itself, so the run cannot be replayed"
        return gap(reason, "record NCCL's ranges, or the process groups beside kernels")
    saved_frac, step_ns, without_ns = max(one for one in found if one)  # late beginners only hold up
    unmatched = 1 - len(matched.place) / len(matched.recorded.rows)
    if saved_frac < COST.value and (not step_ns or unmatched >= UNMATCHED.value):
        reason = (
            f"{percent(unmatched)} of the collectives were not matched, and the way of the delay runs there"
        )
        return gap(reason, "record NCCL's ranges, or the process groups beside kernels")
    return RunWithout(step_ns, without_ns, min(1.0, max(0.0, saved_frac)))


def _lasts(judged: Judged, free: BoolArray) -> tuple[float, int, int] | None:
    """What part is saved, and a mean step as recorded and replayed; None where the replay comes to no end."""
    used, grid, aligned, chains = judged.together.used, judged.grid, judged.aligned, judged.chains
    if judged.suspicion.cause is Cause.SLOW_LINK:
        end_ns = _without_slow_link(judged, free)
    else:
        _, end_ns = _ends(judged, edited(judged, chains), free)
    if (end_ns == NEVER).any():
        return None
    borders = Borders(used, grid, aligned, chains, common=bool(free.any()))
    step_ns, without_ns = borders.step_ns(aligned.end_ns), borders.step_ns(end_ns)
    return 1 - without_ns / step_ns if step_ns else 0.0, step_ns, without_ns


def _ends(judged: Judged, without: tuple[IntArray, IntArray], free: BoolArray) -> tuple[IntArray, IntArray]:
    """When each participation ends, and when work that it held up goes on, shape (p,) each.

    `without`: own work and transfers without the cause.
    """
    chains, (own_ns, moving_ns) = judged.chains, without
    less_ns = np.maximum(0, chains.moving_ns - moving_ns)
    if not less_ns.any():
        end_ns = replayed(chains, own_ns, moving_ns, free)
        return end_ns, end_ns
    queued = _queued(judged)
    hidden_ns = _hidden(judged, less_ns, queued)
    own_ns = own_ns + np.where(chains.after == NO_ROW, 0, hidden_ns[chains.after])
    own_ns = np.where(queued, own_ns - np.maximum(0, chains.moving_ns[chains.behind]), own_ns)
    end_ns = replayed(chains, own_ns, moving_ns, free)
    return end_ns, np.where(end_ns == NEVER, NEVER, end_ns + hidden_ns)


def _without_slow_link(judged: Judged, free: BoolArray) -> IntArray:
    """When work goes on then. What moves beside what was slow has its way for itself sooner."""
    matched, chains, end_ns = judged.together.matched, judged.chains, judged.aligned.end_ns
    over = over_nodes(matched, nodes_of(judged.together.used))

    def part_of(end_ns: IntArray, moving_ns: IntArray) -> FloatArray:
        return parts.spread(shares(matched.first, matched.place, end_ns, moving_ns, over), matched.first)

    part = part_of(end_ns, chains.moving_ns)
    alone_ns = np.rint(chains.moving_ns * part).astype(np.int64)
    own_ns, alone_ns = edited(judged, replace(chains, moving_ns=alone_ns))
    for left in reversed(range(ROUNDS if over.any() else 1)):
        moving_ns = np.rint(alone_ns / part).astype(np.int64)
        end_ns, goes_on_ns = _ends(judged, (own_ns, moving_ns), free)
        if not left or (end_ns == NEVER).any():
            break
        part = part_of(end_ns, moving_ns)
    return goes_on_ns


def _queued(judged: Judged) -> BoolArray:
    """Gradients and parameters that waited in their stream, shape (p,): ready while those before moved."""
    matched, chains, aligned = judged.together.matched, judged.chains, judged.aligned
    behind_ns = chains.start_ns - aligned.end_ns[chains.behind]
    result: BoolArray = (chains.behind != NO_ROW) & (behind_ns <= BEHIND.value)
    return result & np.isin(matched.kind, BESIDE)


def _hidden(judged: Judged, less_ns: IntArray, queued: BoolArray) -> IntArray:
    """By how much each participation ends sooner while its rank's compute does not, shape (p,).

    What is queued ends as much sooner as those before it as well, but for what of them was exposed.
    """
    matched, behind = judged.together.matched, judged.chains.behind
    beyond_ns = less_ns - matched.exposed_ns
    order = np.lexsort((judged.chains.start_ns, matched.group[matched.instance], matched.place))
    begins = ~queued[order]
    begins[1:] |= behind[order[1:]] != order[:-1]
    total_ns = np.cumsum(beyond_ns[order])
    run = np.cumsum(begins) - 1
    before_ns = (total_ns - beyond_ns[order])[begins][run]
    far_ns = int(np.abs(total_ns).max(initial=0)) * 2 + 1
    least_ns = np.minimum.accumulate(np.minimum(total_ns, before_ns) - run * far_ns) + run * far_ns
    result = np.empty(len(order), dtype=np.int64)
    result[order] = total_ns - least_ns
    return result


_EARLY: Final = Limit(0.1, "of a step", "ours: like ranks that record one window begin within launches")


def _begins_alone(judged: Judged) -> BoolArray:
    """The first collectives of ranks, shape (p,), where like ranks begin within steps, each elsewhere.

    Without the cause they would have begun with the others, as much later than these as they did.
    """
    matched, grid, chains = judged.together.matched, judged.grid, judged.chains
    first = chains.after == NO_ROW
    within = (grid.later != grid.later[:1]).any() or (matched.step[first] == UNKNOWN).any()
    begin_ns = np.full(len(grid.later), np.nan)
    np.fmin.at(begin_ns, matched.place[first], chains.own_ns[first].astype(np.float64))
    known = [few[~np.isnan(few)] for few in (begin_ns[list(one.places)] for one in judged.alike)]
    spread_ns = [float(np.ptp(few)) for few in known if len(few)]
    apart = within and max(spread_ns, default=0.0) > _EARLY.value * float(np.nanmedian(grid.length_ns))
    return first if apart else np.zeros(len(first), dtype=np.bool_)

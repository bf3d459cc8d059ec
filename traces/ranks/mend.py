"""The run without what makes it late: replayed over all ranks, so that everyone who waited moves too.

It is a ceiling of what a repair can win, since only collectives hold the ranks together in it. Of a transfer
that becomes shorter only what was exposed is won: beneath the rest the rank worked.

What is taken away is the late rank's own excess, read off all tables of the run: its work before a collective
becomes what like ranks usually do there, its transfers as long as those of others.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.columns import BoolArray, FloatArray, IntArray
from traces.groups import group_of
from traces.limits import Limit
from traces.missing import Missing, gap
from traces.ranks import parts
from traces.ranks.chains import NEVER, NO_ROW, Chains, Ends, even_stages, replayed, usual
from traces.ranks.charge import Charged, step_of
from traces.ranks.clocks import Aligned
from traces.ranks.late import COST, Routing, Suspicion
from traces.ranks.pauses import Pauses
from traces.ranks.side_by_side import Alike, Excess, Grid
from traces.ranks.summary import UNKNOWN
from traces.ranks.together import Together
from traces.ranks.waits import EXCHANGES, LASTS, Links, Waits
from traces.sections.cause import Cause
from traces.sections.run import RunWithout
from traces.spelling import percent


@dataclass(frozen=True, slots=True)
class Judged:
    """All figures behind an analysis, for those who ask more of them."""

    together: Together
    aligned: Aligned
    waits: Waits
    grid: Grid
    alike: tuple[Alike, ...]
    factor: FloatArray
    excess: Excess
    links: Links | None
    routing: Routing
    suspicion: Suspicion
    charged: Charged
    pauses: Pauses
    chains: Chains
    role: IntArray
    """Of each participation, shape (p,), as `roles_of` has it."""


BALANCED: Final = Limit(
    1.06, "largest over mean expert work", "ours: what a balancing loss leaves among eight ranks"
)


UNMATCHED: Final = Limit(
    0.01,
    "of the collectives",
    "ours: of 12 runs of another simulator the replay of three showed nothing, and these lacked 2 to 5 %; of "
    "the five that lacked none it showed what a repair saves",
)


def edited(judged: Judged, chains: Chains) -> tuple[IntArray, IntArray]:
    """Own work and transfers of each participation without the cause, shape (p,) each."""
    match judged.suspicion.cause:
        case Cause.SLOW_DEVICE:
            return _at_usual_speed(judged, chains), chains.moving_ns
        case Cause.SLOW_LINK:
            return chains.own_ns, _as_fast(judged, chains)
        case Cause.ROUTING_IMBALANCE:
            return _balanced(judged, chains)
        case Cause.PIPELINE_IMBALANCE:
            return even_stages(judged.together.matched, chains, judged.alike)
        case Cause.ROTATING_JITTER:
            without_ns = chains.own_ns - judged.pauses.pause_ns
            return np.minimum(_with_usual_work(judged, chains), without_ns), chains.moving_ns
        case _:
            return _with_usual_work(judged, chains), chains.moving_ns


def _mine(judged: Judged) -> BoolArray:
    """The participations of the rank that is late, in each step the one that is."""
    matched, suspicion = judged.together.matched, judged.suspicion
    if not suspicion.by_step:
        return np.isin(matched.place, suspicion.places)
    step = step_of(matched, judged.grid)[matched.instance]
    late = np.array([*suspicion.by_step, UNKNOWN], dtype=np.int64)
    return matched.place == late[np.where(step < len(late), step, UNKNOWN)]


def _with_usual_work(judged: Judged, chains: Chains) -> IntArray:
    """The late rank's work before a collective as that of like ranks between the same two."""
    mine, own_ns = _mine(judged), chains.own_ns
    role = judged.role
    between = group_of(role, np.where(chains.after == NO_ROW, UNKNOWN, role[chains.after]))
    middle, known = usual(own_ns, between, ~mine)
    alone_ns = own_ns
    if judged.suspicion.cause is Cause.SLOW_HOST:  # of a stage that is slow as a whole nobody is like it
        matched = judged.together.matched
        host_ns = np.clip(matched.recorded.rows.host_ns[matched.at], 0, own_ns)
        less_ns = np.rint(host_ns * (1 - 1 / judged.suspicion.factor)).astype(np.int64)
        alone_ns = np.where(mine & (chains.after != NO_ROW), own_ns - less_ns, own_ns)
    return np.where(mine & known, np.minimum(own_ns, middle), alone_ns)


def _at_usual_speed(judged: Judged, chains: Chains) -> IntArray:
    """The late rank's work with kernels that are as fast as those of like ranks.

    Those of ranks that wait are no measure: beside communication that waits kernels are slower.
    """
    matched, own_ns = judged.together.matched, chains.own_ns
    mine = _mine(judged) & (matched.compute_ns != UNKNOWN) & (chains.after != NO_ROW)
    compute_ns = np.clip(matched.compute_ns, 0, own_ns)
    less_ns = np.rint(compute_ns * (1 - 1 / judged.suspicion.factor)).astype(np.int64)
    return np.where(mine, own_ns - less_ns, _with_usual_work(judged, chains))


def _as_fast(judged: Judged, chains: Chains) -> IntArray:
    """Transfers with the late rank as long as others of their kind, or shorter by its factor.

    Of a ring all is slower by the factor, and of an exchange that ends at once on all; of another the others'
    by what of their data passes it.
    """
    matched, mine, moving_ns = judged.together.matched, _mine(judged), chains.moving_ns
    passing = parts.most(mine, matched.first) & ~np.isin(matched.group, judged.suspicion.spared)
    touched = parts.spread(passing, matched.first)
    role = judged.role
    middle, known = usual(moving_ns, role, ~touched)
    size = matched.sizes
    exchanges = np.isin(matched.operation, EXCHANGES) & (size > 2) & ~_at_once(moving_ns, matched.first)
    exchanged = exchanges[matched.instance]
    slow = judged.suspicion.factor
    part = np.where(exchanged & ~mine, 1 + (slow - 1) / (size[matched.instance] - 1), slow)
    scaled = np.rint(moving_ns / part).astype(np.int64)
    return np.where(touched, np.where(known, middle, scaled), moving_ns)


def _balanced(judged: Judged, chains: Chains) -> tuple[IntArray, IntArray]:
    """Work before tokens are brought back, and what is moved, as even as a balancing loss makes it."""
    matched, of_experts = judged.together.matched, judged.routing.of_experts
    first = matched.first
    grouped = np.maximum(matched.grouped_ns, 0).astype(np.float64)
    least_ns = parts.least(np.where(chains.after == NO_ROW, 0, matched.grouped_ns), first)
    told = parts.spread(of_experts & (least_ns > 0), first)
    mean = parts.spread(parts.total(grouped, first) / np.diff(first), first)
    most = parts.spread(parts.most(grouped, first), first)
    uneven = np.divide(most, mean, out=np.ones(len(most)), where=mean > 0)
    keeps = np.minimum(1.0, (BALANCED.value - 1) / np.maximum(uneven - 1, 1e-9))
    mean_ns = parts.spread(parts.total(chains.own_ns, first) / np.diff(first), first)
    even_ns = np.rint(mean_ns + (chains.own_ns - mean_ns) * keeps).astype(np.int64)
    moving_ns = np.where(
        parts.spread(of_experts & np.isin(matched.operation, EXCHANGES), first),
        _moved_evenly(judged, chains, told & (chains.after != NO_ROW)),
        chains.moving_ns,
    )
    return np.where(told, even_ns, chains.own_ns), moving_ns


_AT_ONCE: Final = Limit(
    0.05,
    "of the transfer",
    "ours: what ends on all ranks at once ends within a few us; own data apart by more",
)


def _at_once(moving_ns: IntArray, first: IntArray) -> BoolArray:
    """Which transfers, shape (n,), end on all ranks when that of the slowest does."""
    shortest_ns, longest_ns = parts.least(moving_ns, first), parts.most(moving_ns, first)
    return longest_ns - shortest_ns <= np.maximum(LASTS.value, _AT_ONCE.value * longest_ns)


def _moved_evenly(judged: Judged, chains: Chains, told: BoolArray) -> IntArray:
    """Transfers of tokens where all ranks get as many; shape (p,).

    Where each rank ends when its own data is there, the shortest is what all take. Where all end at once, all
    wait for the rank that gets the most, and its part of the bytes is its part of the experts' work.
    """
    matched = judged.together.matched
    first, moving_ns = matched.first, chains.moving_ns
    shortest_ns, at_once = parts.least(moving_ns, first), _at_once(moving_ns, first)
    uneven = _uneven_around(judged, told)
    less = np.where(at_once & (uneven > BALANCED.value), BALANCED.value / np.maximum(uneven, 1.0), 1.0)
    latency_ns = np.clip(shortest_ns, 0, LASTS.value)
    even_ns = np.where(shortest_ns > 0, latency_ns + (shortest_ns - latency_ns) * less, shortest_ns)
    return parts.spread(np.rint(even_ns).astype(np.int64), first)


def _uneven_around(judged: Judged, told: BoolArray) -> FloatArray:
    """Of each instance the fullest rank's experts' work over the mean, of what comes before it, else next.

    Shape (n,); 1 where nothing tells. Tokens come before the work on them and go back after it.
    """
    matched, end_ns = judged.together.matched, judged.aligned.end_ns
    first = matched.first
    grouped = np.maximum(matched.grouped_ns, 0).astype(np.float64)
    mean = parts.total(grouped, first) / np.diff(first)
    of_work = parts.least(told.astype(np.int64), first).astype(np.bool_) & (mean > 0)
    uneven = np.where(of_work, parts.most(grouped, first) / np.maximum(mean, 1.0), 1.0)
    who = group_of(matched.sizes, *(parts.total(matched.place**power, first) for power in (1, 2)))
    order = np.lexsort((parts.least(end_ns, first), who))
    place = np.where(of_work[order], np.arange(len(order)), len(order))
    following = np.minimum.accumulate(place[::-1])[::-1]
    has = following < len(order)
    after = order[np.where(has, following, 0)]
    same = has & (who[after] == who[order])
    result = np.ones(len(order))
    result[order[same]] = uneven[after[same]]
    return result


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
    chains = judged.chains
    own_ns, moving_ns = edited(judged, chains)
    hidden_ns = np.maximum(0, chains.moving_ns - moving_ns - matched.exposed_ns)
    own_ns = own_ns + np.where(chains.after == NO_ROW, 0, hidden_ns[chains.after])
    free = _begins_alone(judged)
    ways = [np.zeros_like(free), free] if free.any() else [free]
    found = [_lasts(judged, own_ns, moving_ns, hidden_ns, one) for one in ways]
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


def _lasts(
    judged: Judged, own_ns: IntArray, moving_ns: IntArray, hidden_ns: IntArray, free: BoolArray
) -> tuple[float, int, int] | None:
    """What part is saved, and a mean step as recorded and replayed; None where the replay comes to no end."""
    after = replayed(judged.chains, own_ns, moving_ns, free)
    if (after == NEVER).any():
        return None
    borders = _Borders(judged, judged.chains.ends, common=bool(free.any()))
    step_ns, without_ns = borders.step_ns(judged.aligned.end_ns), borders.step_ns(after + hidden_ns)
    return 1 - without_ns / step_ns if step_ns else 0.0, step_ns, without_ns


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


class _Borders:
    """The first and last border of each rank's steps, as work after a collective of the rank.

    `common`: of the steps that all ranks recorded, where there are any, and of the ranks that recorded what
    was before.
    """

    def __init__(self, judged: Judged, row_ends: Ends, *, common: bool) -> None:
        summaries, grid, aligned = judged.together.used, judged.grid, judged.aligned
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
        self._after = row_ends.before(place, time_ns)
        self._own_ns = time_ns - np.where(self._after == NO_ROW, 0, aligned.end_ns[self._after])
        self._counts = (end - begin)[whole]
        half = len(whole)
        known = self._after[:half] != NO_ROW
        if common and known.any():
            self._after, self._own_ns = (one[np.tile(known, 2)] for one in (self._after, self._own_ns))
            self._counts = self._counts[known]

    def step_ns(self, end_ns: IntArray) -> int:
        """The mean step of the median rank, where collectives end so."""
        at = np.where(self._after == NO_ROW, 0, end_ns[self._after]) + self._own_ns
        half = len(at) // 2
        return int(np.median((at[half:] - at[:half]) // self._counts)) if half else 0

"""What is taken away with a cause: the late rank's own excess, read off all tables of the run.

Its work before a collective becomes what like ranks usually do there, its transfers as long as others' are.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.arrays import BoolArray, FloatArray, IntArray
from traces.groups import group_of
from traces.limits import Limit
from traces.missing import known
from traces.ranks import parts
from traces.ranks.beneath import THROUGH
from traces.ranks.bubbles import pipeline_of
from traces.ranks.chains import Chains, usual
from traces.ranks.charge import Charged
from traces.ranks.clocks import Aligned
from traces.ranks.ends import NO_ROW, ByTime
from traces.ranks.even_stages import even_stages, microbatches_of_two
from traces.ranks.late import Suspicion
from traces.ranks.routing import Routing
from traces.ranks.side_by_side import Alike, Excess, Grid, device_factors, own_step_of
from traces.ranks.summary import UNKNOWN
from traces.ranks.together import Together
from traces.ranks.waits import EXCHANGES, LASTS, Links, Waits, slowness
from traces.sections.cause import Cause
from traces.sections.run import Pipeline


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
    pause_ns: IntArray
    chains: Chains
    role: IntArray
    """Of each participation, shape (p,), as `roles_of` has it."""


BALANCED: Final = Limit(
    1.06, "largest over mean expert work", "ours: what a balancing loss leaves among eight ranks"
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
            return even_stages(judged.together.matched, chains, judged.alike, _microbatches(judged))
        case Cause.ROTATING_JITTER:
            without_ns = chains.own_ns - judged.pause_ns
            return np.minimum(_with_usual_work(judged, chains), without_ns), chains.moving_ns
        case _:
            return _with_usual_work(judged, chains), chains.moving_ns


def _microbatches(judged: Judged) -> tuple[int, ...]:
    """How many a step may have, as far as messages tell."""
    together, grid = judged.together, judged.grid
    found = pipeline_of(together.used, together.matched, judged.waits, grid)
    one = known(found.microbatches) if isinstance(found, Pipeline) else None
    return (one,) if one else microbatches_of_two(together.matched, own_step_of(together.matched, grid))


def _mine(judged: Judged) -> BoolArray:
    """The participations of the rank that is late, in each step the one that is."""
    matched, suspicion = judged.together.matched, judged.suspicion
    if not suspicion.by_step:
        return np.isin(matched.place, suspicion.places)
    step = judged.charged.step[matched.instance]
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
        less_ns = np.rint(_host_ns(judged, chains) * (1 - 1 / judged.suspicion.factor)).astype(np.int64)
        alone_ns = np.where(mine & (chains.after != NO_ROW), own_ns - less_ns, own_ns)
    elif judged.suspicion.cause is Cause.DATA_LOADER:  # who begins late comes after more than others do
        alone_ns = np.where(mine & (chains.after != NO_ROW), own_ns - _late_start_ns(judged, own_ns), own_ns)
    return np.where(mine & known, np.minimum(own_ns, middle), alone_ns)


def _late_start_ns(judged: Judged, own_ns: IntArray) -> IntArray:
    """By how much like ranks begin their step sooner, of the work that holds the late start; shape (p,)."""
    matched = judged.together.matched
    beyond_ns = np.column_stack((judged.excess.loader_ns, np.zeros(len(judged.grid.later))))
    of_step_ns = np.maximum(np.nan_to_num(beyond_ns), 0)[matched.place, own_step_of(matched, judged.grid)]
    late_ns = matched.recorded.rows.loader_ns[matched.at]
    holds = np.minimum(own_ns, late_ns) >= THROUGH.value * np.maximum(late_ns, of_step_ns)
    return np.where(holds, np.minimum(of_step_ns, own_ns), 0).astype(np.int64)


def _host_ns(judged: Judged, chains: Chains) -> IntArray:
    """How long a rank's GPU had no work since the collective that each comes after, shape (p,).

    That of collectives in between that were not matched is part of it.
    """
    matched, after = judged.together.matched, chains.after
    recorded = matched.recorded
    begun = ByTime(recorded.place, recorded.rows.start_ns)
    until_ns = np.zeros(len(recorded.rows), dtype=np.int64)
    until_ns[begun.rows] = np.cumsum(np.maximum(recorded.rows.host_ns[begun.rows], 0))
    last, before = (begun.before(matched.place, one) for one in (matched.start_ns, matched.end_ns[after]))
    return np.where(after == NO_ROW, 0, np.clip(until_ns[last] - until_ns[before], 0, chains.own_ns))


def _at_usual_speed(judged: Judged, chains: Chains) -> IntArray:
    """The late rank's work with kernels that are as fast as those of like ranks; experts' as other products.

    Those of ranks that wait are no measure: beside communication that waits kernels are slower.
    """
    matched, own_ns, factor = judged.together.matched, chains.own_ns, judged.suspicion.factor
    mine = _mine(judged) & (matched.compute_ns != UNKNOWN) & (chains.after != NO_ROW)
    compute_ns = np.clip(matched.compute_ns, 0, own_ns)
    grouped_ns = np.clip(matched.grouped_ns, 0, compute_ns)
    theirs = [one for one in judged.alike if not {*one.places}.isdisjoint(judged.suspicion.places)]
    products = np.fmax(device_factors(judged.together.used, theirs, products=True), factor)[matched.place]
    less_ns = (compute_ns - grouped_ns) * (1 - 1 / factor) + grouped_ns * (1 - 1 / products)
    less_ns = np.rint(less_ns).astype(np.int64)
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
    slow, behind, others = judged.suspicion.factor, np.ones(len(size), dtype=np.int64), size - 1
    if judged.suspicion.is_nic:
        behind = parts.total(mine.astype(np.int64), matched.first)
        others = size - behind
        told = exchanges & passing & (others > 0)
        seen = np.full(int(told.sum()), slow)
        slow = float(np.median(slowness(seen, size[told], behind[told]))) if told.any() else slow
    passes = np.where(mine, others[matched.instance], behind[matched.instance]) / (size[matched.instance] - 1)
    part = 1 + (slow - 1) * np.where(exchanges[matched.instance], passes, 1.0)
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

"""The chains of a run without what makes it late: what each cause has that goes with it.

What is taken away is the late rank's own excess: its work before a collective becomes what like ranks
usually do there, its transfers as long as those of others.
"""

from typing import Final

import numpy as np

from traces.columns import BoolArray, IntArray
from traces.groups import group_of
from traces.limits import Limit
from traces.ranks import parts
from traces.ranks.cause import Cause
from traces.ranks.chains import NO_ROW, Chains
from traces.ranks.charge import step_of
from traces.ranks.even_stages import even_stages
from traces.ranks.judged import Judged
from traces.ranks.links import EXCHANGES
from traces.ranks.summary import UNKNOWN
from traces.ranks.usual import roles_of, usual

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
            return even_stages(judged.together.matched, chains, judged.alike)
        case _:
            return _with_usual_work(judged, chains), chains.moving_ns


def _mine(judged: Judged) -> BoolArray:
    """The participations of the rank that is late, in each step the one that is."""
    matched, suspicion = judged.together.matched, judged.suspicion
    if not suspicion.by_step:
        of_one: BoolArray = matched.place == suspicion.place
        return of_one
    step = step_of(matched, judged.grid)[matched.instance]
    late = np.array([*suspicion.by_step, UNKNOWN], dtype=np.int64)
    result: BoolArray = matched.place == late[np.where(step < len(late), step, UNKNOWN)]
    return result


def _with_usual_work(judged: Judged, chains: Chains) -> IntArray:
    """The late rank's work before a collective as that of like ranks between the same two."""
    mine, own_ns = _mine(judged), chains.own_ns
    role = roles_of(judged.together.matched, judged.alike, len(judged.together.used))
    head = chains.after == NO_ROW
    between = group_of(role, np.where(head, UNKNOWN, role[chains.after]))
    middle, known = usual(own_ns, between, ~mine)
    return np.where(mine & known, np.minimum(own_ns, middle), own_ns)


def _at_usual_speed(judged: Judged, chains: Chains) -> IntArray:
    """The late rank's work with kernels that are as fast as those of like ranks.

    Those of ranks that wait are no measure: beside communication that waits kernels are slower.
    """
    matched, own_ns = judged.together.matched, chains.own_ns
    computes = matched.compute_ns != UNKNOWN
    mine = _mine(judged) & computes & (chains.after != NO_ROW)
    compute_ns = np.clip(matched.compute_ns, 0, own_ns)
    less_ns = np.rint(compute_ns * (1 - 1 / judged.suspicion.factor)).astype(np.int64)
    return np.where(mine, own_ns - less_ns, _with_usual_work(judged, chains))


def _as_fast(judged: Judged, chains: Chains) -> IntArray:
    """Transfers with the late rank as long as others of their kind, or shorter by its factor.

    Of a ring all is slower by the factor, of an exchange the others' by what of their data passes it.
    """
    matched, mine, moving_ns = judged.together.matched, _mine(judged), chains.moving_ns
    touched = parts.spread(parts.most(mine, matched.first), matched.first)
    role = roles_of(matched, judged.alike, len(judged.together.used))
    middle, known = usual(moving_ns, role, ~touched)
    size = np.diff(matched.first)
    exchanged = (np.isin(matched.operation, EXCHANGES) & (size > 2))[matched.instance]
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
    moved = of_experts & np.isin(matched.operation, EXCHANGES)
    shortest_ns = parts.spread(parts.least(chains.moving_ns, first), first)
    moving_ns = np.where(parts.spread(moved, first), shortest_ns, chains.moving_ns)
    return np.where(told, even_ns, chains.own_ns), moving_ns

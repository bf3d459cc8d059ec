"""Experts that get more tokens than others, so that the ranks that hold the others wait."""

from functools import partial
from typing import Final

import numpy as np

from heuristics.late.beside import Edits, Times
from traces.arrays import BoolArray, FloatArray, IntArray, ints, whole
from traces.groups import group_of, next_at
from traces.limits import Limit
from traces.ranks.matching.match import Matched
from traces.ranks.replay.beneath import GRADIENTS
from traces.ranks.replay.chains import Chains
from traces.ranks.replay.edit import Edit
from traces.ranks.replay.run import MeasuredRun
from traces.ranks.rows import parts
from traces.ranks.rows.ends import NO_ROW
from traces.ranks.waiting.routing import UNEVEN
from traces.ranks.waiting.waits import EXCHANGES, LASTS, ends_at_once
from traces.sections.cause import Cause

BALANCED: Final = Limit(
    1.06,
    "largest over mean expert work",
    "ours: no balancing loss makes all equal; less than this is not worth a change",
)


def propose(run: MeasuredRun) -> Edits:
    routing, steps = run.routing, run.grid.step_count
    if routing.imbalance is None or routing.imbalance < UNEVEN.value:
        return
    cost_ns, edited = np.full(steps, routing.cost_ns / steps), partial(_balanced, run)
    yield Edit(Cause.ROUTING_IMBALANCE, routing.hot, cost_ns, edited, skipped=GRADIENTS)


def _balanced(run: MeasuredRun, chains: Chains) -> Times:
    """Work before tokens are brought back, and what is moved, as even as a balancing loss makes
    it.
    """
    matched, of_experts = run.matched, run.routing.of_experts
    first = matched.first
    least_ns = parts.least(np.where(chains.after == NO_ROW, 0, matched.grouped_ns), first)
    balanced = parts.spread(of_experts & (least_ns > 0), first)
    uneven = parts.spread(_uneven(matched), first)
    keeps = np.minimum(1.0, (BALANCED.value - 1) / np.maximum(uneven - 1, 1e-9))
    mean_ns = parts.spread(parts.total(chains.own_ns, first) / np.diff(first), first)
    even_ns = whole(mean_ns + (chains.own_ns - mean_ns) * keeps)
    moving_ns = np.where(
        parts.spread(of_experts & np.isin(matched.operation, EXCHANGES), first),
        _moved_evenly(run, chains, balanced & (chains.after != NO_ROW)),
        chains.moving_ns,
    )
    return np.where(balanced, even_ns, chains.own_ns), moving_ns


def _uneven(matched: Matched) -> FloatArray:
    """Of each instance the fullest rank's expert work over the mean, shape (n,); 1 without any."""
    first, grouped_ns = matched.first, np.maximum(matched.grouped_ns, 0).astype(np.float64)
    most, mean = parts.most(grouped_ns, first), parts.total(grouped_ns, first) / np.diff(first)
    return parts.over(most, mean, 1.0)


def _moved_evenly(run: MeasuredRun, chains: Chains, of_experts: BoolArray) -> IntArray:
    """Transfers of tokens where all ranks get as many; shape (p,).

    Where each rank ends when its own data is there, the shortest is what all take. Where all end at
    once, all wait for the rank that gets the most, and its part of the bytes is its part of the
    experts' work.
    """
    first, moving_ns = run.matched.first, chains.moving_ns
    shortest_ns, at_once = parts.least(moving_ns, first), ends_at_once(moving_ns, first)
    uneven = _uneven_around(run, of_experts)
    less = np.where(
        at_once & (uneven > BALANCED.value), BALANCED.value / np.maximum(uneven, 1.0), 1.0
    )
    latency_ns = np.clip(shortest_ns, 0, LASTS.value)
    even_ns = np.where(shortest_ns > 0, latency_ns + (shortest_ns - latency_ns) * less, shortest_ns)
    return parts.spread(whole(even_ns), first)


def _uneven_around(run: MeasuredRun, of_experts: BoolArray) -> FloatArray:
    """Of each instance the fullest rank's experts' work over the mean, of what comes before it,
    else next.

    Shape (n,); 1 where nothing tells. Tokens come before the work on them and go back after it.
    """
    matched, end_ns = run.matched, run.aligned.end_ns
    first = matched.first
    of_work = parts.least(ints(of_experts), first).astype(np.bool_)
    of_work &= parts.most(matched.grouped_ns, first) > 0
    uneven = np.where(of_work, _uneven(matched), 1.0)
    who = group_of(matched.sizes, *(parts.total(matched.place**power, first) for power in (1, 2)))
    order = np.lexsort((parts.least(end_ns, first), who))
    following = next_at(of_work[order])[:-1]
    has = following < len(order)
    after = order[np.where(has, following, 0)]
    same = has & (who[after] == who[order])
    result = np.ones(len(order))
    result[order[same]] = uneven[after[same]]
    return result

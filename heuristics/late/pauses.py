"""Pauses of ranks, now here and now there: each is short, and all the ranks of a group wait for
each.

No step need have one rank that stands out, so that they are added up: what a rank did before a
collective beside what like ranks do there, in its group's step. No clock but each rank's own
enters.
"""

from collections.abc import Sequence

import numpy as np

from heuristics.late.beside import (
    STANDS_OUT,
    Edits,
    Times,
    between,
    deviation,
    participations,
    standing_out,
    usual_work,
)
from heuristics.late.device import slowed
from traces.arrays import FOREVER, BoolArray, IntArray, count_from_0, listed, zeros
from traces.groups import group_of
from traces.ranks.replay.chains import Chains, usual
from traces.ranks.replay.edit import Edit
from traces.ranks.replay.run import MeasuredRun
from traces.ranks.rows import parts
from traces.ranks.rows.ends import NO_ROW
from traces.ranks.summaries.summarise import AT_ONCE
from traces.ranks.summaries.summary import UNKNOWN
from traces.sections.cause import Cause

_LIKE = 5
"""Stretches of a kind, from which on their middle is the usual one."""
_OFTEN = 3
"""Stretches of a rank, from which on it is told that they are equally long."""


def propose(run: MeasuredRun, without: Sequence[int]) -> Edits:
    """All pauses, and in each step the work of the rank that stands out; `without` those of some
    places.
    """
    count, steps = run.grid.length_ns.shape
    matched = run.matched
    pause_ns = np.where(np.isin(matched.place, without), 0, pauses_of(run))
    inside = parts.spread(run.step != UNKNOWN, matched.first)
    cell = parts.spread(run.step, matched.first)[inside] * count + matched.place[inside]
    paused_ns = parts.sums(pause_ns[inside], cell, steps * count).reshape(steps, count)
    late, late_ns = _in_turn(run, without)
    by_step = listed(np.where(late_ns > 0, late, UNKNOWN)) if late_ns.any() else ()
    if not pause_ns.any() and not late_ns.any():
        return
    mine = participations(run, (), by_step)

    def edited(chains: Chains) -> Times:
        own_ns = np.minimum(chains.own_ns - pause_ns, usual_work(run, chains, mine))
        return own_ns, chains.moving_ns

    cost_ns = np.maximum(paused_ns.max(axis=1), late_ns)
    yield Edit(Cause.ROTATING_JITTER, (), cost_ns, edited, by_step, ordinary=True)


def _in_turn(run: MeasuredRun, without: Sequence[int]) -> Times:
    """In each step the rank that stands out the most, by its host or its kernels, and by how much;
    else 0.
    """
    excess = run.excess
    known_ns = ~np.isnan(excess.dense_ns)
    dense_ns, host_ns = standing_out(run, excess.dense_ns), standing_out(run, excess.by_host_ns)
    table = np.where(known_ns, np.maximum(dense_ns, slowed(run)) + host_ns, 0.0)
    table[list(without)] = 0.0
    return table.argmax(axis=0), table.max(axis=0)


def pauses_of(run: MeasuredRun) -> IntArray:
    """What each participation's rank paused before it, shape (p,), mostly 0.

    What all like ranks do longer in a step is no pause, and what a rank does equally long in all is
    none. More work of experts is more tokens: left out.
    """
    matched, chains = run.matched, run.chains
    has = chains.after != NO_ROW
    if not has.any():
        return zeros(len(matched.place))
    alone = has & (chains.after == chains.behind)
    own_ns = chains.own_ns - np.where(alone, np.maximum(matched.grouped_ns, 0), 0)
    kind = between(run, chains)
    middle_ns, known = usual(own_ns, kind, has)
    of_kind = np.bincount(kind[has], minlength=count_from_0(kind))[kind]
    comparable = has & known & (of_kind >= _LIKE)
    least_ns, _, _ = _extremes(own_ns[has], group_of(kind, run.step[matched.instance]), has)
    mine_ns, most_ns, count = _extremes(own_ns[has], group_of(kind, matched.place), has)
    steady = (count >= _OFTEN) & (most_ns - mine_ns < AT_ONCE.value)
    always_ns = np.where(steady, np.maximum(least_ns, mine_ns), least_ns)
    beyond_ns = np.where(comparable, own_ns - np.maximum(middle_ns, always_ns), 0)
    scatter_ns = deviation(beyond_ns[comparable].astype(np.float64)) if comparable.any() else 0.0
    least = max(AT_ONCE.value, STANDS_OUT.value * scatter_ns)
    return np.where(beyond_ns >= least, beyond_ns, 0)


def _extremes(
    own_ns: IntArray, part: IntArray, has: BoolArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Of each row the least and the most of its part, and how many it has: of rows that have one
    before.
    """
    size = count_from_0(part)
    least_ns, most_ns = np.full(size, FOREVER), zeros(size)
    np.minimum.at(least_ns, part[has], own_ns)
    np.maximum.at(most_ns, part[has], own_ns)
    return least_ns[part], most_ns[part], np.bincount(part[has], minlength=size)[part]

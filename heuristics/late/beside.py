"""Late ranks beside those like them: which stand apart, and what they would do as the others do."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from traces.arrays import BoolArray, FloatArray, IntArray, ints, listed, order_of, unknown
from traces.groups import group_of
from traces.limits import Limit
from traces.ranks.replay.chains import Chains, usual
from traces.ranks.replay.edit import Edit
from traces.ranks.replay.run import MeasuredRun
from traces.ranks.rows.ends import NO_ROW
from traces.ranks.summaries.summary import UNKNOWN

Places = tuple[int, ...]
"""Ranks by their place in the run, in order; by step: the one of each, or none."""
Times = tuple[IntArray, IntArray]
"""What a change makes of the own and the moving times of every participation."""

Edits = Iterator[Edit]

COST: Final = Limit(0.01, "fraction of the step", "ours: nobody changes a machine for less")
STANDS_OUT: Final = Limit(
    5.0,
    "scaled median deviations",
    "statistics: of a million values of a normal distribution less than one lies as far out",
)
_SCALED: Final = 1.4826
"""Median deviation -> standard deviation of a normal distribution."""


def apart(cost_ns: FloatArray, where_unknown: float = 0.0) -> Places:
    """The ranks that cost far more than all others: one, or up to half of them, as a host or a
    switch makes.

    The others, told from them by the widest gap, scatter by so little that none of these is among
    them by chance.
    """
    known = np.nan_to_num(cost_ns, nan=where_unknown)
    order = order_of(known)
    ordered, half = known[order], len(order) - len(order) // 2
    if len(order) < 2:
        return ()
    begins = half + int(np.argmax(np.diff(ordered)[half - 1 :]))
    few, many = order[begins:], ordered[:begins]
    if ordered[begins] <= max(0.0, float(np.median(many)) + STANDS_OUT.value * deviation(many)):
        return ()
    return tuple(sorted(few.tolist()))


def deviation(values: FloatArray) -> float:
    """The standard deviation of most of them, whatever the others are."""
    known = values[~np.isnan(values)]
    if len(known):
        return _SCALED * float(np.median(np.abs(known - np.median(known))))
    return 0.0


def standing_out(run: MeasuredRun, table: FloatArray) -> FloatArray:
    """What stands out of a table of excess, shape (ranks, steps), and is worth to be said; 0
    elsewhere.
    """
    known = np.nan_to_num(table)
    least_ns = max(COST.value * run.step_ns, STANDS_OUT.value * deviation(table))
    return np.where(known >= least_ns, known, 0.0)


def least_of(table: FloatArray, places: Places) -> FloatArray:
    """The least of these ranks in each step, shape (steps,), NaN where none is known.

    Several are late for one reason where they are so together.
    """
    rows = table[list(places)]
    known = ~np.isnan(rows).all(axis=0)
    result = unknown(table.shape[1])
    result[known] = np.nanmin(rows[:, known], axis=0)
    return result


def in_some_steps(run: MeasuredRun, table: FloatArray, places: Places, least: int) -> Places:
    """Of each step the one rank where it stands out, in `least` or more, not in all; else none."""
    if len(places) != 1:
        return ()
    late = standing_out(run, table)[places[0]] > 0
    if late.all() or late.sum() < least:
        return ()
    return listed(np.where(late, places[0], UNKNOWN))


def is_node(run: MeasuredRun, places: Places) -> bool:
    """Whether these are all ranks of a node, of which there are several."""
    if len(places) < 2:
        return False
    node = run.nodes == run.nodes[places[0]]
    return bool(not node.all() and (node == np.isin(np.arange(len(node)), places)).all())


def participations(run: MeasuredRun, places: Places, by_step: Places = ()) -> BoolArray:
    """Those of the ranks that are late, in each step of the one that is; shape (p,)."""
    matched = run.matched
    if not by_step:
        return np.isin(matched.place, places)
    step = run.step[matched.instance]
    late = ints([*by_step, UNKNOWN])
    return np.equal(matched.place, late[np.where(step < len(late), step, UNKNOWN)])


def usual_work(run: MeasuredRun, chains: Chains, mine: BoolArray) -> IntArray:
    """The work before each collective, shape (p,), that of `mine` at most as like ranks' between
    the two.
    """
    middle, known = usual(chains.own_ns, between(run, chains), ~mine)
    return np.where(mine & known, np.minimum(chains.own_ns, middle), chains.own_ns)


def beyond_usual(run: MeasuredRun, chains: Chains, values: IntArray, mine: BoolArray) -> IntArray:
    """By how much the values of `mine` are above those of like ranks between the same two
    collectives.

    0 for the others, and for what comes after nothing. Where nobody is like a rank, its values.
    """
    middle, known = usual(values, between(run, chains), ~mine)
    beyond = np.maximum(values - np.where(known, middle, 0), 0)
    return np.where(mine & (chains.after != NO_ROW), beyond, 0)


def between(run: MeasuredRun, chains: Chains) -> IntArray:
    """A number of each participation, the same for like ranks' work between the same two
    collectives.
    """
    return group_of(run.role, np.where(chains.after == NO_ROW, UNKNOWN, run.role[chains.after]))

"""Hosts that launch late: their GPUs have no work where those of like ranks have."""

from typing import Final

import numpy as np

from heuristics.late.beside import (
    Edits,
    Places,
    Times,
    apart,
    beyond_usual,
    in_some_steps,
    is_node,
    least_of,
    participations,
    usual_work,
)
from traces.arrays import FloatArray, IntArray, listed, zeros
from traces.ranks.replay.chains import Chains
from traces.ranks.replay.edit import Edit
from traces.ranks.replay.run import MeasuredRun
from traces.ranks.rows.ends import NO_ROW, ByTime
from traces.ranks.waiting.side_by_side import Alike, LikeGroups, excess, means, middles, ratio
from traces.sections.cause import Cause

_PAIR: Final = 2
"""Hosts of which the slower is no slow one: how much such hosts differ is not known."""


def propose(run: MeasuredRun) -> Edits:
    """Ranks beside like ones, always or in some steps; and nodes beside all, by the time between
    launches.
    """
    table = run.excess.by_host_ns
    slow: Places = ()
    if len(table) > _PAIR:
        slow = _slow_in_each(run, run.alike)
    if places := apart(means(table)):
        yield _edit(run, places, table, slow)
        if by_step := in_some_steps(run, table, places, 2):
            yield _edit(run, places, table, slow, by_step)
    every = (Alike(run.alike[0].fingerprint, tuple(range(len(run.nodes)))),)
    slow = _slow_in_each(run, every)
    if is_node(run, slow):
        table = excess(run.grid.host_ns, every)
        # together they are one host
        yield _edit(run, slow, np.broadcast_to(middles(table[list(slow)].T), table.shape), slow)


def _slow_in_each(run: MeasuredRun, groups: LikeGroups) -> Places:
    """The ranks that the time between launches tells from others in every step that they have."""
    paces = ratio(run.grid.pace_ns, groups)
    is_known, slow = ~np.isnan(paces), np.isnan(paces)
    for step, pace in enumerate(paces.T):
        slow[list(apart(pace, 1.0)), step] = True
    return listed(np.flatnonzero(is_known.any(axis=1) & slow.all(axis=1)))


def _edit(
    run: MeasuredRun,
    places: Places,
    table: FloatArray,
    slow: Places,
    by_step: Places = (),
) -> Edit:
    """What its GPU had no work; a host that launches `slow` is late with all of its own work."""
    mine = participations(run, places, by_step)
    told = set(places) <= set(slow)

    def edited(chains: Chains) -> Times:
        own_ns = chains.own_ns - beyond_usual(run, chains, _host_ns(run, chains), mine)
        if told:
            own_ns = np.minimum(own_ns, usual_work(run, chains, mine))
        return own_ns, chains.moving_ns

    return Edit(
        Cause.SLOW_HOST,
        places,
        least_of(table, places),
        edited,
        by_step,
        ordinary=bool(by_step),
        told=told,
    )


def _host_ns(run: MeasuredRun, chains: Chains) -> IntArray:
    """How long a rank's GPU had no work since the collective that each comes after, shape (p,).

    That of collectives in between that were not matched is part of it.
    """
    matched, after = run.matched, chains.after
    recorded = matched.recorded
    begun = ByTime(recorded.place, recorded.rows.start_ns)
    until_ns = zeros(len(recorded.rows))
    until_ns[begun.rows] = np.cumsum(np.maximum(recorded.rows.host_ns[begun.rows], 0))
    last = begun.before(matched.place, matched.start_ns)
    before = begun.before(matched.place, matched.end_ns[after])
    spent_ns = np.clip(until_ns[last] - until_ns[before], 0, chains.own_ns)
    return np.where(after == NO_ROW, 0, spent_ns)

"""Ranks that begin their steps late, as where a host waits for a batch."""

import numpy as np

from heuristics.late.beside import (
    Edits,
    Places,
    Times,
    apart,
    in_some_steps,
    least_of,
    participations,
    usual_work,
)
from traces.arrays import IntArray, ints
from traces.ranks.replay.beneath import THROUGH
from traces.ranks.replay.chains import Chains
from traces.ranks.replay.edit import Edit
from traces.ranks.replay.run import MeasuredRun
from traces.ranks.rows.ends import NO_ROW
from traces.ranks.waiting.side_by_side import means, own_step_of
from traces.sections.cause import Cause


def propose(run: MeasuredRun) -> Edits:
    table = run.excess.loader_ns
    places = apart(means(table))
    if not places:
        return
    yield _edit(run, places)
    if by_step := in_some_steps(run, table, places, 1):
        yield _edit(run, places, by_step)


def _edit(run: MeasuredRun, places: Places, by_step: Places = ()) -> Edit:
    mine = participations(run, places, by_step)

    def edited(chains: Chains) -> Times:
        first = chains.after == NO_ROW
        sooner_ns = chains.own_ns - np.where(mine, _late_start_ns(run, chains.own_ns), 0)
        return np.where(first, usual_work(run, chains, mine), sooner_ns), chains.moving_ns

    return Edit(Cause.DATA_LOADER, places, least_of(run.excess.loader_ns, places), edited, by_step)


def _late_start_ns(run: MeasuredRun, own_ns: IntArray) -> IntArray:
    """By how much like ranks begin their step sooner, of the work that holds the late start; shape
    (p,).
    """
    matched = run.matched
    beyond_ns = np.column_stack((run.excess.loader_ns, np.zeros(len(run.grid.later))))
    of_step_ns = np.maximum(np.nan_to_num(beyond_ns), 0)[
        matched.place, own_step_of(matched, run.grid)
    ]
    late_ns = matched.recorded.rows.loader_ns[matched.at]
    holds = np.minimum(own_ns, late_ns) >= THROUGH.value * np.maximum(late_ns, of_step_ns)
    return ints(np.where(holds, np.minimum(of_step_ns, own_ns), 0))

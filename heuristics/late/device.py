"""GPUs that are slow: always, in some of the steps, or all of a node."""

import numpy as np

from heuristics.late.beside import (
    Edits,
    Places,
    Times,
    apart,
    is_node,
    least_of,
    participations,
    standing_out,
    usual_work,
)
from traces.arrays import FloatArray, listed, unknown, whole
from traces.ranks.replay.chains import Chains
from traces.ranks.replay.edit import Edit
from traces.ranks.replay.run import MeasuredRun
from traces.ranks.rows.ends import NO_ROW
from traces.ranks.summaries.summary import UNKNOWN
from traces.ranks.waiting.side_by_side import Alike, device_factors, means, times_usual
from traces.sections.cause import Cause


def propose(run: MeasuredRun) -> Edits:
    yield from _always(run)
    yield from _in_some_steps(run)


def _always(run: MeasuredRun) -> Edits:
    """By the kernels of like ranks, whose steps then take as much longer; by those of all ranks
    where there are nodes: one may be a stage.
    """
    longer_ns = run.excess.dense_ns + run.excess.grouped_ns
    for factor, most_ns in ((run.factor, longer_ns), (across(run), np.inf)):
        known = np.nan_to_num(factor, nan=1.0)
        table = run.grid.compute_ns * (1 - 1 / known)[:, np.newaxis]
        places = apart(means(table))
        if places and (known[list(places)] > 1).all():
            cost_ns = least_of(np.where(np.isnan(table), np.nan, np.fmin(table, most_ns)), places)
            yield _edit(run, places, cost_ns, float(known[list(places)].mean()))


def across(run: MeasuredRun) -> FloatArray:
    """How many times as long kernels of a node or of a stage take as those of all ranks; NaN where
    that is none.
    """
    count = len(run.together.used)
    factor = unknown(count)
    if len(run.alike) > 1:
        every = Alike(run.alike[0].fingerprint, tuple(range(count)))
        beside_all = device_factors(run.together.used, (every,))
        slow = apart(beside_all, 1.0)
        if is_node(run, slow) or slow in [like.places for like in run.alike]:
            return beside_all
    return factor


def slowed(run: MeasuredRun) -> FloatArray:
    """What a GPU took longer in a step where all that it did took so much longer, experts' work as
    well.

    Shape (ranks, steps), 0 elsewhere: a stop makes one kernel of many longer, and more tokens some
    of them.
    """
    excess = run.excess
    grouped_ns = np.nan_to_num(run.grid.grouped_ns)
    dense = times_usual(run.grid.compute_ns - grouped_ns, excess.dense_ns)
    grouped = times_usual(grouped_ns, excess.grouped_ns)
    as_slow = (grouped >= 1 + (dense - 1) / 2) & (grouped <= 1 + (dense - 1) * 4)
    slow = (standing_out(run, excess.dense_ns) > 0) & (dense > 1) & (as_slow | (grouped_ns <= 0))
    return np.where(slow, np.nan_to_num(excess.dense_ns) + np.nan_to_num(excess.grouped_ns), 0.0)


def _in_some_steps(run: MeasuredRun) -> Edits:
    """One GPU that is slow in some of the steps: its clock falls under heat or a limit of power."""
    slowed_ns = slowed(run)
    by_rank = slowed_ns.sum(axis=1)
    place = int(by_rank.argmax())
    mine, took_ns = slowed_ns[place] > 0, by_rank[place]
    if not mine.any() or mine.all() or took_ns * 2 <= by_rank.sum():
        return
    whole_ns = run.grid.compute_ns[place, mine].sum()
    by_step = listed(np.where(mine, place, UNKNOWN))
    yield _edit(run, (place,), slowed_ns[place], float(whole_ns / (whole_ns - took_ns)), by_step)


def _edit(
    run: MeasuredRun,
    places: Places,
    cost_ns: FloatArray,
    factor: float,
    by_step: Places = (),
) -> Edit:
    """The late rank's work with kernels that are as fast as those of like ranks; experts' as other
    products.

    Those of ranks that wait are no measure: beside communication that waits kernels are slower.
    """
    matched, all_mine = run.matched, participations(run, places, by_step)
    theirs = [like for like in run.alike if not {*like.places}.isdisjoint(places)]
    of_each = np.fmax(device_factors(run.together.used, theirs, products=True), factor)
    products = of_each[matched.place]

    def edited(chains: Chains) -> Times:
        own_ns = chains.own_ns
        mine = all_mine & (matched.compute_ns != UNKNOWN) & (chains.after != NO_ROW)
        compute_ns = np.clip(matched.compute_ns, 0, own_ns)
        grouped_ns = np.clip(matched.grouped_ns, 0, compute_ns)
        less_ns = (compute_ns - grouped_ns) * (1 - 1 / factor) + grouped_ns * (1 - 1 / products)
        faster_ns = own_ns - whole(less_ns)
        return np.where(mine, faster_ns, usual_work(run, chains, all_mine)), chains.moving_ns

    return Edit(Cause.SLOW_DEVICE, places, cost_ns, edited, by_step)

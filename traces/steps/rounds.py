"""Steps from what the host reads: where nothing else shows them, what was launched from one read of
results to the next, as a token is sampled or a residual is tested.
"""

from statistics import median_low

import numpy as np

from traces.arrays import BoolArray, FloatArray, IntArray, sums_before, zeros
from traces.groups import first_of, group_of
from traces.limits import ENOUGH, FEWEST, MOST, NEARLY_ALL
from traces.steps.borders import HostOrder
from traces.steps.found import Found
from traces.steps.period import Periods, as_steps, layered_of, matching_lags, sequences_of
from traces.timeline import Activities, RankTimeline, Source
from traces.training import Roles


def round_steps(rank: RankTimeline, order: HostOrder, roles: Roles) -> Found | None:
    """Rounds most of which launch the same kernels, each from one read to the next; of reads with
    no kernel between them the last counts. None where there are no such rounds, and where they may
    be layers, of which each reads how many tokens its experts get.
    """
    if (roles.backward | roles.optimizer).any():
        return None
    rows = rank.activities.take(order.places)
    launched = ~rows.is_transfer
    reads = _reads(rows, launched)
    ends = _turns(rank, order, launched, reads)
    borders = np.append(0, ends)
    first, counts = borders[:-1], np.diff(sums_before(launched)[borders])
    if not len(counts):
        return None
    lag = int(median_low(counts))
    model = int(np.argmax(counts == lag))
    usual = np.arange(first[model], ends[model])
    layered = layered_of(rank, roles)[order.places[usual]]
    if len(ends) == len(reads) and _may_be_layer(rows.take(usual), layered):
        return None
    alike = _alike(rows.name, launched, ends, model)
    used = int((alike >= NEARLY_ALL.value).sum())
    # what most of them are not like is how nothing goes
    if used <= MOST.value * len(counts) or used * lag < ENOUGH.value or used < FEWEST.value:
        return None
    borders_ns = np.append(order.launch_ns, order.launch_ns[-1] + 1)
    why = "from one read of results by the host to the next"
    rounds = Periods(lag, why, borders_ns[first], borders_ns[ends], counts, alike)
    return as_steps(rounds, order, f"{lag} kernels, {why}")


def _reads(rows: Activities, launched: BoolArray) -> IntArray:
    """Where each round ends, shape (rounds,), with a kernel in each."""
    reads, kernels = np.flatnonzero(rows.copies("memcpy_d2h")) + 1, sums_before(launched)
    ends = reads[np.diff(kernels[reads], append=kernels[-1] + 1) > 0]  # the last before a kernel
    return ends[np.diff(kernels[np.append(0, ends)]) > 0]


def _turns(rank: RankTimeline, order: HostOrder, launched: BoolArray, ends: IntArray) -> IntArray:
    """The ends of rounds; where the host reads several results in each, by kernels and grids that
    take turns, the last of them.
    """
    if not len(ends):
        return ends
    within = np.flatnonzero(launched[: ends[-1]])
    code = sequences_of(rank, order.places[within])[0].codes
    drawn = np.random.default_rng(0).standard_normal(int(code.max()) + 1)[code]
    held = np.bincount(np.searchsorted(ends, within, "right"), drawn)  # equal for equal work
    match, lags = matching_lags(group_of(np.rint(held * 1e6).astype(np.int64)), 1, len(ends) // 2)
    if not len(lags) or match[0] < NEARLY_ALL.value:
        return ends
    return ends[lags[0] - 1 :: lags[0]]


def _may_be_layer(rows: Activities, layered: BoolArray) -> bool:
    """Whether a round has kernels of a layer, not as part of a graph, and nothing repeats in it."""
    if not layered.any() or (rows.source == Source.REPLAY).any():
        return False
    names = group_of(rows.name[rows.source == Source.KERNEL])
    inner, _ = matching_lags(names, 2, len(names) // 2)
    return not (inner >= MOST.value).any()


def _alike(names: IntArray, launched: BoolArray, ends: IntArray, model: int) -> FloatArray:
    """How much of each round the model has as well, shape (rounds,)."""
    within = launched & (np.arange(len(names)) < ends[-1])
    number = np.searchsorted(ends, np.flatnonzero(within), "right")
    name = group_of(names[within])
    pair = group_of(number, name)
    rows, often = first_of(pair), np.bincount(pair)
    usual = zeros(int(name.max()) + 1)
    mine = number[rows] == model
    usual[name[rows[mine]]] = often[mine]
    shared = np.bincount(number[rows], np.minimum(often, usual[name[rows]]), len(ends))
    return shared / np.maximum(np.bincount(number), usual.sum())

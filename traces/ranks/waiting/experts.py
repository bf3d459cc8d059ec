"""Where the work of experts is uneven: by MoE layer and step, and whether it is always the same
rank.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from traces.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    Rows,
    codes_of,
    count_from_0,
    distinct,
    listed,
    order_of,
)
from traces.frozen import frozen
from traces.groups import group_of, places_of_each
from traces.missing import Missing, gap
from traces.ranks.matching.match import Matched
from traces.ranks.rows import parts
from traces.ranks.summaries.summary import (
    UNKNOWN,
    ExpertWork,
    Summaries,
    kinds_of,
    places_of,
)
from traces.ranks.waiting.routing import HOT, UNEVEN, Routing
from traces.ranks.waiting.side_by_side import Grid
from traces.resolve.resolution import PAYLOAD_KINDS
from traces.sections.cause import HotRank
from traces.sections.run import ExpertGroups, LayerOfExperts, WorstOfExperts

_LAYERS: Final = 64
"""Layers that are listed, the most uneven ones."""
_CURE: Final = "record whole steps of all ranks that exchange tokens"


@frozen
class _ExpertCells(Rows):
    """Work of all ranks of a group in one layer and step, shape (c,): cells that every rank
    recorded.

    The largest and the mean, a slow GPU's slowness taken out, and whose the largest is.
    """

    group: IntArray
    layer: IntArray
    step: IntArray
    most: FloatArray
    mean: FloatArray
    place: IntArray

    @property
    def above(self) -> FloatArray:
        return self.most - self.mean


def experts_of(
    summaries: Summaries,
    matched: Matched,
    grid: Grid,
    routing: Routing,
    factor: FloatArray,
) -> ExpertGroups | Missing | None:
    """Compare expert work layer by layer; None without experts, `Missing` where no layers are
    known.

    `imbalance`: largest over mean in a median step; hot is the rank with most of what is above the
    mean. `worst`: the layer and step in which a rank has the most beyond the mean, `above_ns`.
    `pattern` is that of the group that loses most.
    """
    if not any(summary.fingerprint.has_experts for summary in summaries):
        return None
    tables = [summary.experts for summary in summaries]
    if not any(map(len, tables)):
        return gap("of no rank is it known to which MoE layer its experts' GEMMs belong", _CURE)
    exchanges = np.isin(matched.kinds, kinds_of(*PAYLOAD_KINDS))
    exchanges |= routing.of_experts
    label = _groups(matched, exchanges)
    cells = _cells(tables, grid, label, factor)
    if not len(cells):
        return gap("no layer and step was recorded by all ranks that exchange tokens", _CURE)
    by_label = dict(places_of_each(label))
    by_label.pop(UNKNOWN, None)
    of_label = codes_of(by_label)
    worst = int(np.argmax(cells.above))
    by_layer = sorted(_by_layer(cells, of_label), key=lambda layer: -layer.imbalance)[:_LAYERS]
    return ExpertGroups(
        tuple(map(listed, by_label.values())),
        len(distinct(cells.layer)),
        tuple(sorted(by_layer, key=lambda layer: (layer.expert_group, layer.layer))),
        WorstOfExperts(
            of_label[int(cells.group[worst])],
            int(cells.layer[worst]),
            int(cells.step[worst]),
            int(cells.place[worst]),
            float(cells.most[worst] / cells.mean[worst]),
            round(float(cells.above[worst])),
        ),
        _pattern(cells),
    )


def _groups(matched: Matched, exchanges: BoolArray) -> IntArray:
    """A number for each place, the same for those that exchange tokens with each other, else
    `UNKNOWN`.

    It is the set of ranks that a rank meets most often: where only order matches exchanges, some
    are wrong.
    """
    label = np.full(matched.ranks, UNKNOWN)
    first, size = matched.first, matched.sizes
    place = matched.place
    ends = parts.least(place, first), parts.most(place, first)
    kind = np.stack((size, *ends, parts.total(place, first), parts.total(place**2, first)))
    kinds, number = np.unique(kind[:, exchanges], axis=1, return_inverse=True)
    rows = np.flatnonzero(exchanges[matched.instance])
    met = np.stack((place[rows], np.repeat(number.reshape(-1), size[exchanges])))
    pairs, times = np.unique(met, axis=1, return_counts=True)
    order = order_of(times)
    label[pairs[0][order]] = pairs[1][order]  # rising: the most often stays
    has = np.bincount(label[label != UNKNOWN], minlength=kinds.shape[1])
    return np.where(np.append(has == kinds[0], False)[label], label, UNKNOWN)


def _cells(
    tables: Sequence[ExpertWork], grid: Grid, label: IntArray, factor: FloatArray
) -> _ExpertCells:
    place, rows = places_of(tables), ExpertWork.joined(*tables)
    slow = np.where(np.isnan(factor), 1.0, factor)
    step = rows.step + grid.later[place]
    order = np.lexsort((place, step, rows.layer, label[place]))
    place, step, layer = place[order], step[order], rows.layer[order]
    work = rows.work_ns[order] / slow[place]
    group = label[place]
    first = parts.begins_of(group, layer, step)
    head = first[:-1]
    mean = parts.mean(work, first)
    most = parts.most(work, first)
    top = place[parts.first_most(work, first)]
    size = np.append(np.bincount(label[label != UNKNOWN]), 0)
    whole = (np.diff(first) == size[group[head]]) & (mean > 0)
    return _ExpertCells(group[head], layer[head], step[head], most, mean, top).take(whole)


def _by_layer(cells: _ExpertCells, of_label: dict[int, int]) -> list[LayerOfExperts]:
    result = []
    for group, layer in np.unique(np.stack((cells.group, cells.layer)), axis=1).T.tolist():
        mine = (cells.group == group) & (cells.layer == layer)
        imbalance = float(np.median(cells.most[mine] / cells.mean[mine]))
        at = distinct(cells.place[mine])  # where all work alike, one of the group all the same
        most = np.bincount(cells.place[mine], weights=cells.above[mine])[at]
        result.append(LayerOfExperts(of_label[group], layer, imbalance, int(at[np.argmax(most)])))
    return result


def _pattern(cells: _ExpertCells) -> HotRank | Missing:
    """Whether most of what the largest are above the mean is one rank's, or one rank's in each
    layer.
    """
    mine = cells.group == int(np.argmax(np.bincount(cells.group, weights=cells.above)))
    above, mean = cells.above[mine], cells.mean[mine]
    if 1 + above.sum() / mean.sum() < UNEVEN.value:
        return HotRank.EVEN
    enough = HOT.value * above.sum()
    if np.bincount(cells.place[mine], weights=above).max() >= enough:
        return HotRank.SAME_RANK
    if len(distinct(cells.step[mine])) < 2:
        return gap(
            "one step does not show whether it changes from step to step", "record several steps"
        )
    layer, place = group_of(cells.layer[mine]), cells.place[mine]
    ranks = count_from_0(place)
    shape = count_from_0(layer), ranks
    of_each = parts.sums(above, layer * ranks + place, shape[0] * ranks).reshape(shape)
    if of_each.max(axis=1).sum() >= enough:
        return HotRank.BY_LAYER
    return HotRank.BY_STEP

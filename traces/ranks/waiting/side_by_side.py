"""Ranks side by side: which do the same work, their steps as one grid, and how much one exceeds the
others.

Only like is compared with like: a rank's own time in a step, by what it is spent on, and how long
its kernels take, always and step by step.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from traces.arrays import FloatArray, IntArray, distinct, ints, none_of, sums_before, unknown, zeros
from traces.frozen import frozen
from traces.limits import Limit
from traces.missing import gap
from traces.names.kernels import compute_classes
from traces.ranks.matching.match import Matched
from traces.ranks.rows import parts
from traces.ranks.summaries.summary import (
    UNKNOWN,
    Fingerprint,
    KernelTimes,
    StepParts,
    Summaries,
    places_of,
)

NO_STEPS: Final = gap("the ranks share no step", "record whole steps of all ranks at the same time")


@frozen
class Alike:
    """Ranks of one fingerprint: `places` of their summaries, in order."""

    fingerprint: Fingerprint
    places: tuple[int, ...]

    @property
    def layers(self) -> int:
        """What tells how many layers they have: kernels of attention in a step, else of routers."""
        return self.fingerprint.attention or self.fingerprint.routers


LikeGroups = Sequence[Alike]
"""Groups of like ranks."""


def groups_alike(summaries: Summaries) -> tuple[Alike, ...]:
    """The ranks by fingerprint, in the order in which each comes first."""
    places: dict[Fingerprint, list[int]] = {}
    for place, summary in enumerate(summaries):
        places.setdefault(summary.fingerprint, []).append(place)
    return tuple(Alike(fingerprint, tuple(several)) for fingerprint, several in places.items())


def numbers_of(groups: LikeGroups, count: int) -> IntArray:
    """The group of each place, shape (count,)."""
    number = zeros(count)
    for group, alike in enumerate(groups):
        number[list(alike.places)] = group
    return number


def excess(values: FloatArray, groups: LikeGroups) -> FloatArray:
    """How much each rank's values, shape (ranks, ...), lie above the median of the other ranks like
    it.

    NaN where a value is, or where no other rank is like it.
    """
    return _within(values, groups, lambda several: several - _median_of_others(several))


def ratio(values: FloatArray, groups: LikeGroups) -> FloatArray:
    """Each rank's values over the median of the other ranks like it; NaN where there is none."""
    return _within(values, groups, over_others)


def _within(
    values: FloatArray, groups: LikeGroups, beside: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    result = unknown(values.shape)
    for group in groups:
        places = [*group.places]
        result[places] = beside(values[places])
    return result


def over_others(several: FloatArray) -> FloatArray:
    """Each row over the median of all other rows; NaN where there is none, or it is 0."""
    return parts.over(several, _median_of_others(several))


def _median_of_others(table: FloatArray) -> FloatArray:
    """Of each row the median of all other rows, without NaN; NaN where there is none."""
    ordered = np.sort(table, axis=0)  # NaN last
    count = np.sum(~np.isnan(table), axis=0)
    place = np.argsort(np.argsort(table, axis=0, kind="stable"), axis=0, kind="stable")
    left = count - 1
    low, high = (left - 1) // 2, left // 2
    low, high = low + (place <= low), high + (place <= high)
    last = len(table) - 1
    lower = np.take_along_axis(ordered, np.clip(low, 0, last), axis=0)
    upper = np.take_along_axis(ordered, np.clip(high, 0, last), axis=0)
    return np.where((left > 0) & ~np.isnan(table), (lower + upper) / 2, np.nan)


@frozen
class Grid:
    """What each rank did in each step of the run, shape (ranks, steps); NaN where it was not
    recorded.

    `later` is the number, in the run, of each rank's first step; ranks that share no collective
    with the others have their first step in common with them.
    """

    later: IntArray
    length_ns: FloatArray
    compute_ns: FloatArray
    grouped_ns: FloatArray
    exposed_comm_ns: FloatArray
    host_ns: FloatArray
    loader_ns: FloatArray
    pace_ns: FloatArray

    @property
    def step_count(self) -> int:
        return int(self.length_ns.shape[1])


def grid_of(summaries: Summaries, matched: Matched) -> Grid:
    """Lay the steps of all ranks side by side."""
    tables = [summary.steps for summary in summaries]
    lengths = ints([*map(len, tables)])
    later = _later(matched, lengths)
    count = int((lengths + later).max(initial=0))
    place = places_of(tables)
    cell = place, parts.turns(sums_before(lengths)) + later[place]

    def laid(values: IntArray) -> FloatArray:
        table = unknown((len(summaries), count))
        table[cell] = np.where(values == UNKNOWN, np.nan, values)
        return table

    steps = StepParts.joined(*tables)
    spent = (steps.compute_ns, steps.grouped_ns, steps.exposed_comm_ns, steps.host_starved_ns)
    return Grid(later, *map(laid, (steps.length_ns, *spent, steps.loader_ns, steps.pace_ns)))


def own_step_of(matched: Matched, grid: Grid) -> IntArray:
    """The step of the run in which each participation started on its own rank, `UNKNOWN` outside of
    all.
    """
    return np.where(matched.step != UNKNOWN, matched.step + grid.later[matched.place], UNKNOWN)


def step_of(matched: Matched, grid: Grid) -> IntArray:
    """The step of the run in which each instance lies, `UNKNOWN` outside of all."""
    is_told = matched.step != UNKNOWN
    step = parts.median(own_step_of(matched, grid), matched.first, is_told)
    return np.where(parts.most(is_told, matched.first), step, UNKNOWN)


def means(table: FloatArray) -> FloatArray:
    """The mean of what is known along the last axis; NaN without any."""
    count = (~np.isnan(table)).sum(axis=-1)
    return np.where(count > 0, np.nansum(table, axis=-1) / np.maximum(count, 1), np.nan)


def middles(table: FloatArray) -> FloatArray:
    """The median of what is known of each row; NaN without any."""
    is_known = ~np.isnan(table).all(axis=1)
    result = unknown(len(table))
    result[is_known] = np.nanmedian(table[is_known], axis=1)
    return result


def rounded(values: FloatArray) -> list[int | None]:
    """The values rounded down; None where they are not known."""
    return [None if value != value else int(value // 1) for value in values.tolist()]


def _later(matched: Matched, lengths: IntArray) -> IntArray:
    """How many steps later each rank began to record, by the collectives that it shares with
    others.
    """
    count = len(lengths)
    later, known = zeros(count), none_of(count)
    stepped = matched.step != UNKNOWN
    if not stepped.any():
        return later
    known[matched.place[stepped][0]] = True
    while True:
        anchored = stepped & known[matched.place]
        has = parts.most(anchored, matched.first)
        rows = np.flatnonzero(stepped & ~known[matched.place] & has[matched.instance])
        if not len(rows):
            break
        step = parts.median(matched.step + later[matched.place], matched.first, anchored)
        rows = rows[parts.order_of(matched.place[rows], count)]
        begins = parts.begins_of(matched.place[rows])
        places = matched.place[rows][begins[:-1]]
        later[places] = parts.median(step[matched.instance[rows]] - matched.step[rows], begins)
        known[places] = True
    return later - later.min()


@frozen
class Excess:
    """Time of a rank in a step beyond ranks like it, shape (ranks, steps), NaN where it is not
    known.

    `dense_ns` is compute without grouped GEMMs.
    """

    dense_ns: FloatArray
    grouped_ns: FloatArray
    host_ns: FloatArray
    loader_ns: FloatArray

    @property
    def by_host_ns(self) -> FloatArray:
        return self.host_ns + np.nan_to_num(self.loader_ns)


def excess_of(grid: Grid, alike: LikeGroups) -> Excess:
    """Hold each rank against those like it, step by step."""
    grouped_ns = np.nan_to_num(grid.grouped_ns)  # a rank without experts has none
    return Excess(
        excess(grid.compute_ns - grouped_ns, alike),
        excess(grid.grouped_ns, alike),
        excess(grid.host_ns, alike),
        excess(_begun_alike(grid), alike),
    )


def _begun_alike(grid: Grid) -> FloatArray:
    """Idle time before steps, without each rank's first one where ranks begin to record in several
    steps.

    A first step begins with the recording, so that only first ones are alike.
    """
    if not grid.loader_ns.size or (grid.later == grid.later[0]).all():
        return grid.loader_ns
    known = ~np.isnan(grid.length_ns)
    return np.where(known & (np.cumsum(known, axis=1) == 1), np.nan, grid.loader_ns)


_BY_TOKENS: Final = tuple(
    compute_classes().index(key) for key in ("grouped_gemm", "permute", "router", "activation")
)
"""Classes of which kernels of one shape may hold other amounts of tokens."""


FEW_ALIKE: Final = Limit(
    4,
    "like ranks",
    "ours: of two healthy GPUs of a pair one may be 5 % slower, and 2.5 % slower than all",
)
"""Of fewer the kernels are held beside those of all ranks, as other stages run the same."""


def device_factors(
    summaries: Summaries, groups: LikeGroups, *, products: bool = False
) -> FloatArray:
    """Of each rank how many times as long its kernels take, by time; NaN where nobody is alike.

    Compared are kernels of one name and shape that ran beside no communication, class by class:
    half of a class's time takes so much longer, or more. A GPU may be slow in its matrix products
    alone. Kernels whose work depends on routing are no evidence. `products`: of dense matrix
    products alone.
    """
    kernels = [summary.kernels for summary in summaries]
    if products:
        kernels = [kernel.take(kernel.key == compute_classes().index("gemm")) for kernel in kernels]
    factor = unknown(len(summaries))
    few = [place for one in groups if 1 < len(one.places) < FEW_ALIKE.value for place in one.places]
    if few:
        factor[few] = _side_by_side(kernels)[few]
    for group in groups:
        if len(places := list(group.places)) >= FEW_ALIKE.value:
            factor[places] = _side_by_side([kernels[place] for place in places])
    return factor


def _side_by_side(tables: Sequence[KernelTimes]) -> FloatArray:
    rows = KernelTimes.joined(*tables)
    row = places_of(tables)
    own = ~np.isin(rows.key, _BY_TOKENS)
    rows, row = rows.take(own), row[own]
    kinds = distinct(rows.kernel)
    cell = row, np.searchsorted(kinds, rows.kernel)
    columns = rows.median_ns, rows.total_ns, rows.key, rows.count
    medians_ns, total_ns, key, count = unknown((len(columns), len(tables), len(kinds)))
    for table, values in zip((medians_ns, total_ns, key, count), columns, strict=True):
        table[cell] = values
    return _by_time(
        _agreed(over_others(medians_ns), over_others(total_ns / count), total_ns), total_ns, key
    )


MIXED: Final = Limit(
    0.03,
    "of the time of like ranks' kernels",
    "measured on recordings of others: of 96 kinds of kernels on two GPUs medians and means differ "
    "by less in 94 (bench/limits.py)",
)


def _agreed(medians: FloatArray, means: FloatArray, total_ns: FloatArray) -> FloatArray:
    """Ratios of medians, but for kinds whose means are nearer to 1; all of them where most time is
    of these.

    Of kernels of two lengths the median jumps from one to the other, and a pause makes the mean
    alone longer.
    """
    nearer = np.clip(medians, np.minimum(means, 1.0), np.maximum(means, 1.0))
    mixed = np.abs(medians - nearer) > MIXED.value
    lost = np.nansum(np.where(mixed, total_ns, 0.0), axis=1) > np.nansum(total_ns, axis=1) / 2
    return np.where(mixed & ~lost[:, np.newaxis], np.nan, medians)


def _by_time(ratios: FloatArray, total_ns: FloatArray, key: FloatArray) -> FloatArray:
    """Of each row the time of all kinds over what it would be at the others' pace; of a class by
    its middle kind in time; NaN where nothing is told.
    """
    has_pace = ratios > 0  # kernels that took no time have no pace
    took_ns, usual_ns = np.zeros(len(ratios)), np.zeros(len(ratios))
    for class_number in distinct(ints(key[has_pace])).tolist():
        mine = has_pace & (key == class_number)
        columns = np.flatnonzero(mine.any(axis=0))
        of_class = np.where(mine, ratios, np.nan)[:, columns]
        order = np.argsort(of_class, axis=1, kind="stable")  # NaN last
        lasts_ns = np.where(mine, total_ns, 0.0)[:, columns]
        summed_ns = np.cumsum(np.take_along_axis(lasts_ns, order, axis=1), axis=1)
        whole_ns = summed_ns[:, -1]
        middle = np.argmax(summed_ns >= whole_ns[:, np.newaxis] / 2, axis=1)
        pace = np.take_along_axis(
            of_class, np.take_along_axis(order, middle[:, np.newaxis], axis=1), axis=1
        )[:, 0]
        has = whole_ns > 0
        took_ns += whole_ns
        usual_ns[has] += whole_ns[has] / pace[has]
    return parts.over(took_ns, usual_ns)


def times_usual(took_ns: FloatArray, beyond_ns: FloatArray) -> FloatArray:
    """How many times as long as like ranks, of which it is `beyond_ns` longer; NaN where none is
    like it.
    """
    return parts.over(took_ns, took_ns - beyond_ns)


def slowness_before(matched: Matched, grid: Grid, excess: Excess, factor: FloatArray) -> FloatArray:
    """Of each participation how many times as long its rank's kernels took in that step, shape
    (p,).

    By the kernels that routing says little about: a GPU that is slow, always or in this step, is so
    in all.
    """
    always = np.where(np.isnan(factor), 1.0, factor)
    dense_ns = grid.compute_ns - np.nan_to_num(grid.grouped_ns)
    by_step = np.column_stack(
        (np.fmax(times_usual(dense_ns, excess.dense_ns), always[:, np.newaxis]), always)
    )
    return by_step[matched.place, own_step_of(matched, grid)]  # the last column is of no step

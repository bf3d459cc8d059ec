"""Who makes the others wait, and what makes that rank late: one rank always, another each time, or none.

Only like is compared with like. Each possible cause has a cost, its time in a mean step; the largest that is
large enough, and stands out from what ranks of the run differ by anyway, is the one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.arrays import BoolArray, FloatArray
from traces.limits import Limit
from traces.ranks.group_links import SlowGroups
from traces.ranks.routing import UNEVEN, Routing
from traces.ranks.side_by_side import Alike, Excess, Grid, ratio, times_usual
from traces.ranks.summary import UNKNOWN
from traces.ranks.waits import Links
from traces.sections.cause import Cause

COST: Final = Limit(0.01, "fraction of the step", "ours: nobody changes a machine for less")
ODD: Final = Limit(
    0.05,
    "fraction of the step",
    "ours: of 850 healthy runs of a third simulator pauses of hosts cost more in four",
)
"""What pauses that come in no steady way must cost, and a rank that is late in several steps, not most."""
STANDS_OUT: Final = Limit(
    5.0, "scaled median deviations of the ranks", "ours: of 64 healthy ranks none is as far out by chance"
)
DEVICE: Final = Limit(
    1.04,
    "times as long as like ranks' kernels",
    "ours: kernels alone on one model of GPU differ by 1 to 2 %, and the slowest of few may be 3 % behind",
)
HOST: Final = Limit(
    1.25,
    "times the idle time of like ranks' GPUs, or the time between launches of like ranks' hosts",
    "ours: hosts of one kind differ by some percent",
)
LINK: Final = Limit(
    1.15, "times as long as like ranks' transfers", "ours: transfers of one size differ by some percent"
)
STEADY: Final = Limit(0.75, "fraction of the steps", "ours: one odd step of four does not change who it is")
IN_EACH: Final = Limit(
    0.04,
    "fraction of the step",
    "ours: of 1,051 healthy runs those in which a host stops in each step lose 3.1 %, or 6.6 % and more",
)
"""What ranks must lose that are late by turns in every step."""
MANY: Final = Limit(3, "late steps", "ours: in a healthy run two steps of four may have a pause")
FEW: Final = Limit(
    0.06,
    "fraction of the step",
    "ours: two pauses of 2 ms make 5 % of a healthy run of four steps; of 1,051 healthy runs two cost more",
)
"""What one late step or two must cost, in the mean of all."""
LONG: Final = Limit(
    2_500_000.0, "ns", "ours: in 1,051 healthy runs of a third simulator no host stops for more than 2.33 ms"
)
"""Stops from this length on are none that any host has now and then."""
ONCE: Final = Limit(
    0.045,
    "fraction of the step",
    "ours: a pause of 1.5 ms before the first kernel makes 4.2 % of three steps of 11 ms, and is no loader's",
)
"""What a rank that is late once must cost, in the mean of all steps."""
ALONE: Final = Limit(
    0.1, "fraction of the step", "ours: a pause of 1.6 ms is 7.7 % of the one step whose start is recorded"
)
"""What a late step must cost where no other is known."""
ONE_LATE: Final = Limit(
    0.15, "fraction of the step", "ours: in 650 healthy runs no rank that stands out begins one step later"
)
"""What a rank that is late once must lose in that step, where others show that it does not come again."""
ALONE_NS: Final = Limit(1_500_000.0, "ns", "ours: most pauses of healthy simulated hosts are shorter")
"""What a late step must lose where no other is known."""
STAGE: Final = Limit(
    1.05, "times the work of the other stages", "ours: embedding and loss of the ends make a few percent"
)
_SCALED: Final = 1.4826
"""Median deviation -> standard deviation of a normal distribution."""


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A possible cause. `places` are those of the ranks' summaries, none where nobody can be named.

    `cost_ns` is its time in a mean step. `by_step` names, of each step of the run, the place that was late;
    empty where it is the same in all; `group` is the number of the ranks with more layers, `factor` how many
    times as long the kernels of a slow device take, the launches of a slow host, or the transfers of a slow
    link; `spared` are groups, by number, whose data does not pass that. `is_nic`: the link is that of a node,
    which only data of other nodes passes, and `factor` how much longer exchanges of its ranks seem to take.
    """

    cause: Cause
    places: tuple[int, ...]
    cost_ns: float
    by_step: tuple[int, ...] = ()
    group: int = UNKNOWN
    factor: float = 1.0
    spared: tuple[int, ...] = ()
    is_nic: bool = False

    @property
    def place(self) -> int:
        """Of the one rank that it is; `UNKNOWN` where it is none or several."""
        return self.places[0] if len(self.places) == 1 else UNKNOWN


NOTHING: Final = Suspicion(Cause.NONE, (), 0.0)


def find_late(
    grid: Grid,
    excess: Excess,
    factor: FloatArray,
    links: Links | None,
    groups: SlowGroups | None,
    routing: Routing,
    alike: Sequence[Alike],
) -> Suspicion:
    """The cause that costs the most; `NOTHING` where none costs enough."""
    if grid.step_count < 2:
        return NOTHING
    step_ns = _median(grid.length_ns)
    # from launch to launch, whether their GPUs wait for it or not
    pace = np.nan_to_num(ratio(_medians(grid.pace_ns), alike), nan=1.0)
    slow_host = pace >= HOST.value
    slowed_ns = _slowed(grid, excess, step_ns)
    devices = [
        *_always_the_same(grid, excess, factor, pace, step_ns),
        *_in_some_steps(grid, slowed_ns, step_ns),
    ]
    theirs = [place for one in devices if one.cause is Cause.SLOW_DEVICE for place in one.places]
    found = [
        *devices,
        *_linked(links, groups, grid.step_count, step_ns),
        *_rotating(grid, excess, slow_host, slowed_ns, step_ns, theirs),
        *_routed(grid, routing, step_ns),
        *_staged(grid, alike, step_ns),
    ]
    return max(found, key=lambda one: one.cost_ns, default=NOTHING)


def _always_the_same(
    grid: Grid, excess: Excess, factor: FloatArray, pace: FloatArray, step_ns: float
) -> Iterator[Suspicion]:
    """Ranks that are late by the same cause in nearly all steps; a loader may be late in every k-th."""
    slow = np.where(np.isnan(factor), 1.0, factor) > DEVICE.value
    share = np.where(slow, 1 - 1 / np.where(slow, factor, 1.0), 0.0)
    device_ns = grid.compute_ns * share[:, np.newaxis]
    slow_host = (pace >= HOST.value) | (_starving(grid, excess) & _recurs(excess.by_host_ns, step_ns))
    in_time = np.ones(len(pace))
    starts = ~slow_host & _recurs(excess.loader_ns, step_ns)
    for cause, table, may, times in (
        (Cause.SLOW_DEVICE, device_ns, slow & _in_most_steps(excess.dense_ns), factor),
        (Cause.SLOW_HOST, excess.by_host_ns, slow_host, np.maximum(pace, 1.0)),
        (Cause.DATA_LOADER, excess.loader_ns, starts, in_time),
    ):
        cost_ns = _mean(table)
        once = _once(table)
        may = may & (~once | (cost_ns >= ONCE.value * step_ns))
        places = apart(cost_ns, may, COST.value * step_ns)
        if places and not (len(places) > 1 and once[list(places)].all()):  # several, once each: by chance
            few = list(places)
            yield Suspicion(cause, places, float(cost_ns[few].max()), factor=float(times[few].mean()))


def _recurs(table: FloatArray, step_ns: float) -> BoolArray:
    """Which ranks are late so often that it is no pause, or by so much: the more, the fewer steps it is."""
    known = (~np.isnan(table)).sum(axis=1)
    longest_ns = np.nan_to_num(table).max(axis=1, initial=0.0)
    late = (np.nan_to_num(table) >= COST.value * step_ns).sum(axis=1)
    seldom = (late < MANY.value) | (late < STEADY.value * known)
    least = [one.value for one in (ALONE, ONCE, ODD)]
    enough: BoolArray = _mean(table) >= np.select([known < 2, late < 2, seldom], least, COST.value) * step_ns
    return enough & (
        longest_ns >= np.select([known < 2, late < 2], [ALONE_NS.value, ONE_LATE.value * step_ns], 0.0)
    )


def apart(cost_ns: FloatArray, may: BoolArray, least_ns: float) -> tuple[int, ...]:
    """The ranks that cost far more than all others: one, or up to half of them, as a host or a switch makes.

    They `may` be it, and cost `least_ns` each. The others, told from them by the widest gap, scatter by so
    little that none of these is among them by chance.
    """
    order = np.argsort(np.nan_to_num(cost_ns), kind="stable")
    ordered = np.nan_to_num(cost_ns)[order]
    half = len(order) - len(order) // 2
    if len(order) < 2 or not may.any():
        return ()
    begins = half + int(np.argmax(np.diff(ordered)[half - 1 :]))
    few, many = order[begins:], ordered[:begins]
    far_ns = float(np.median(many)) + STANDS_OUT.value * _deviation(many)
    if not may[few].all() or ordered[begins] < max(least_ns, far_ns):
        return ()
    return tuple(sorted(few.tolist()))


_NEARLY_ALL: Final = Limit(0.8, "of a rank's excess", "ours: what comes once leaves the other steps alone")


def _once(table: FloatArray) -> BoolArray:
    """Which ranks owe nearly all of what they are above others to one step of three or more."""
    above = np.maximum(np.nan_to_num(table), 0.0)
    several = (~np.isnan(table)).sum(axis=1) > 2
    result: BoolArray = several & (above.max(axis=1, initial=0.0) >= _NEARLY_ALL.value * above.sum(axis=1))
    return result


def _starving(grid: Grid, excess: Excess) -> BoolArray:
    mean = _mean(excess.host_ns)
    usual = _mean(grid.host_ns) - mean
    more = (mean >= STANDS_OUT.value * _deviation(mean)) & (mean >= (HOST.value - 1) * usual)
    return more & _in_most_steps(excess.host_ns)


def _linked(
    links: Links | None, groups: SlowGroups | None, steps: int, step_ns: float
) -> Iterator[Suspicion]:
    if groups and groups.cost_ns / steps >= COST.value * step_ns:
        cost_ns = groups.cost_ns / steps
        yield Suspicion(Cause.SLOW_LINK, groups.places, cost_ns, factor=groups.factor, spared=groups.spared)
    if links is None:
        return
    may = np.nan_to_num(links.factor, nan=1.0) >= LINK.value
    may &= np.nan_to_num(links.cost_ns) / steps >= COST.value * step_ns
    if may.any():
        place = int(np.argmax(np.where(may, np.nan_to_num(links.cost_ns), 0.0)))
        cost_ns = float(links.cost_ns[place]) / steps
        yield Suspicion(Cause.SLOW_LINK, (place,), cost_ns, factor=float(links.most[place]))


def _in_most_steps(table: FloatArray) -> BoolArray:
    """Which ranks are above half of their own mean in nearly all their steps, and the mean above 0."""
    mean = _mean(table)
    told = ~np.isnan(table)
    high = told & (np.nan_to_num(table) > mean[:, np.newaxis] / 2)
    share = high.sum(axis=1) / np.maximum(told.sum(axis=1), 1)
    return (mean > 0) & (share >= STEADY.value)


def _rotating(
    grid: Grid,
    excess: Excess,
    slow_host: BoolArray,
    slowed_ns: FloatArray,
    step_ns: float,
    without: list[int],
) -> Iterator[Suspicion]:
    """In some steps a rank stands out, by its host or its kernels, and it is not always the same one.

    `without`: places that are late for a reason of their own.
    """
    told = ~np.isnan(excess.dense_ns)
    if not told.any():
        return
    host_ns = np.where(slow_host[:, np.newaxis], 0.0, excess.host_ns)
    dense_ns, host_ns = (_standing_out(table, step_ns) for table in (excess.dense_ns, host_ns))
    table = np.where(told, np.maximum(dense_ns, slowed_ns) + host_ns, -np.inf)
    table[without] = 0.0
    late, most_ns = table.argmax(axis=0), table.max(axis=0)
    stands_out = most_ns > 0
    ranks = late[stands_out]
    by_step = np.where(stands_out, late, UNKNOWN)
    cost_ns = float(np.where(stands_out, most_ns, 0.0).mean())
    if not len(ranks):
        return
    if len(ranks) > 1 and np.bincount(ranks).max() >= STEADY.value * len(ranks):
        return
    steps = int(told.any(axis=0).sum())
    if host_ns.max() >= LONG.value:
        least = COST
    elif MANY.value <= steps == len(ranks):
        least = IN_EACH
    else:
        least = ODD if len(ranks) >= max(MANY.value, STEADY.value * steps) else FEW
    if cost_ns >= least.value * step_ns:
        yield Suspicion(Cause.ROTATING_JITTER, (), cost_ns, tuple(by_step.tolist()))


def _slowed(grid: Grid, excess: Excess, step_ns: float) -> FloatArray:
    """What a GPU took longer in a step where all that it did took so much longer, experts' work as well.

    Shape (ranks, steps), 0 elsewhere: a stop makes one kernel of many longer, and more tokens some of them.
    """
    grouped_ns = np.nan_to_num(grid.grouped_ns)
    dense = times_usual(grid.compute_ns - grouped_ns, excess.dense_ns)
    grouped = times_usual(grouped_ns, excess.grouped_ns)
    stands_out = _standing_out(excess.dense_ns, step_ns) > 0
    as_slow = (grouped >= 1 + (dense - 1) / 2) & (grouped <= 1 + (dense - 1) * 4)
    slow = stands_out & (dense > DEVICE.value) & (as_slow | (grouped_ns <= 0))
    return np.where(slow, np.nan_to_num(excess.dense_ns) + np.nan_to_num(excess.grouped_ns), 0.0)


def _in_some_steps(grid: Grid, slowed_ns: FloatArray, step_ns: float) -> Iterator[Suspicion]:
    """One GPU that is slow in some of the steps: its clock falls under heat or a limit of power."""
    by_rank = slowed_ns.sum(axis=1)
    place = int(by_rank.argmax())
    mine, took_ns = slowed_ns[place] > 0, by_rank[place]
    known = ~np.isnan(grid.compute_ns[place])
    if (
        took_ns < max(STEADY.value * by_rank.sum(), COST.value * step_ns * len(mine))
        or not (known & ~mine).any()
    ):
        return
    whole_ns = grid.compute_ns[place, mine].sum()
    by_step = tuple(np.where(mine, place, UNKNOWN).tolist())
    factor = float(whole_ns / (whole_ns - took_ns))
    yield Suspicion(Cause.SLOW_DEVICE, (place,), float(took_ns / len(mine)), by_step, factor=factor)


def _standing_out(table: FloatArray, step_ns: float) -> FloatArray:
    """What stands out of a table of excess, shape (ranks, steps); 0 elsewhere."""
    least_ns = max(COST.value * step_ns, STANDS_OUT.value * _deviation(table))
    known = np.nan_to_num(table)
    return np.where(known >= least_ns, known, 0.0)


def _routed(grid: Grid, routing: Routing, step_ns: float) -> Iterator[Suspicion]:
    if routing.imbalance is None or routing.imbalance < UNEVEN.value:
        return
    cost_ns = routing.cost_ns / grid.step_count
    if cost_ns >= COST.value * step_ns:
        yield Suspicion(Cause.ROUTING_IMBALANCE, routing.hot, cost_ns)


def _staged(grid: Grid, alike: Sequence[Alike], step_ns: float) -> Iterator[Suspicion]:
    layers = [group.layers for group in alike]
    if len(set(layers)) < 2:
        return
    work = grid.compute_ns + np.nan_to_num(grid.host_ns)
    own_ns = np.array([_median(work[list(group.places)]) for group in alike])
    if np.isnan(own_ns).any():
        return
    heavy = int(np.argmax(own_ns))
    others = np.delete(own_ns, heavy)
    cost_ns = float(own_ns[heavy] - others.mean())
    if layers[heavy] == max(layers) and own_ns[heavy] >= STAGE.value * others.max():
        yield Suspicion(Cause.PIPELINE_IMBALANCE, (), cost_ns, group=heavy)


def _mean(table: FloatArray) -> FloatArray:
    told = ~np.isnan(table)
    total = np.where(told, table, 0.0).sum(axis=1)
    return total / np.maximum(told.sum(axis=1), 1)


def _medians(table: FloatArray) -> FloatArray:
    told = ~np.isnan(table).all(axis=1)
    result = np.full(len(table), np.nan)
    result[told] = np.nanmedian(table[told], axis=1)
    return result


def _median(values: FloatArray) -> float:
    told = values[~np.isnan(values)]
    return float(np.median(told)) if len(told) else float("nan")


def _deviation(values: FloatArray) -> float:
    told = values[~np.isnan(values)]
    return _SCALED * float(np.median(np.abs(told - np.median(told)))) if len(told) else 0.0

"""Where the difference of two steps lies: rows of the ledger that add up to it, to the integer.

A row is split into more activities, longer ones and less of them hidden; rows that do not stand out
of the scatter of their steps are noise together.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

from msgspec import Struct, structs

from heuristics.comparison.difference.matched import (
    Matched,
    OneSide,
    added,
    budget_rows,
    group_rows,
    mean_step_ns,
)
from heuristics.comparison.difference.subject import Subject, rows_of_group
from heuristics.result.compared import (
    ComparedChange,
    ComparedRow,
    Ends,
    Exchanges,
    KernelDelta,
    LayerDelta,
)
from heuristics.result.compared_runs import WholeRow
from heuristics.words import lacking, say
from traces.frozen import frozen
from traces.limits import QUARTER, Limit
from traces.missing import Missing, OrMissing, gap, known
from traces.sections.rank import Rank
from traces.sections.section import copied
from traces.statistics.interval import LEAST, MANY, Interval, interval_of
from traces.texts import Texts

NOISE: Final = "noise"
"""The row that holds what cannot be separated from scatter, and the rest of rounding."""
SMALL_FRAC: Final = Limit(
    0.005,
    "of the step",
    "ours: two rows that are left out of sight are together no more than what is little",
)
"""Of rows without an interval, those below may be noise; a larger one is shown whatever its
scatter."""
FEW: Final = gap(
    say("comparison.few-steps", least=LEAST), say("comparison.few-steps-cure", least=MANY.value)
)
_ONE_FIGURE: Final = gap(say("comparison.one-figure"), "moe-diag doctor TRACE")
_NOT_ALIGNED: Final = lacking("comparison.no-sequence")
_NO_WORK: Final = lacking("comparison.no-work")
_UNKNOWN: Final = (_NO_WORK, _NO_WORK, _NO_WORK)

Effects = tuple[int, int, int] | None
"""By count, by duration and by overlap: integers that add up to a difference; None where they are
unknown."""


ComparedRows = tuple[ComparedRow, ...]
Modules = defaultdict[str, Fraction]
"""Time of the modules of a layer, 0 of those that a side does not have."""


class Attribution(Struct, frozen=True):
    """`rows`, the largest difference first, with `noise` last: they add up to `step_delta_ns`
    exactly.

    Rows that do not differ are in `noise` too, so that its `base_ns` and `new_ns` make the step
    whole.
    """

    step_delta_ns: int
    rows: ComparedRows
    reasons: ComparedRows = ()
    """Why no compute ran, in the same shape: they add up to the difference in time without compute.
    Empty where a side has no account."""
    modules: ComparedRows = ()
    """Modules of MoE layers by pass, which may overlap and add up to nothing. Noise is left out.
    Empty where a side has none."""
    scattered: ComparedRows = ()
    """Rows of the noise that are much of the difference, which are named for all that they
    scatter."""


@frozen
class Scatter:
    """A row and what its steps say of its difference. `interval` is None with too few of them."""

    row: Matched
    interval: Interval | None
    is_noise: bool


class Facts(Struct, frozen=True):
    """All that is known of a difference before anybody has an opinion of its cause."""

    base: Subject
    new: Subject
    attribution: Attribution
    layers: tuple[LayerDelta, ...]
    kernels: tuple[KernelDelta, ...]
    changed: tuple[ComparedChange, ...]
    exchanged: OrMissing[Exchanges] = _NOT_ALIGNED
    """Both steps in the order of launches: what one side does by other kernels."""
    comparable: bool = True
    """Whether nothing shows that a side does other work, or leaves it open."""


def attribute(base: Rank, new: Rank) -> Attribution:
    """The difference by row. Sides that do not differ have the row `noise` alone, with 0."""
    base_ns, new_ns = mean_step_ns(base), mean_step_ns(new)
    step_ns = (base_ns + new_ns) / 2
    no_interval = _ONE_FIGURE
    if min(step_count(base), step_count(new)) < LEAST:
        no_interval = FEW
    beyond, noise = split_noise(budget_rows(base, new), step_ns)
    much_ns = Fraction(str(QUARTER.value)) * abs(new_ns - base_ns)
    much = [
        scatter_of(row, step_ns) for row in noise if row.delta_ns and abs(row.delta_ns) >= much_ns
    ]
    whole = Attribution(
        round(new_ns - base_ns),
        _adding_up(beyond, noise, no_interval),
        scattered=_in_order(much, no_interval),
    )
    if None not in map(known, (base.ledger, new.ledger, base.absent_ns, new.absent_ns)):
        split = split_noise(group_rows(base, new, "absent"), step_ns)
        whole = structs.replace(whole, reasons=_adding_up(*split, no_interval))
    if rows_of_group(base, "moe") and rows_of_group(new, "moe"):
        real, _ = _apart(group_rows(base, new, "moe"), step_ns)
        whole = structs.replace(whole, modules=with_shares(_in_order(real, no_interval)))
    return whole


def step_count(rank: Rank) -> int:
    """How many steps its figures are of; 0 where they are of one window."""
    if rank.steps.found:
        return len(rank.lengths_ns)
    return 0


def _adding_up(
    beyond: Sequence[Scatter], noise: Sequence[Matched], no_interval: Missing
) -> ComparedRows:
    whole = added([*(scatter.row for scatter in beyond), *noise])
    named = _in_order(beyond, no_interval)
    return with_shares((*named, _noise(whole, named, noise, no_interval)))


def delta_ns(rows: Iterable[ComparedRow]) -> int:
    """What rows moved in all."""
    return sum(row.delta_ns for row in rows)


def gross_ns(rows: Iterable[ComparedRow]) -> int:
    """What rows moved, up and down."""
    return sum(abs(row.delta_ns) for row in rows)


def sides_ns(rows: Iterable[ComparedRow | WholeRow]) -> Ends:
    """What rows take on either side."""
    base_ns = new_ns = 0
    for row in rows:
        base_ns += row.base_ns
        new_ns += row.new_ns
    return base_ns, new_ns


def names_of(rows: Iterable[ComparedRow | Matched]) -> Texts:
    return tuple(row.row for row in rows)


def with_shares(rows: Sequence[ComparedRow]) -> ComparedRows:
    """Rows with the part that each is of all they move: of the difference itself it would be more
    than the whole where rows go both ways.
    """
    moved_ns = gross_ns(rows)
    return tuple(structs.replace(row, share_frac=part_of(row.delta_ns, moved_ns)) for row in rows)


def part_of(ns: float, whole_ns: int) -> float | None:
    """Of nothing there is no part; never -0.0, which would not mirror."""
    if not whole_ns:
        return None
    if ns:
        return ns / whole_ns
    return 0.0


def _in_order(rows: Iterable[Scatter], no_interval: Missing) -> ComparedRows:
    """As the document has them, the largest difference first."""
    ordered = []
    for scatter in rows:
        row, ends = scatter.row, scatter.interval.ends_ns if scatter.interval else no_interval
        ordered.append(_row(row, round(row.delta_ns), effects_of(row), ends))
    return tuple(sorted(ordered, key=lambda row: (-abs(row.delta_ns), row.row)))


def _noise(
    whole: Matched, named: Sequence[ComparedRow], noise: Sequence[Matched], no_interval: Missing
) -> ComparedRow:
    """What the named rows leave of the whole, on each side and of the difference; it has no
    interval.
    """
    rest_ns = round(whole.delta_ns) - delta_ns(named)
    base_ns, new_ns = sides_ns(named)
    noise_sum = added(noise)
    base = replace(noise_sum.base, mean_ns=round(whole.base.mean_ns) - Fraction(base_ns))
    new = replace(noise_sum.new, mean_ns=round(whole.new.mean_ns) - Fraction(new_ns))
    row = _row(
        Matched(NOISE, None, base, new),
        rest_ns,
        _effects_of_noise(noise, rest_ns),
        FEW if no_interval is FEW else None,
    )
    return structs.replace(row, parts=names_of(part for part in noise if part.delta_ns))


def _row(row: Matched, moved_ns: int, effects: Effects, ends: OrMissing[Ends]) -> ComparedRow:
    count_ns, duration_ns, overlap_ns = effects or _UNKNOWN
    return copied(
        ComparedRow,
        row,
        delta_ns=moved_ns,
        count_ns=count_ns,
        duration_ns=duration_ns,
        overlap_ns=overlap_ns,
        base_ns=round(row.base.mean_ns),
        new_ns=round(row.new.mean_ns),
        base_count=float(row.base.count),
        new_count=float(row.new.count),
        parts=(),
        ci95_ns=ends,
        share_frac=None,
    )


def _effects_of_noise(noise: Sequence[Matched], rest_ns: int) -> Effects:
    """The parts of the rows that are noise; what rounding left over is overlap. Unknown where one
    is.
    """
    count_ns = duration_ns = 0
    for row in noise:
        effects = effects_of(row)
        if effects is None:
            return None
        count_ns, duration_ns = count_ns + effects[0], duration_ns + effects[1]
    return count_ns, duration_ns, rest_ns - count_ns - duration_ns


def effects_of(row: Matched) -> Effects:
    """The parts of a row's rounded difference; unknown where a side has no work of it.

    With n activities of mean duration d a step on each side, the work differs by (difference of n x
    mean of both d) + (difference of d x mean of both n), exactly: taking the middle of both sides,
    neither is the reference. What the difference of wall time has beyond that is overlap. A row of
    one side is all count.
    """
    base, new = row.base, row.new
    if base.work_ns is None or new.work_ns is None:
        return None
    if not (base.count and new.count):
        return round(row.delta_ns), 0, 0
    base_each_ns, new_each_ns = base.work_ns / base.count, new.work_ns / new.count
    count_ns = (new.count - base.count) * (base_each_ns + new_each_ns) / 2
    duration_ns = (new_each_ns - base_each_ns) * (base.count + new.count) / 2
    return whole_parts((count_ns, duration_ns, row.delta_ns - count_ns - duration_ns))


def whole_parts(parts: tuple[Fraction, Fraction, Fraction]) -> tuple[int, int, int]:
    """Three parts rounded so that they add up to their rounded sum; the largest takes what is over.

    So a part that is nothing stays nothing, and negated parts give negated integers.
    """
    rounded = list(map(round, parts))
    largest = max(range(3), key=lambda place: abs(parts[place]))
    rounded[largest] += round(sum(parts)) - sum(rounded)
    return rounded[0], rounded[1], rounded[2]


def split_noise(rows: Iterable[Matched], step_ns: Fraction) -> tuple[list[Scatter], list[Matched]]:
    """Rows whose difference is real, and those that are noise, of which the largest difference is
    first.

    What is noise is noise in sum too: as long as its sum is beyond scatter, the row that has most
    of it is real. So one cause that moves many rows a little, or one row now and then, is not lost
    among them.
    """
    real, noise = _apart(sorted(rows, key=_size), step_ns)
    while noise and not scatter_of(whole := added(noise), step_ns).is_noise:
        largest = max(noise, key=lambda row: row.delta_ns * whole.delta_ns)
        noise.remove(largest)
        real.append(scatter_of(largest, step_ns))
    return real, noise


def _size(row: Matched) -> tuple[Fraction, str]:
    return -abs(row.delta_ns), row.row


def _apart(rows: Iterable[Matched], step_ns: Fraction) -> tuple[list[Scatter], list[Matched]]:
    """Rows that stand out of their own scatter, and those that do not."""
    real, noise = list[Scatter](), list[Matched]()
    for row in rows:
        scatter = scatter_of(row, step_ns)
        if scatter.is_noise:
            noise.append(row)
        else:
            real.append(scatter)
    return real, noise


def scatter_of(row: Matched, step_ns: Fraction) -> Scatter:
    """Noise is a difference of 0, and one whose 95 % interval holds 0.

    With too few steps for an interval it is one below `SMALL_FRAC` of `step_ns`, the mean step of
    both sides, that is no more than the ranges of both sides together. A row of one number a side,
    as without steps, has no scatter: it is noise only where it does not differ.
    """
    if not row.delta_ns:
        return Scatter(row, None, True)
    interval = interval_of(row.base.per_step_ns, row.new.per_step_ns)
    if interval is not None:
        return Scatter(row, interval, interval.low_ns <= 0 <= interval.high_ns)
    size_ns = abs(row.delta_ns)
    is_small = size_ns < Fraction(str(SMALL_FRAC.value)) * step_ns
    return Scatter(row, None, is_small and size_ns <= _range_ns(row.base) + _range_ns(row.new))


def _range_ns(side: OneSide) -> int:
    return max(side.per_step_ns, default=0) - min(side.per_step_ns, default=0)


def layers(base: Rank, new: Rank) -> tuple[LayerDelta, ...]:
    """MoE layers that both have, the largest difference first."""
    mine, theirs = _by_layer(base), _by_layer(new)
    deltas = [
        _layer_delta(layer, mine[layer], theirs[layer]) for layer in mine.keys() & theirs.keys()
    ]
    return tuple(sorted(deltas, key=lambda delta: (-abs(delta.delta_ns), delta.layer)))


def _by_layer(rank: Rank) -> dict[int, Modules]:
    by_layer = defaultdict[int, Modules](lambda: defaultdict(Fraction))
    if moe := known(rank.moe):
        for row in moe.by_layer:
            by_layer[row.layer][row.module] += Fraction(row.wall_ns, len(rank.lengths_ns))
    return by_layer


def _layer_delta(layer: int, base: Modules, new: Modules) -> LayerDelta:
    moved = {name: new[name] - base[name] for name in base.keys() | new.keys()}
    module = min(moved, key=lambda name: (-abs(moved[name]), name))
    base_ns, new_ns = sum(base.values()), sum(new.values())
    return LayerDelta(
        layer=layer,
        delta_ns=round(new_ns - base_ns),
        base_ns=round(base_ns),
        new_ns=round(new_ns),
        module=module,
        module_delta_ns=round(moved[module]),
    )

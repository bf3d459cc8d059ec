"""Where the difference of two steps lies: rows of the ledger that add up to it, to the integer."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from heuristics.comparison.difference.effects import NOT_TOLD, Effects, effects_of
from heuristics.comparison.difference.matched import Matched, added, budget_rows, group_rows, mean_step_ns
from heuristics.comparison.difference.noise import Scatter, scatter_of, split_noise
from heuristics.result.compared import LayerDelta
from traces.missing import known
from traces.sections.rank import Rank
from traces.sections.tables import WallId

NOISE: Final = "noise"
"""The row that holds what cannot be separated from scatter, and the rest of rounding."""


@dataclass(frozen=True, slots=True)
class RowDelta:
    """One row, per step: new less base, positive is slower. `delta_ns` = the three parts, exactly.

    `row` is as the contract has it (`compute.gemm`, `exposed_comm.ep_dispatch`, `launch_starved.sync`), or
    `noise`. `count_ns`: more or fewer activities; `duration_ns`: longer or shorter ones; `overlap_ns`: more
    or less of them at the same time as other work. The three are None where a document has no work of rows,
    or where the sides split idle time differently. `base_ns`, `new_ns`: means per step; `base_count`,
    `new_count`: activities per step.
    """

    row: str
    wall: WallId | None
    delta_ns: int
    count_ns: int | None
    duration_ns: int | None
    overlap_ns: int | None
    base_ns: int
    new_ns: int
    base_count: float
    new_count: float
    low_ns: int | None = None
    high_ns: int | None = None
    """The 95 % interval of `delta_ns`, with at least 8 steps a side; None for `noise`."""
    parts: tuple[str, ...] = ()
    """Of `noise`: the rows in it that differ, the largest difference first."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """`rows`, the largest difference first, with `noise` last: they add up to `step_delta_ns` exactly.

    Rows that do not differ are in `noise` too, so that its `base_ns` and `new_ns` make the step whole.
    """

    step_delta_ns: int
    rows: tuple[RowDelta, ...]
    reasons: tuple[RowDelta, ...] = ()
    """Why no compute ran, in the same shape: they add up to the difference in time without compute. Empty
    where a side has no account."""
    modules: tuple[RowDelta, ...] = ()
    """Modules of MoE layers by pass, which may overlap and add up to nothing. Noise is left out. Empty where
    a side has none."""


def attribute(base: Rank, new: Rank) -> Attribution:
    """The difference by row. Sides that do not differ have the row `noise` alone, with 0."""
    base_ns, new_ns = mean_step_ns(base), mean_step_ns(new)
    step_ns = (base_ns + new_ns) / 2
    modules = (scatter_of(row, step_ns) for row in group_rows(base, new, "moe") if _has_modules(base, new))
    return Attribution(
        step_delta_ns=round(new_ns - base_ns),
        rows=_adding_up(budget_rows(base, new), step_ns),
        reasons=_adding_up(group_rows(base, new, "absent"), step_ns) if _has_account(base, new) else (),
        modules=_in_order(_delta(one) for one in modules if not one.is_noise),
    )


def _has_account(*sides: Rank) -> bool:
    return all(known(side.ledger) is not None and known(side.absent_ns) is not None for side in sides)


def _has_modules(*sides: Rank) -> bool:
    return all(any(row.group == "moe" for row in known(side.ledger) or ()) for side in sides)


def _adding_up(rows: Sequence[Matched], step_ns: Fraction) -> tuple[RowDelta, ...]:
    """Rows beyond noise, and `noise` with all else: together the rounded sum of all differences."""
    beyond, noise = split_noise(rows, step_ns)
    named = _in_order(_delta(one) for one in beyond)
    return (*named, _noise(added(rows), named, noise))


def _in_order(rows: Iterable[RowDelta]) -> tuple[RowDelta, ...]:
    return tuple(sorted(rows, key=lambda row: (-abs(row.delta_ns), row.row)))


def _delta(one: Scatter) -> RowDelta:
    row, interval, parts = one.row, one.interval, effects_of(one.row)
    return RowDelta(
        row=row.row,
        wall=row.wall,
        delta_ns=round(row.delta_ns),
        count_ns=parts.count_ns,
        duration_ns=parts.duration_ns,
        overlap_ns=parts.overlap_ns,
        base_ns=round(row.base.mean_ns),
        new_ns=round(row.new.mean_ns),
        base_count=float(row.base.count),
        new_count=float(row.new.count),
        low_ns=interval.low_ns if interval else None,
        high_ns=interval.high_ns if interval else None,
    )


def _noise(whole: Matched, named: Sequence[RowDelta], noise: Sequence[Matched]) -> RowDelta:
    """What the named rows leave of the whole, on each side and of the difference."""
    delta_ns = round(whole.delta_ns) - sum(row.delta_ns for row in named)
    parts = _parts(noise, delta_ns)
    return RowDelta(
        row=NOISE,
        wall=None,
        delta_ns=delta_ns,
        count_ns=parts.count_ns,
        duration_ns=parts.duration_ns,
        overlap_ns=parts.overlap_ns,
        base_ns=round(whole.base.mean_ns) - sum(row.base_ns for row in named),
        new_ns=round(whole.new.mean_ns) - sum(row.new_ns for row in named),
        base_count=float(sum(row.base.count for row in noise)),
        new_count=float(sum(row.new.count for row in noise)),
        parts=tuple(row.row for row in noise if row.delta_ns),
    )


def _parts(rest: Sequence[Matched], delta_ns: int) -> Effects:
    """The parts of the rows that are noise; what rounding left over is overlap. Unknown where one is."""
    count_ns = duration_ns = 0
    for row in rest:
        parts = effects_of(row)
        if parts.count_ns is None or parts.duration_ns is None:
            return NOT_TOLD
        count_ns, duration_ns = count_ns + parts.count_ns, duration_ns + parts.duration_ns
    return Effects(count_ns, duration_ns, delta_ns - count_ns - duration_ns)


def layers(base: Rank, new: Rank) -> tuple[LayerDelta, ...]:
    """MoE layers that both have, the largest difference first."""
    one, other = _by_layer(base), _by_layer(new)
    found = [_layer_delta(layer, one[layer], other[layer]) for layer in one.keys() & other.keys()]
    return tuple(sorted(found, key=lambda one: (-abs(one.delta_ns), one.layer)))


def _by_layer(rank: Rank) -> dict[int, dict[str, Fraction]]:
    """Wall time per step of each layer by module, over its passes."""
    steps = len(rank.lengths_ns)
    found: dict[int, dict[str, Fraction]] = {}
    moe = known(rank.moe)
    for row in moe.by_layer if moe else ():
        modules = found.setdefault(row.layer, {})
        modules[row.module] = modules.get(row.module, Fraction(0)) + Fraction(row.wall_ns, steps)
    return found


def _layer_delta(layer: int, base: Mapping[str, Fraction], new: Mapping[str, Fraction]) -> LayerDelta:
    moved = {
        name: new.get(name, Fraction(0)) - base.get(name, Fraction(0)) for name in base.keys() | new.keys()
    }
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

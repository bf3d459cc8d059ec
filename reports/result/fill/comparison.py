"""A comparison that was judged -> its typed document."""

from collections.abc import Sequence
from typing import Final

from msgspec import UNSET

from heuristics.comparison.comparison import Comparison
from heuristics.comparison.difference.interval import LEAST
from heuristics.comparison.difference.matched import budget_rows
from heuristics.comparison.difference.rows import NOISE, RowDelta
from heuristics.comparison.facts import Facts
from heuristics.comparison.size import Size
from heuristics.result.compared import Compared, ComparedChange, ComparedPair, ComparedRow, ComparedSize, Ends
from heuristics.result.side import Side
from heuristics.result.tool import SCHEMA_VERSION, Tool
from reports.result.fill.parts import because, copied, each
from reports.result.fill.side import mean_delta_ns, place_of, side_of
from traces.missing import Missing, OrMissing

_FEW: Final = Missing(
    "",
    f"fewer than {LEAST.value} steps on a side",
    f"record at least {LEAST.value} steps a side, or give --base-log and --new-log",
)
_ONE_FIGURE: Final = Missing(
    "", "one side has this row only for all of its steps together", "moe-diag doctor TRACE"
)
_NO_WORK: Final = Missing(
    "",
    "one side does not have the work of this row, or the sides split idle time differently",
    "record both sides with the same options: moe-diag doctor TRACE",
)
_OF_INTERVAL: Final = ("low_ns", "high_ns", "low_frac", "high_frac", "level_frac", "method")
_NO_BASE: Final = Missing("", "the steps of base take no time", "record base again")


def result_of_comparison(
    version: str,
    comparison: Comparison,
    warnings: Sequence[str] = (),
    redacted: bool = True,
    command: str | None = None,
) -> Compared:
    """The whole comparison. `command`: the line that makes it again."""
    facts, judged, size = comparison.facts, comparison.judged, _size(comparison.size)
    base, new = facts.base, facts.new
    base_side, new_side = _sides(facts)
    told = facts.attribution
    few = min(base_side.steps.count, new_side.steps.count) < LEAST.value
    return Compared(
        schema_version=SCHEMA_VERSION,
        tool=Tool(
            "moe-diag", version, base.tool.guidance if base.tool.guidance == new.tool.guidance else None
        ),
        kind="comparison",
        warnings=tuple(warnings),
        missing=(),
        redacted=redacted,
        command=UNSET if command is None else command,
        verdict=judged.verdict,
        because=judged.because,
        record=judged.record,
        comparable=comparison.comparable,
        base=base_side,
        new=new_side,
        size=size,
        step_delta_ns=told.step_delta_ns,
        step_delta_frac=_NO_BASE if not base_side.step_ns else _part(told.step_delta_ns, base_side.step_ns),
        step_delta_ci95_ns=_ends(comparison.size),
        attribution=_rows(told.rows, few),
        reasons=_rows(told.reasons, few),
        modules=_rows(told.modules, few),
        layers=facts.layers,
        kernels=facts.kernels,
        changed=tuple(
            copied(one, ComparedChange, can_explain=rows)
            for one, rows in zip(facts.changed, comparison.explained, strict=True)
        ),
        suspects=comparison.suspects,
        pairs=tuple(
            ComparedPair(
                base=place_of(base, pair.base),
                new=place_of(new, pair.new),
                by=pair.by,
                step_delta_ns=mean_delta_ns(pair.base, pair.new),
            )
            for pair in comparison.pairs
        ),
        gate=comparison.gate,
        expected=comparison.expected,
        run=UNSET if comparison.run is None else comparison.run,
    )


def _sides(facts: Facts) -> tuple[Side, Side]:
    """Both sides; their steps are made of the same rows, those that only one has included."""
    rows = budget_rows(facts.base_rank, facts.new_rank)
    named = {one.row for one in facts.attribution.rows}
    return (
        side_of(facts.base, facts.base_rank, {one.row: one.base.mean_ns for one in rows}, named),
        side_of(facts.new, facts.new_rank, {one.row: one.new.mean_ns for one in rows}, named),
    )


def _size(size: Size) -> ComparedSize:
    interval, whole_ns = size.interval, size.base_mean_ns
    if interval is None:
        return copied(size, ComparedSize, **each(_OF_INTERVAL, _FEW))
    return copied(
        size,
        ComparedSize,
        low_ns=interval.low_ns,
        high_ns=interval.high_ns,
        low_frac=_part(interval.low_ns, whole_ns),
        high_frac=_part(interval.high_ns, whole_ns),
        level_frac=interval.level,
        method=interval.method,
    )


def _ends(size: Size) -> OrMissing[Ends]:
    return (size.interval.low_ns, size.interval.high_ns) if size.interval else _FEW


def _part(ns: int, whole_ns: int) -> float | None:
    """Of nothing there is no part; never -0.0, which would not mirror."""
    if not whole_ns:
        return None
    return ns / whole_ns if ns else 0.0


def _rows(rows: Sequence[RowDelta], few: bool) -> tuple[ComparedRow, ...]:
    moved_ns = sum(abs(row.delta_ns) for row in rows)
    return tuple(_row(row, moved_ns, few) for row in rows)


def _row(row: RowDelta, moved_ns: int, few: bool) -> ComparedRow:
    """One row; a share of the difference itself would be more than the whole where rows go both ways."""
    own = copied(row, ComparedRow, ci95_ns=_interval(row, few), share_frac=_part(row.delta_ns, moved_ns))
    return because(own, each(("count_ns", "duration_ns", "overlap_ns"), _NO_WORK))


def _interval(row: RowDelta, few: bool) -> OrMissing[Ends]:
    """Its interval; `noise` has none of its own, which is not said where no row has one."""
    if row.low_ns is not None and row.high_ns is not None:
        return row.low_ns, row.high_ns
    if few:
        return _FEW
    return None if row.row == NOISE else _ONE_FIGURE

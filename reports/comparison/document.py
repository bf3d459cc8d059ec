"""Comparison -> plain dict: the JSON contract of `compare`, version 1.0. Keys may be added; none may change.

Every difference is new less base, positive is slower. Integers are ns per step. A value that could not be
told is None and has an entry in `missing`, whose path is its own or a parent's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from msgspec import structs

from heuristics.comparison.comparison import Comparison
from heuristics.comparison.difference.kernels import KernelDelta
from heuristics.comparison.difference.matched import budget_rows
from heuristics.comparison.difference.rows import RowDelta
from heuristics.comparison.facts import Facts
from heuristics.comparison.pairs import Pair
from heuristics.comparison.size import Size
from reports.comparison.gaps import gaps
from reports.comparison.sides import mean_delta_ns, place, side_section
from reports.document import SCHEMA_VERSION, Document
from traces.results.result import Result


def comparison_document(
    version: str,
    comparison: Comparison,
    warnings: Sequence[str] = (),
    redacted: bool = True,
) -> Document:
    """The whole document. Its values are plain: dict, list, str, int, float, bool, None."""
    facts, judged = comparison.facts, comparison.judged
    base, new = facts.base, facts.new
    told = facts.attribution
    base_side, new_side = _sides(facts)
    size = _size(comparison.size)
    document: Document = {
        "schema_version": SCHEMA_VERSION,
        "tool": {
            "name": "moe-diag",
            "version": version,
            "guidance": base.guidance if base.guidance == new.guidance else None,
        },
        "kind": "comparison",
        "warnings": list(warnings),
        "missing": [],
        "redacted": redacted,
        "verdict": judged.verdict,
        "because": list(judged.because),
        "record": judged.record,
        "comparable": {
            "state": comparison.comparable.state,
            "differences": [structs.asdict(one) for one in comparison.comparable.differences],
        },
        "base": base_side,
        "new": new_side,
        "size": size,
        "step_delta_ns": told.step_delta_ns,
        "step_delta_frac": _part(told.step_delta_ns, base_side["step_ns"]),
        "step_delta_ci95_ns": _ends(comparison.size),
        "attribution": _rows(told.rows),
        "reasons": _rows(told.reasons),
        "modules": _rows(told.modules),
        "layers": [asdict(one) for one in facts.layers],
        "kernels": None if facts.kernels is None else [_kernel(one) for one in facts.kernels],
        "changed": list(_changed(comparison)),
        "suspects": [
            {**asdict(one), **{key: list(getattr(one, key)) for key in ("rows", "because", "seen")}}
            for one in comparison.suspects
        ],
        "pairs": [_pair(base, new, one) for one in comparison.pairs],
        "gate": asdict(comparison.gate) if comparison.gate else None,
    }
    document["missing"] = [asdict(gap) for gap in gaps(document)]
    return document


def _sides(facts: Facts) -> tuple[Document, Document]:
    """Both sides; their steps are made of the same rows, those that only one has included."""
    rows = budget_rows(facts.base_rank, facts.new_rank)
    named = {one.row for one in facts.attribution.rows}
    return (
        side_section(facts.base, facts.base_rank, {one.row: one.base.mean_ns for one in rows}, named),
        side_section(facts.new, facts.new_rank, {one.row: one.new.mean_ns for one in rows}, named),
    )


def _size(size: Size) -> Document:
    interval, whole_ns = size.interval, size.base_mean_ns
    return {
        "source": size.source,
        "base_count": size.base_count,
        "new_count": size.new_count,
        "base_mean_ns": size.base_mean_ns,
        "new_mean_ns": size.new_mean_ns,
        "base_median_ns": size.base_median_ns,
        "new_median_ns": size.new_median_ns,
        "delta_ns": size.delta_ns,
        "delta_frac": size.delta_frac,
        "low_ns": interval.low_ns if interval else None,
        "high_ns": interval.high_ns if interval else None,
        "low_frac": _part(interval.low_ns, whole_ns) if interval else None,
        "high_frac": _part(interval.high_ns, whole_ns) if interval else None,
        "level_frac": interval.level if interval else None,
        "method": interval.method if interval else None,
    }


def _ends(size: Size) -> list[int] | None:
    return [size.interval.low_ns, size.interval.high_ns] if size.interval else None


def _part(ns: int, whole_ns: int) -> float | None:
    if not whole_ns:
        return None
    return ns / whole_ns if ns else 0.0  # never -0.0, which would not mirror


def _rows(rows: Sequence[RowDelta]) -> list[Document]:
    moved_ns = sum(abs(row.delta_ns) for row in rows)
    return [_row(row, moved_ns) for row in rows]


def _row(row: RowDelta, moved_ns: int) -> Document:
    """One row; `share_frac` is its part of all that its list moved, up and down, with the row's sign.

    A part of the difference itself would be more than the whole where rows go both ways.
    """
    values = asdict(row)
    low_ns, high_ns = values.pop("low_ns"), values.pop("high_ns")
    return {
        **values,
        "ci95_ns": None if low_ns is None or high_ns is None else [low_ns, high_ns],
        "parts": list(row.parts),
        "share_frac": _part(row.delta_ns, moved_ns),
    }


def _kernel(kernel: KernelDelta) -> Document:
    grids = {"base_grid": kernel.base_grid, "new_grid": kernel.new_grid}
    return {**asdict(kernel), **{key: _plain(grid) for key, grid in grids.items()}}


def _changed(comparison: Comparison) -> Iterator[Document]:
    for one, rows in zip(comparison.facts.changed, comparison.explained, strict=True):
        values = {**asdict(one), "base": _plain(one.base), "new": _plain(one.new)}
        yield {**values, "can_explain": list(rows)}


def _plain(value: object) -> object:
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def _pair(base: Result, new: Result, pair: Pair) -> Document:
    return {
        "base": place(base, pair.base),
        "new": place(new, pair.new),
        "by": pair.by,
        "step_delta_ns": mean_delta_ns(pair.base.steps, pair.new.steps),
    }

"""Differences with round numbers for the tests of suspects: rows that moved, each in a line."""

from __future__ import annotations

from typing import Any

from heuristics.comparison.difference.changed import difference
from heuristics.comparison.difference.rows import Attribution, Facts
from heuristics.comparison.difference.subject import Subject, Value
from heuristics.result.compared import ComparedChange, ComparedRow, KernelChange, KernelDelta, Source
from tests.doubles.comparison import rank, result, row
from traces.sections.rank import Rank

MS = 1_000_000


def moved(
    name: str,
    base_ms: int,
    new_ms: int,
    by: str = "duration",
    base_count: float = 100,
    new_count: float | None = None,
) -> ComparedRow:
    """A row of one step a side; all it moved by is of one part: count, duration, overlap or none told."""
    delta_ns = (new_ms - base_ms) * MS
    count_ns, duration_ns, overlap_ns = (
        (delta_ns if by == part else 0) if by else None for part in ("count", "duration", "overlap")
    )
    return ComparedRow(
        row=name,
        wall=None,
        delta_ns=delta_ns,
        count_ns=count_ns,
        duration_ns=duration_ns,
        overlap_ns=overlap_ns,
        base_ns=base_ms * MS,
        new_ns=new_ms * MS,
        base_count=base_count,
        new_count=base_count if new_count is None else new_count,
        parts=(),
        ci95_ns=None,
        share_frac=None,
    )


def change(what: str, base: Value, new: Value, source: Source = "configuration") -> ComparedChange:
    """Something that both sides say."""
    return difference(what, base, new, source)


def kernel_delta(key: str, change_: KernelChange, base_ms: float | None, new_ms: float | None) -> KernelDelta:
    """Kernels of one name that run once a step."""
    base_ns, new_ns = (None if ms is None else round(ms * MS) for ms in (base_ms, new_ms))
    return KernelDelta(
        name=f"{key} kernel",
        key=key,
        change=change_,
        delta_ns=(new_ns or 0) - (base_ns or 0),
        base_grid=None if base_ns is None else (1, 1, 1),
        new_grid=None if new_ns is None else (2, 1, 1),
        base_count=0.0 if base_ns is None else 1.0,
        new_count=0.0 if new_ns is None else 1.0,
        base_each_ns=base_ns,
        new_each_ns=new_ns,
    )


def facts(
    *rows: ComparedRow,
    changed: tuple[ComparedChange, ...] = (),
    kernels: tuple[KernelDelta, ...] = (),
    base: dict[str, Any] | None = None,
    new: dict[str, Any] | None = None,
    base_result: dict[str, Any] | None = None,
    new_result: dict[str, Any] | None = None,
) -> Facts:
    """A difference of two ranks of one step with these rows; `base`, `new`: fields of the ranks."""
    base_rank = _rank(rows, True, base or {})
    new_rank = _rank(rows, False, new or {})
    return Facts(
        Subject(result(base_rank, **(base_result or {})), base_rank),
        Subject(result(new_rank, **(new_result or {})), new_rank),
        Attribution(sum(one.delta_ns for one in rows), rows),
        (),
        kernels,
        changed,
    )


def _rank(rows: tuple[ComparedRow, ...], is_base: bool, fields: dict[str, Any]) -> Rank:
    """Rows of compute and communication are in the ledger too; the steps are 100 ms."""
    ledger = []
    for one in rows:
        count, ns = (one.base_count, one.base_ns) if is_base else (one.new_count, one.new_ns)
        if one.row.startswith(("compute.", "exposed_comm.")):
            ledger.append(row(one.row, ns, count=round(count)))
    return rank(*ledger, **{"lengths_ns": (100 * MS,), **fields})

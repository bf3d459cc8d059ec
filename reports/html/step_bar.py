"""The step as bars that add up: the median step and all used steps, by bucket and what each is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from reports.html.section import Table, exact_ms, share
from reports.sentences import replays_only

_BUCKETS: Final = ("compute", "exposed_comm", "exposed_copy", "idle")
_PARTS: Final = {
    "compute": "compute_by_class_ns",
    "exposed_comm": "exposed_comm_by_kind_ns",
    "exposed_copy": "exposed_copy_by_kind_ns",
}
_LETTER_FRAC: Final = 0.0078
"""Of a bar's width, that a letter of a name takes on a page of full width; a part with less room has none."""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a bar: its look, its name and figures, where it lies; `label` is empty where none fits."""

    key: str
    name: str
    said: str
    from_percent: str
    percent: str
    label: str


@dataclass(frozen=True, slots=True)
class Bar:
    """One stretch of time twice: whole buckets, and the rows they are made of."""

    title: str
    buckets: tuple[Part, ...]
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class StepPicture:
    """The bars, and the table that holds the same figures."""

    bars: tuple[Bar, ...]
    table: Table


Row = tuple[str, Sequence[int | None]]
"""Its name, and its time in each column: the step shown where there is one, and all of them."""


def step_picture(rank: dict[str, Any]) -> StepPicture:
    """Bars and table of one entry of `ranks[]`."""
    place = _shown_place(rank)
    rows = _rows(rank, place)
    titles = _titles(rank, place)
    near = "" if place is None else f" {titles[0]} is the one nearest to the median."
    columns = range(len(titles))
    totals = [sum(ns[at] or 0 for _, ns in rows) for at in columns]
    bars = tuple(_bar(titles[at], [(key, ns[at] or 0) for key, ns in rows], totals[at]) for at in columns)
    cells = [
        (key, *(cell for at in columns for cell in (exact_ms(ns[at]), share(ns[at], totals[at]))))
        for key, ns in rows
    ]
    cells.append(("sum", *(cell for total in totals for cell in (exact_ms(total), share(1.0)))))
    headers = ("Part", *(word for title in titles for word in (f"{title}, ms", "Share")))
    table = Table(
        f"The bars in figures; each column adds up exactly.{near}",
        headers,
        tuple(cells),
        numbers=2 * len(titles),
        keys=(*(key for key, _ in rows), ""),
        total=True,
    )
    return StepPicture(bars, table)


def parts_of(rows: Sequence[tuple[str, int]], total_ns: int) -> tuple[Part, ...]:
    """Pieces of one bar, side by side in the order of `rows`; those of no length are left out."""
    parts, before = [], 0
    for key, ns in rows:
        if ns > 0:
            frac = ns / total_ns
            label = f"{key.split('.', 1)[-1]} {share(frac)}"
            fitting = label if len(label) * _LETTER_FRAC < frac else ""
            said = f"{exact_ms(ns)} ms, {share(frac)}"
            parts.append(Part(key, key, said, f"{before / total_ns:.4%}", f"{frac:.4%}", fitting))
        before += ns
    return tuple(parts)


def _bar(title: str, rows: Sequence[tuple[str, int]], total_ns: int) -> Bar:
    buckets: dict[str, int] = {}
    for key, ns in rows:
        bucket = key.split(".")[0]
        buckets[bucket] = buckets.get(bucket, 0) + ns
    return Bar(title, parts_of([*buckets.items()], total_ns), parts_of(rows, total_ns))


def _rows(rank: dict[str, Any], place: int | None) -> list[Row]:
    """The ledger's budget, else what the buckets are made of; by bucket, the largest of all steps first."""
    told = [row for row in rank.get("ledger") or () if row["group"] == "budget"]
    if told:
        rows = [(row["row"], _columns(row["per_step_ns"], place)) for row in told]
    else:
        rows = [(key, (ns,)) for key, ns in _whole(rank)]
    order = {bucket: at for at, bucket in enumerate((*_BUCKETS, "busy"))}
    return sorted(rows, key=lambda row: (order.get(row[0].split(".")[0], len(order)), -(row[1][-1] or 0)))


def _whole(rank: dict[str, Any]) -> list[tuple[str, int]]:
    """Rows of a document without a ledger."""
    rows = []
    for bucket in _BUCKETS:
        parts = rank[_PARTS[bucket]] if bucket in _PARTS and not replays_only(rank) else None
        name = "busy" if bucket == "compute" and replays_only(rank) else bucket
        if parts:
            rows += [(f"{bucket}.{key}", ns) for key, ns in parts.items()]
        elif rank["budget_ns"][bucket] is not None:
            rows.append((name, rank["budget_ns"][bucket]))
    return rows


def _columns(per_step_ns: Sequence[int], place: int | None) -> tuple[int, ...]:
    whole = sum(per_step_ns)
    return (whole,) if place is None else (per_step_ns[place], whole)


def _shown_place(rank: dict[str, Any]) -> int | None:
    """The place of the step shown among those used; None where it would be all of them, or has no figures."""
    used = [one["index"] for one in rank["steps"]["used"]]
    step = (rank.get("timeline") or {}).get("step")
    return used.index(step) if rank.get("ledger") and len(used) > 1 and step in used else None


def _titles(rank: dict[str, Any], place: int | None) -> list[str]:
    used = rank["steps"]["used"]
    every = f"All {len(used)} steps" if len(used) > 1 else "The step" if used else "The window"
    return [every] if place is None else [f"Step {used[place]['index']}", every]

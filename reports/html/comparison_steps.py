"""Both steps one above the other: bars of the same scale and order, and what each is made of in figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from reports.document import Document
from reports.html.step_bar import Part
from reports.words import milliseconds

ROWS: Final = 14
"""Rows that are drawn each by itself; the others are one."""
_GROUPS: Final = (
    ("compute", "compute", ("compute", "busy")),
    ("exposed_comm", "communication without compute", ("exposed_comm",)),
    ("exposed_copy", "copies without compute", ("exposed_copy",)),
    ("idle", "nothing on the GPU", ()),
)
"""Buckets in the order of the bar: key, words, the first words of their rows. The last takes all others."""
_SMALLER: Final = "smaller"
_LABELLED_FRAC: Final = 0.07
"""Narrower parts have no room for their name."""


@dataclass(frozen=True, slots=True)
class StepBar:
    """One side's step; places are in percent of the longer of both."""

    side: str
    ms: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the table of both steps; `key` of its colour is None for a bucket's sum."""

    key: str | None
    name: str
    base: str
    new: str


@dataclass(frozen=True, slots=True)
class Steps:
    """Both bars; `legend` names the rows drawn, `lines` every row under its bucket, the steps last."""

    bars: tuple[StepBar, StepBar]
    legend: tuple[Line, ...]
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    group: int
    base_ns: int
    new_ns: int

    def side_ns(self, side: str) -> int:
        return self.base_ns if side == "base" else self.new_ns

    def line(self, key: str | None) -> Line:
        return Line(key, self.name, milliseconds(self.base_ns), milliseconds(self.new_ns))


def both_steps(document: Document) -> Steps:
    """The picture of `budget_rows`; of the attribution in documents that have none (before 0.2)."""
    rows = sorted(_rows(document), key=lambda row: (row.group, -row.base_ns - row.new_ns, row.name))
    by_size = sorted(rows, key=lambda row: (-max(row.base_ns, row.new_ns), row.name))
    drawn = [row for row in rows if row in by_size[:ROWS]]
    small = [row for row in rows if row not in by_size[:ROWS]]
    together = [_sum(f"{len(small)} smaller rows", len(_GROUPS), small)] if small else []
    whole = _sum("step", len(_GROUPS), rows)
    scale_ns = max(whole.base_ns, whole.new_ns) or 1
    segments = [*((row.name, row) for row in drawn), *((_SMALLER, row) for row in together)]
    return Steps(
        bars=(_bar("base", segments, scale_ns), _bar("new", segments, scale_ns)),
        legend=tuple(row.line(key) for key, row in segments),
        lines=(*_lines(rows), whole.line(None)),
    )


def _rows(document: Document) -> list[_Row]:
    base, new = (
        {one["row"]: one["mean_ns"] for one in document[side].get("budget_rows") or ()}
        for side in ("base", "new")
    )
    if not base:
        base, new = (
            {one["row"]: one[key] for one in document["attribution"]} for key in ("base_ns", "new_ns")
        )
    return [_Row(name, _group(name), base[name], new[name]) for name in base if base[name] or new[name]]


def _group(row: str) -> int:
    head = row.partition(".")[0]
    heads = [heads for _, _, heads in _GROUPS]
    return next((place for place, known in enumerate(heads) if head in known), len(_GROUPS) - 1)


def _sum(name: str, group: int, rows: list[_Row]) -> _Row:
    return _Row(name, group, sum(row.base_ns for row in rows), sum(row.new_ns for row in rows))


def _bar(side: str, segments: list[tuple[str, _Row]], scale_ns: int) -> StepBar:
    parts, at_ns = [], 0
    for key, row in segments:
        length_ns = row.side_ns(side)
        if length_ns > 0:
            is_wide = length_ns >= _LABELLED_FRAC * scale_ns
            parts.append(
                Part(
                    key=key,
                    name=row.name,
                    said=f"{milliseconds(length_ns)} ms in {side}",
                    from_percent=_percent(at_ns, scale_ns),
                    percent=_percent(length_ns, scale_ns),
                    label=row.name.rpartition(".")[2] if is_wide and key != _SMALLER else "",
                )
            )
        at_ns += length_ns
    return StepBar(side, milliseconds(at_ns), tuple(parts))


def _percent(time_ns: int, scale_ns: int) -> str:
    return f"{time_ns / scale_ns * 100:.3f}%"


def _lines(rows: list[_Row]) -> list[Line]:
    lines = []
    for place, (_, words, _) in enumerate(_GROUPS):
        if mine := [row for row in rows if row.group == place]:
            lines.append(_sum(words, place, mine).line(None))
            lines += [row.line(row.name) for row in mine]
    return lines

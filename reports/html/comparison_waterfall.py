"""From the step of base to that of new, row by row: bars as places in percent, and their figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, Literal

from reports.comparison.figures import added_share, exact, per_step, share
from reports.comparison.sentences import has_steps
from reports.document import Document
from reports.words import milliseconds

ROWS: Final = 10
"""Rows that get a bar of their own; the others are one."""
_NOT_TOLD: Final = "not told"
_EFFECTS: Final = ("count_ns", "duration_ns", "overlap_ns")
_MARGIN: Final = 0.18
"""Of the moved stretch, left free on either side of it."""
_WHOLE_FRAC: Final = 0.5
"""A stretch that is this much of the longer step is drawn from zero."""

Kind = Literal["base", "new", "slower", "faster", "noise"]


@dataclass(frozen=True, slots=True)
class Cells:
    """The figures of a row as they are printed, in ms with all decimals: `base` + `delta` = `new`."""

    base: str
    new: str
    delta: str
    share: str
    often: str
    effects: tuple[str, str, str]
    interval: str


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar. `before` and `after`: where the sum stands above and below it; None at the ends.

    `interval`: both ends of the 95 % interval of `after`, None where not told. `place`: of its row in the
    attribution, None for the steps and for rows put together.
    """

    name: str
    kind: Kind
    left: str
    width: str
    before: str | None
    after: str | None
    interval: tuple[str, str] | None
    cells: Cells
    place: int | None


@dataclass(frozen=True, slots=True)
class Waterfall:
    """Base, rows by size, noise, new. `whole`: whether it begins at zero."""

    bars: tuple[Bar, ...]
    whole: bool


def waterfall(document: Document, everything: bool) -> Waterfall | None:
    """The picture of the attribution; None where no row moved."""
    named = [row for row in document["attribution"] if row["row"] != "noise"]
    noise = [row for row in document["attribution"] if row["row"] == "noise"]
    shown = named if everything else named[:ROWS]
    rows = [*shown, *_together(named[len(shown) :]), *noise]
    if not named:
        return None
    axis = _Axis(document, rows)
    return Waterfall(tuple(_bars(document, rows, axis)), axis.start_ns == 0)


def _together(rows: list[Document]) -> list[Document]:
    """The rows beyond those shown as one; an effect only where every row tells it."""
    if not rows:
        return []
    sums = {
        key: None if any(row[key] is None for row in rows) else sum(row[key] for row in rows)
        for key in ("base_ns", "new_ns", "delta_ns", "base_count", "new_count", *_EFFECTS)
    }
    name = f"{len(rows)} smaller rows" if len(rows) > 1 else "1 smaller row"
    return [{**sums, "row": name, "share_frac": added_share(rows), "ci95_ns": None}]


class _Axis:
    """Times as places; it begins late where the moved stretch would be too short to see from zero."""

    def __init__(self, document: Document, rows: Sequence[Document]) -> None:
        sums = list(accumulate((row["delta_ns"] for row in rows), initial=document["base"]["step_ns"]))
        low_ns, high_ns = min(sums), max(sums)
        room_ns = round((high_ns - low_ns) * _MARGIN)
        is_whole = high_ns - low_ns >= high_ns * _WHOLE_FRAC
        self.start_ns = 0 if is_whole else max(0, low_ns - room_ns)
        self._length_ns = high_ns + room_ns - self.start_ns or 1

    def place(self, time_ns: int) -> str:
        return f"{min(max((time_ns - self.start_ns) / self._length_ns, 0), 1) * 100:.3f}%"

    def width(self, time_ns: int) -> str:
        return f"{time_ns / self._length_ns * 100:.3f}%"


def _bars(document: Document, rows: Sequence[Document], axis: _Axis) -> list[Bar]:
    base_ns, new_ns = document["base"]["step_ns"], document["new"]["step_ns"]
    what = "step" if has_steps(document) else "window"
    bars = [_end(f"{what} of base", "base", base_ns, axis)]
    sum_ns = base_ns
    for row in rows:
        bars.append(_bar(row, sum_ns, axis, document))
        sum_ns += row["delta_ns"]
    return [*bars, _end(f"{what} of new", "new", new_ns, axis)]


def _end(name: str, kind: Literal["base", "new"], step_ns: int, axis: _Axis) -> Bar:
    length = milliseconds(step_ns)
    cells = Cells(*((length, "") if kind == "base" else ("", length)), "", "", "", ("", "", ""), "")
    before, after = (None, axis.place(step_ns)) if kind == "base" else (axis.place(step_ns), None)
    width = axis.width(step_ns - axis.start_ns)
    return Bar(name, kind, "0%", width, before, after, None, cells, None)


def _bar(row: Document, sum_ns: int, axis: _Axis, document: Document) -> Bar:
    delta_ns, ends_ns = row["delta_ns"], row["ci95_ns"]
    kind: Kind = "noise" if row["row"] == "noise" else "slower" if delta_ns > 0 else "faster"
    return Bar(
        name=row["row"],
        kind=kind,
        left=axis.place(min(sum_ns, sum_ns + delta_ns)),
        width=axis.width(abs(delta_ns)),
        before=axis.place(sum_ns),
        after=axis.place(sum_ns + delta_ns),
        interval=(axis.place(sum_ns + ends_ns[0]), axis.place(sum_ns + ends_ns[1])) if ends_ns else None,
        cells=cells(row),
        place=place_of(document, row["row"]),
    )


def place_of(document: Document, row: str) -> int | None:
    """Which row of the attribution it is; None for none."""
    names = [one["row"] for one in document["attribution"]]
    return names.index(row) if row in names else None


def cells(row: Document) -> Cells:
    """The figures of any row of the attribution, of the reasons or of the modules."""
    base, new = per_step(row["base_count"]), per_step(row["new_count"])
    first, second, third = (_effect(row[key]) for key in _EFFECTS)
    return Cells(
        base=milliseconds(row["base_ns"]),
        new=milliseconds(row["new_ns"]),
        delta=exact(row["delta_ns"]),
        share=share(row["share_frac"]),
        often=base if base == new else f"{base} -> {new}",
        effects=(first, second, third),
        interval=" to ".join(map(exact, row["ci95_ns"])) if row["ci95_ns"] else "",
    )


def _effect(ns: int | None) -> str:
    return _NOT_TOLD if ns is None else exact(ns) if ns else "0"

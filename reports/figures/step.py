"""The step as a stacked bar that adds up, over a table of its parts by bucket; all ranks on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from reports.document import Document
from reports.figures.canvas import INNER, LINE, SMALL, Area, Panel
from reports.figures.legend import SWATCH, draw_legend, draw_swatch, legend_height
from reports.figures.lettering import fitted, inches
from reports.figures.paint import SOFT, paint_of
from reports.figures.rows import Bar, Row, draw_rows, rows_height
from reports.figures.stacks import Piece, draw_stack, quiet
from reports.figures.told import Rank, about_run, bucket_words, divisor, ms, per_step, share
from reports.words import kind_words, percent

BUCKETS: Final = ("compute", "exposed_comm", "exposed_copy", "idle")
_LEAST_FRAC: Final = 0.002
"""Parts below are added up as one of their bucket, where there are two or more."""
_SHOWN: Final = 13
_RANKS: Final = 16
_BAR, _AXIS, _STRIP = 0.62, 0.42, 0.2
_BETWEEN: Final = 0.24
_SHARE: Final = 0.56
_SMALLER: Final = SMALL - 0.5


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a bucket, in ns of all used steps."""

    key: str
    name: str
    ns: int


def step_panel(document: Document, place: int) -> Panel:
    """The budget of one rank."""
    rank = document["ranks"][place]
    buckets = {bucket: _parts(rank, bucket) for bucket in BUCKETS if rank["budget_ns"][bucket] is not None}
    longest = max(map(len, buckets.values()))
    height = _STRIP + _BAR + _AXIS + 0.12 + (longest + 1.3) * LINE
    what = "Where the step goes" if rank["steps"]["used"] else "Where the window goes"
    window = ms(rank["budget_ns"]["window"] / divisor(rank))
    return Panel(
        f"{what}: {window} ms, every nanosecond in one part",
        about_run(document, place, per_step(rank)),
        height,
        lambda area: _draw(area, rank, buckets),
    )


def _parts(rank: Rank, bucket: str) -> list[_Part]:
    """What a bucket is made of, the largest first; the ledger's rows where it tells them."""
    whole_ns, window_ns = rank["budget_ns"][bucket], rank["budget_ns"]["window"]
    rows = [one for one in rank.get("ledger") or () if one["group"] == "budget"]
    parts = [
        _Part(one["row"], _name(one["row"]), sum(one["per_step_ns"]))
        for one in rows
        if one["row"].split(".")[0] == bucket
    ]
    if sum(one.ns for one in parts) != whole_ns:
        parts = [_Part(bucket, "not told apart", whole_ns)] if whole_ns else []
    parts = sorted((one for one in parts if one.ns), key=lambda one: -one.ns)
    large = [one for one in parts if one.ns >= _LEAST_FRAC * window_ns][: _SHOWN - 1]
    small = parts[len(large) :]
    if len(small) < 2:
        return parts
    return [*large, _Part("", f"{len(small)} smaller", sum(one.ns for one in small))]


def _name(row: str) -> str:
    """A row by its last word: `expert dispatch`, `host code between calls`."""
    return kind_words(row.split(".")[-1]) if "." in row else "not told apart"


def _draw(area: Area, rank: Rank, buckets: dict[str, list[_Part]]) -> None:
    count, window_ns = divisor(rank), rank["budget_ns"]["window"]
    per_inch = window_ns / count / 1e6 / INNER
    axes = area.axes(0, 0, INNER, _STRIP + _BAR)
    axes.set(xlim=(0, window_ns / count / 1e6), ylim=(_STRIP + _BAR, 0))
    quiet(axes)
    axes.set_xlabel(per_step(rank), fontsize=SMALL - 0.5, color=SOFT, loc="left", labelpad=2)
    strip = [_whole(rank, bucket, count) for bucket in buckets]
    draw_stack(axes, _STRIP / 2 - 0.02, _STRIP - 0.05, strip, per_inch, SMALL - 1)
    pieces = [_piece(part, count) for parts in buckets.values() for part in parts]
    draw_stack(axes, _STRIP + _BAR / 2, _BAR, pieces, per_inch, SMALL)
    table = area.below(_STRIP + _BAR + _AXIS + 0.12)
    left = 0.0
    for width, (bucket, parts) in zip(_widths(rank, buckets), buckets.items(), strict=True):
        _draw_column(table, left, width, rank, bucket, parts)
        left += width + _BETWEEN


def _whole(rank: Rank, bucket: str, count: int) -> Piece:
    ns = rank["budget_ns"][bucket]
    name, part = bucket_words(rank, bucket), share(ns, rank["budget_ns"]["window"])
    return Piece(ns / count / 1e6, paint_of(bucket), (f"{name} {part}", name))


def _piece(part: _Part, count: int) -> Piece:
    time = ms(part.ns / count)
    return Piece(part.ns / count / 1e6, paint_of(part.key), (f"{part.name}\n{time} ms", f"{time} ms", time))


def _widths(rank: Rank, buckets: dict[str, list[_Part]]) -> list[float]:
    """Inches of each column, by what stands in it; the widest give way where the sheet ends."""
    needed = []
    for bucket, parts in buckets.items():
        head = _needed(rank, bucket_words(rank, bucket), rank["budget_ns"][bucket], bold=True)
        needed.append(max([head, *(SWATCH + _needed(rank, part.name, part.ns) for part in parts)]))
    room = INNER - (len(needed) - 1) * _BETWEEN
    widest = room
    for place, width in enumerate(ordered := sorted(needed)):
        widest = (room - sum(ordered[:place])) / (len(ordered) - place)
        if width > widest:
            break
    else:
        return needed
    return [min(width, widest) for width in needed]


def _needed(rank: Rank, name: str, ns: int, *, bold: bool = False) -> float:
    """Inches of a line, with some room between the name and its figures."""
    texts = (name, ms(ns / divisor(rank)))
    return sum(inches(text, _SMALLER, bold=bold) for text in texts) + _SHARE + 0.2


def _draw_column(
    area: Area, left: float, width: float, rank: Rank, bucket: str, parts: Sequence[_Part]
) -> None:
    """One bucket: its sum, then its parts with ms and share."""
    whole_ns = rank["budget_ns"][bucket]
    _line(area, left, width, 0, rank, bucket_words(rank, bucket), whole_ns, "bold")
    for place, part in enumerate(parts):
        draw_swatch(area, left, (place + 1.25) * LINE, paint_of(part.key))
        _line(area, left, width, place + 1.25, rank, part.name, part.ns, "normal")


def _line(
    area: Area, left: float, width: float, place: float, rank: Rank, name: str, ns: int, weight: str
) -> None:
    """A name on the left; ms and share on the right."""
    bold = weight == "bold"
    part, time = share(ns, rank["budget_ns"]["window"]), ms(ns / divisor(rank))
    indent = 0.0 if bold else SWATCH
    room = width - indent - _SHARE - inches(time, _SMALLER, bold=bold) - 0.08
    at = place * LINE
    area.text(left + indent, at, fitted(name, room, _SMALLER, bold=bold), _SMALLER, weight=weight)
    area.text(left + width - _SHARE, at, time, _SMALLER, weight=weight, ha="right")
    area.text(left + width, at, part, _SMALLER, weight=weight, ha="right")


def ranks_panel(document: Document) -> Panel:
    """The budgets of all ranks under each other, on one scale."""
    ranks = document["ranks"][:_RANKS]
    rows = [_rank_row(place, rank) for place, rank in enumerate(ranks)]
    more = len(document["ranks"]) - len(ranks)
    shown = f"the first {len(ranks)} of {len(document['ranks'])}" if more else f"all {len(ranks)}"
    entries = [(bucket_words(ranks[0], bucket), paint_of(bucket)) for bucket in BUCKETS]
    stepped = all(rank["steps"]["used"] for rank in ranks)
    unit = "ms per step (mean)" if stepped else "ms; of the window where no steps were found"
    names = list(dict.fromkeys(rank["trace"] for rank in document["ranks"]))
    of = names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")

    def draw(area: Area) -> None:
        draw_legend(area, 0, entries)
        draw_rows(area.below(legend_height(entries) + 0.08), rows, unit)

    height = legend_height(entries) + 0.08 + rows_height(rows)
    return Panel("Every rank beside the others", f"{of} \u00b7 {shown} ranks \u00b7 {unit}", height, draw)


def _rank_row(place: int, rank: Rank) -> Row:
    count, budget = divisor(rank), rank["budget_ns"]
    pieces = [
        Piece(ns / count / 1e6, paint_of(bucket), (percent(ns / budget["window"]),))
        for bucket in BUCKETS
        if (ns := budget[bucket]) is not None
    ]
    number = f"no. {place + 1}" if rank["rank"] is None else f"rank {rank['rank']}"
    steps = len(rank["steps"]["used"])
    said = f"{ms(budget['window'] / count)} ms{f', {steps} steps' if steps else ''}"
    return Row(f"{number}, GPU {rank['device']}", (Bar(tuple(pieces), said),))

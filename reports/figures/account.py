"""The account of lost time: why no compute ran, by reason."""

from __future__ import annotations

from typing import Final

from reports.document import Document
from reports.figures.canvas import Area, Panel, notice
from reports.figures.paint import paint_of
from reports.figures.rows import Bar, Row, draw_rows, rows_height
from reports.figures.stacks import Piece
from reports.figures.told import about_run, divisor, ms, per_step, share, why_untold
from reports.markdown_rank import absent_parts
from reports.words import kind_words, wall_words

_SHOWN: Final = 14


def account_panel(document: Document, place: int) -> Panel:
    """Reasons, the longest first; those beyond the first few are added up as one."""
    rank = document["ranks"][place]
    about = about_run(document, place, per_step(rank))
    if rank["absent_ns"] is None:
        return notice("Why no compute ran", about, why_untold(document, place, ["absent_ns"]))
    window_ns, count = rank["budget_ns"]["window"], divisor(rank)
    parts = sorted(((key, ns) for key, ns in absent_parts(rank["absent_ns"]) if ns), key=lambda one: -one[1])
    whole_ns = sum(ns for _, ns in parts)
    title = f"Why no compute ran: {ms(whole_ns / count)} ms, {share(whole_ns, window_ns)} of the time"
    if not parts:
        return notice(title, about, "Compute ran all the time.")
    shown = parts if len(parts) <= _SHOWN else parts[: _SHOWN - 1]
    rows = [_row(_words(key), key, ns, window_ns, count) for key, ns in shown]
    if smaller := parts[len(shown) :]:
        added_ns = sum(ns for _, ns in smaller)
        rows.append(_row(f"{len(smaller)} smaller reasons", "", added_ns, window_ns, count))

    def draw(area: Area) -> None:
        draw_rows(area, rows, per_step(rank))

    return Panel(title, about, rows_height(rows), draw)


def _words(reason: str) -> str:
    group, _, kind = reason.partition(".")
    return f"{wall_words(group)}: {kind_words(kind)}" if kind else wall_words(group)


def _row(name: str, key: str, ns: int, window_ns: int, count: int) -> Row:
    said = f"{ms(ns / count)} ms, {share(ns, window_ns)}"
    return Row(name, (Bar((Piece(ns / count / 1e6, paint_of(key)),), said),))

"""Communication by kind: exposed, while no compute runs, against blocking, while compute waits for it."""

from __future__ import annotations

from typing import Any, Final

from reports.document import Document
from reports.figures.canvas import LINE, SMALL, Area, Panel, notice
from reports.figures.legend import draw_legend, legend_height
from reports.figures.paint import COLOURS, HATCHES, SOFT, Paint
from reports.figures.rows import Bar, Row, draw_rows, rows_height
from reports.figures.stacks import Piece
from reports.figures.told import about_run, divisor, ms, per_step, share, why_untold
from reports.words import kind_words

_TITLE: Final = "Communication, exposed against blocking"
_EXPOSED: Final[Paint] = (COLOURS["vermillion"], "")
_BLOCKING: Final[Paint] = (COLOURS["dark"], HATCHES["slash"])
_COPIES: Final = "mem"
"""How the kinds begin that are copies: `memcpy_h2d`, `memset`."""
_ENTRIES: Final = (
    ("exposed: it runs and no compute does", _EXPOSED),
    ("blocking: compute waits for it", _BLOCKING),
)


def communication_panel(document: Document, place: int) -> Panel:
    """Kinds of communication, the most exposed first."""
    rank = document["ranks"][place]
    about = about_run(document, place, per_step(rank))
    exposed: dict[str, int] | None = rank["exposed_comm_by_kind_ns"]
    if exposed is None:
        return notice(_TITLE, about, why_untold(document, place, ["exposed_comm_by_kind_ns"]))
    blocking = _blocking(rank)
    kinds = sorted({**exposed, **(blocking or {})}, key=lambda kind: -exposed.get(kind, 0))
    hidden_ns = rank["hidden_comm_ns"]
    if not kinds:
        none = "No communication ran."
        why = f"None is exposed or blocks; {_ms_under_compute(rank, hidden_ns)}." if hidden_ns else none
        return notice(_TITLE, about, why)
    rows = [_row(rank, kind, exposed.get(kind, 0), blocking) for kind in kinds]
    notes = [] if not hidden_ns else [f"Hidden, and so in no bar: {_ms_under_compute(rank, hidden_ns)}."]
    if blocking is None:
        notes.append(f"Blocking: {why_untold(document, place, ['absent_ns'])}")
    entries = _ENTRIES if blocking is not None else _ENTRIES[:1]
    above = legend_height(entries) + len(notes) * LINE + 0.08

    def draw(area: Area) -> None:
        draw_legend(area, 0, entries)
        for index, note in enumerate(notes):
            area.text(0, legend_height(entries) + (index + 0.5) * LINE, note, SMALL, color=SOFT)
        draw_rows(area.below(above), rows, per_step(rank))

    return Panel(_title(rank), about, above + rows_height(rows), draw)


def _title(rank: dict[str, Any]) -> str:
    whole_ns = rank["budget_ns"]["exposed_comm"]
    part = share(whole_ns, rank["budget_ns"]["window"])
    return f"{_TITLE}: {ms(whole_ns / divisor(rank))} ms exposed, {part} of the time"


def _ms_under_compute(rank: dict[str, Any], hidden_ns: int) -> str:
    return f"{ms(hidden_ns / divisor(rank))} ms run under compute"


def _blocking(rank: dict[str, Any]) -> dict[str, int] | None:
    if rank["absent_ns"] is None:
        return None
    blocking = rank["absent_ns"]["blocking"]
    return {kind: ns for kind, ns in blocking.items() if not kind.startswith(_COPIES)}


def _row(rank: dict[str, Any], kind: str, exposed_ns: int, blocking: dict[str, int] | None) -> Row:
    times = [(exposed_ns, _EXPOSED)]
    if blocking is not None:
        times.append((blocking.get(kind, 0), _BLOCKING))
    count = divisor(rank)
    bars = tuple(Bar((Piece(ns / count / 1e6, paint),), f"{ms(ns / count)} ms") for ns, paint in times)
    return Row(kind_words(kind), bars)

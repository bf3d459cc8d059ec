"""The MoE layers: wall time of each module by pass, and how long compute waited for it."""

from __future__ import annotations

from typing import Any, Final

from reports.document import Document
from reports.figures.canvas import LINE, Area, Panel, notice
from reports.figures.legend import draw_legend, legend_height
from reports.figures.lettering import harmless
from reports.figures.paint import COLOURS, HATCHES, SOFT, Paint
from reports.figures.rows import Bar, Row, draw_rows, rows_height
from reports.figures.stacks import Piece
from reports.figures.told import about_run, divisor, ms, per_step, why_untold
from reports.text_moe import by_module, tax_sentence, total

_TITLE: Final = "MoE layers: wall time of each module by pass"
_PASSES: Final[dict[str, Paint]] = {
    "forward": (COLOURS["blue"], ""),
    "recompute": (COLOURS["yellow"], HATCHES["back"]),
    "backward": (COLOURS["sky"], HATCHES["slash"]),
}
_BLOCKING: Final[Paint] = (COLOURS["dark"], HATCHES["slash"])
_DENSE: Final = "none is needed"
"""How the cure of the gap begins where no tokens are routed at all."""


def moe_panel(document: Document, place: int) -> Panel | None:
    """Modules in the order of a layer; None where no tokens are routed."""
    rank = document["ranks"][place]
    about = about_run(document, place, f"{per_step(rank)}, hidden time included")
    moe = rank.get("moe")  # results of earlier versions have none
    if not moe:
        return (
            None if _dense(document, place) else notice(_TITLE, about, why_untold(document, place, ["moe"]))
        )
    if not moe["rows"]:
        return None
    rows = [_row(rank, module, by_pass) for module, by_pass in by_module(moe["rows"]).items()]
    there = [name for name in _PASSES if any(row["pass"] == name for row in moe["rows"])]
    entries = [(name, _PASSES[name]) for name in there]
    if any(total(by_pass, "blocking_ns") is not None for by_pass in by_module(moe["rows"]).values()):
        entries.append(("blocking: compute waits for it (no bar: it never does)", _BLOCKING))
    above = LINE + legend_height(entries) + 0.08

    def draw(area: Area) -> None:
        area.text(0, LINE / 2, _said(rank, moe), color=SOFT)
        draw_legend(area, LINE, entries)
        draw_rows(area.below(above), rows, per_step(rank))

    return Panel(_TITLE, about, above + rows_height(rows), draw)


def _dense(document: Document, place: int) -> bool:
    gaps = [gap for gap in document["missing"] if gap["path"] == f"ranks[{place}].moe"]
    return any(gap["cure"].startswith(_DENSE) for gap in gaps) or not gaps


def _said(rank: dict[str, Any], moe: dict[str, Any]) -> str:
    layers = "" if moe["layers"] is None else f"{moe['layers']} layers. "
    count = len(rank["steps"]["used"])
    return harmless(f"{layers}{tax_sentence(moe)}{f', of {count} steps together' if count > 1 else ''}.")


def _row(rank: dict[str, Any], module: str, by_pass: dict[str, dict[str, Any]]) -> Row:
    count = divisor(rank)
    pieces = []
    for name, paint in _PASSES.items():
        if ns := by_pass.get(name, {}).get("wall_ns"):
            time = ms(ns / count)
            pieces.append(Piece(ns / count / 1e6, paint, (f"{name} {time}", time)))
    wall_ns = total(by_pass, "wall_ns")
    bars = [Bar(tuple(pieces), "not told" if wall_ns is None else f"{ms(wall_ns / count)} ms")]
    if blocking_ns := total(by_pass, "blocking_ns"):
        piece = Piece(blocking_ns / count / 1e6, _BLOCKING)
        bars.append(Bar((piece,), f"{ms(blocking_ns / count)} ms blocking"))
    return Row(module.replace("_", " "), tuple(bars))

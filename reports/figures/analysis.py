"""One run as pictures: the step, its timeline, lost time, communication, MoE layers, use of the SMs."""

from __future__ import annotations

from reports.document import Document
from reports.figures.account import account_panel
from reports.figures.canvas import FigureForm, Header, Panel, draw_sheet
from reports.figures.communication import communication_panel
from reports.figures.moe import moe_panel
from reports.figures.occupancy import occupancy_panel
from reports.figures.step import ranks_panel, step_panel
from reports.figures.timeline import timeline_panel
from reports.figures.told import shown_rank
from reports.sentences import verdict_sentences, wall_sentence


def draw_analysis(document: Document, form: FigureForm) -> bytes:
    """The file: png and svg hold one tall sheet, pdf a page per picture; the verdict stands on top.

    Of many ranks the one is drawn where the verdict's wall was seen, after a picture of them all. A picture
    that this document cannot fill says why; MoE layers of a dense model are left out.
    """
    return draw_sheet(analysis_header(document), analysis_panels(document), form)


def analysis_header(document: Document) -> Header:
    """What was read, and the verdict in the words of every format."""
    names = list(dict.fromkeys(trace["name"] for trace in document["traces"]))
    said = names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")
    return Header(
        f"moe-diag {document['tool']['version']} \u00b7 {said}",
        f"Verdict: {wall_sentence(document)}",
        tuple(verdict_sentences(document)),
    )


def analysis_panels(document: Document) -> list[Panel]:
    """The pictures, in the order of a report."""
    place = shown_rank(document)
    panels = [ranks_panel(document)] if len(document["ranks"]) > 1 else []
    panels += [step_panel(document, place), timeline_panel(document, place), account_panel(document, place)]
    panels += [communication_panel(document, place)]
    panels += [panel for panel in (moe_panel(document, place),) if panel]
    return [*panels, occupancy_panel(document, place)]

"""Two runs as pictures: the size of the difference, the waterfall of where it lies, both steps."""

from __future__ import annotations

from reports.comparison.figures import harmless
from reports.comparison.sentences import difference_sentence, headline, side_sentence, verdict_sentences
from reports.document import Document
from reports.figures.canvas import FigureForm, Header, Panel, draw_sheet
from reports.figures.interval import interval_panel
from reports.figures.two_steps import two_steps_panel
from reports.figures.waterfall import waterfall_panel


def draw_comparison(document: Document, form: FigureForm) -> bytes:
    """The file: png and svg hold one tall sheet, pdf a page per picture; the verdict stands on top.

    Runs that are not comparable have neither interval nor waterfall: they would say nothing of a cause.
    """
    return draw_sheet(comparison_header(document), comparison_panels(document), form)


def comparison_header(document: Document) -> Header:
    """Both runs, and the verdict in the words of every format."""
    told: Document = harmless(document)
    sides = [f"{side}: {told[side]['name']}: {side_sentence(told[side])}." for side in ("base", "new")]
    limits = [one for one in told["comparable"]["differences"] if one["state"] == "with_differences"]
    return Header(
        f"moe-diag {told['tool']['version']} \u00b7 new against base",
        headline(told),
        (*sides, *verdict_sentences(told), *(f"Limits: {difference_sentence(one)}" for one in limits)),
    )


def comparison_panels(document: Document) -> list[Panel]:
    """The pictures, in the order of a report."""
    return [interval_panel(document), waterfall_panel(document), two_steps_panel(document)]

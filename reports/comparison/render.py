"""Format name -> renderer of a comparison. One line adds a format; its module loads when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from heuristics.result.compared import Compared
from reports.content.blocks import Detail, Page, View
from reports.document import Document
from reports.render import Figure, FigureForm, Renderer, as_json


def _text(document: Document, everything: bool) -> str:
    from reports.write.text import write_text

    return write_text(_page(document, everything), View())


def _markdown(document: Document, everything: bool) -> str:
    from reports.write.github import write_github

    return write_github(_page(document, everything), View())


def _jira(document: Document, everything: bool) -> str:
    from reports.write.jira import write_jira

    return write_jira(_page(document, everything), View())


def _page(document: Document, everything: bool) -> Page:
    from reports.content.comparison import page

    return page(_typed(document), Detail.FULL if everything else Detail.FIRST)


def _typed(document: Document) -> Compared:
    from reports.result.codec import decode

    return decode(document, Compared)


def _html(document: Document, everything: bool) -> str:
    from reports.html.comparison_page import render_comparison_html

    return render_comparison_html(document, everything)


def _csv(document: Document, everything: bool) -> str:
    from reports.write.csv_comparison import write_comparison_csv

    return write_comparison_csv(_typed(document))


def _perfetto(document: Document, everything: bool) -> str:
    from heuristics.result.compared import Compared
    from reports.comparison.perfetto import render_comparison_perfetto
    from reports.result.codec import decode

    return render_comparison_perfetto(decode(document, Compared), everything)


def _figure(form: FigureForm, document: Document, everything: bool) -> bytes:
    from heuristics.result.compared import Compared
    from reports.figures.comparison import draw_comparison
    from reports.result.codec import decode

    return draw_comparison(decode(document, Compared), form)


COMPARISON_RENDERERS: Final[Mapping[str, Renderer]] = {
    "text": _text,
    "markdown": _markdown,
    "jira": _jira,
    "html": _html,
    "csv": _csv,
    "json": as_json,
    "perfetto": _perfetto,
}

COMPARISON_FIGURES: Final[Mapping[str, Figure]] = {
    "png": partial(_figure, "png"),
    "svg": partial(_figure, "svg"),
    "pdf": partial(_figure, "pdf"),
}

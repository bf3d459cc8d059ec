"""Format name -> renderer. One line adds a format; a renderer's module loads when its format is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Literal

from heuristics.result.result import Result
from reports.content.blocks import Detail, Page, View
from reports.document import Document
from reports.emit import FRAMEWORKS, emit_config
from reports.result.codec import decode
from reports.result.json_text import render_json

Renderer = Callable[[Document, bool], str]
"""Of a document, and whether to show every fix and refusal where a reader would be shown a few."""
FigureForm = Literal["png", "svg", "pdf"]
Figure = Callable[[Document, bool], bytes]
"""The same as a picture, which always shows one selection."""


def _page(document: Document, everything: bool) -> Page:
    from reports.content.analysis import page

    return page(decode(document, Result), _detail(everything))


def _detail(everything: bool) -> Detail:
    return Detail.FULL if everything else Detail.FIRST


def _text(document: Document, everything: bool) -> str:
    from reports.write.text import write_text

    return write_text(_page(document, everything), View())


def _markdown(document: Document, everything: bool) -> str:
    from reports.write.github import write_github

    return write_github(_page(document, everything), View())


def _jira(document: Document, everything: bool) -> str:
    from reports.write.jira import write_jira

    return write_jira(_page(document, everything), View())


def _html(document: Document, everything: bool) -> str:
    from reports.html.page import render_html

    return render_html(document, everything)


def _csv(document: Document, everything: bool) -> str:
    from reports.write.csv_analysis import write_csv

    return write_csv(decode(document, Result), _detail(everything))


def _perfetto(document: Document, everything: bool) -> str:
    from heuristics.result.result import Result
    from reports.perfetto import render_perfetto
    from reports.result.codec import decode

    return render_perfetto(decode(document, Result), everything)


def _check_page(document: Document, everything: bool) -> Page:
    from reports.content.check import page

    return page(decode(document, Result), _detail(everything))


def _check_text(document: Document, everything: bool) -> str:
    from reports.write.text import write_text

    return write_text(_check_page(document, everything), View())


def _check_markdown(document: Document, everything: bool) -> str:
    from reports.write.github import write_github

    return write_github(_check_page(document, everything), View())


def _patch(framework: str, document: Document, everything: bool) -> str:
    """One change whatever is asked for."""
    return emit_config(framework, decode(document, Result))


def as_json(document: Document, everything: bool) -> str:
    """The document itself; it always holds everything."""
    return render_json(document)


def _figure(form: FigureForm, document: Document, everything: bool) -> bytes:
    from heuristics.result.result import Result
    from reports.figures.analysis import draw_analysis
    from reports.result.codec import decode

    return draw_analysis(decode(document, Result), form)


_PATCHES: Final[Mapping[str, Renderer]] = {name: partial(_patch, name) for name in FRAMEWORKS}

RENDERERS: Final[Mapping[str, Renderer]] = {
    "text": _text,
    "markdown": _markdown,
    "jira": _jira,
    "html": _html,
    "csv": _csv,
    "json": as_json,
    "perfetto": _perfetto,
    **_PATCHES,
}

FIGURES: Final[Mapping[str, Figure]] = {
    "png": partial(_figure, "png"),
    "svg": partial(_figure, "svg"),
    "pdf": partial(_figure, "pdf"),
}

CHECK_RENDERERS: Final[Mapping[str, Renderer]] = {
    "text": _check_text,
    "markdown": _check_markdown,
    "json": as_json,
    **_PATCHES,
}
"""The same for a configuration that was judged without a trace."""

EXTENSIONS: Final[Mapping[str, str]] = {
    "text": "txt",
    "markdown": "md",
    "jira": "jira.txt",
    "html": "html",
    "csv": "csv",
    "json": "json",
    "png": "png",
    "svg": "svg",
    "pdf": "pdf",
    "perfetto": "perfetto.json",
    "bridge": "yaml",
    "megatron-lm": "sh",
}
"""File name extension of each format, for `-o .`."""

BINARY: Final = frozenset({"png", "pdf"})
"""Formats that are no text: they go to a file."""

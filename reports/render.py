"""Format name -> renderer. One line adds a format; a renderer's module loads when its format is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Literal

from reports.document import Document
from reports.emit import FRAMEWORKS, emit_config
from reports.result.json_text import render_json

Renderer = Callable[[Document, bool], str]
"""Of a document, and whether to show every fix and refusal where a reader would be shown a few."""
FigureForm = Literal["png", "svg", "pdf"]
Figure = Callable[[Document, bool], bytes]
"""The same as a picture, which always shows one selection."""


def _text(document: Document, everything: bool) -> str:
    from reports.text import render_text

    return render_text(document, everything)


def _markdown(document: Document, everything: bool) -> str:
    from reports.markdown import render_markdown

    return render_markdown(document, everything)


def _jira(document: Document, everything: bool) -> str:
    from reports.jira import render_jira

    return render_jira(document, everything)


def _html(document: Document, everything: bool) -> str:
    from reports.html.page import render_html

    return render_html(document, everything)


def _csv(document: Document, everything: bool) -> str:
    from reports.csv_report import render_csv

    return render_csv(document, everything)


def _perfetto(document: Document, everything: bool) -> str:
    from reports.perfetto import render_perfetto

    return render_perfetto(document, everything)


def _check_text(document: Document, everything: bool) -> str:
    from reports.text_check import render_check

    return render_check(document, everything)


def _check_markdown(document: Document, everything: bool) -> str:
    from reports.markdown_check import render_check_markdown

    return render_check_markdown(document, everything)


def as_json(document: Document, everything: bool) -> str:
    """The document itself; it always holds everything."""
    return render_json(document)


def _figure(form: FigureForm, document: Document, everything: bool) -> bytes:
    from reports.figures.analysis import draw_analysis

    return draw_analysis(document, form)


_PATCHES: Final[Mapping[str, Renderer]] = {name: partial(emit_config, name) for name in FRAMEWORKS}

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

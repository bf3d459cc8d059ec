"""Format name -> writer of a result. One line adds a format; its module loads when it is asked for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Final, Literal

from msgspec import UNSET

from heuristics.result.compared import Compared
from heuristics.result.result import Result
from reports.content.blocks import Detail, Page, View
from reports.frameworks import FRAMEWORKS
from reports.result.codec import encode
from reports.result.json_text import render_json

Whole = Result | Compared
FigureForm = Literal["png", "svg", "pdf"]


@dataclass(frozen=True, slots=True)
class Asked:
    """How much a result is to say, and on what; pictures and data always have one selection.

    `brief`: its JSON in short, for programs.
    """

    detail: Detail = Detail.FIRST
    view: View = field(default_factory=View)
    brief: bool = False


Writer = Callable[[Whole, Asked], str | bytes]


class Kind(Enum):
    """What a result is of."""

    ANALYSIS = "analysis"
    COMPARISON = "comparison"
    CONFIGURATION = "configuration"


def kind_of(result: Whole) -> Kind:
    if isinstance(result, Compared):
        return Kind.COMPARISON
    return Kind.ANALYSIS if result.about is UNSET or result.traces else Kind.CONFIGURATION


def page_of(result: Whole, detail: Detail) -> Page:
    if isinstance(result, Compared):
        from reports.content.comparison import page as compared

        return compared(result, detail)
    if kind_of(result) is Kind.CONFIGURATION:
        from reports.content.analysis.check import page as checked

        return checked(result, detail)
    from reports.content.analysis import page as analysed

    return analysed(result, detail)


def _text(result: Whole, asked: Asked) -> str:
    from reports.write.text import write_text

    return write_text(page_of(result, asked.detail), asked.view)


def _markdown(result: Whole, asked: Asked) -> str:
    from reports.write.github import write_github

    return write_github(page_of(result, asked.detail), asked.view)


def _jira(result: Whole, asked: Asked) -> str:
    from reports.write.jira import write_jira

    return write_jira(page_of(result, asked.detail), asked.view)


def _html(result: Whole, asked: Asked) -> str:
    if isinstance(result, Compared):
        from reports.write.html.comparison import write_comparison_html

        return write_comparison_html(result, asked.view)
    from reports.write.html.page import write_analysis_html, write_html

    if kind_of(result) is Kind.CONFIGURATION:
        return write_html(page_of(result, Detail.FULL), asked.view)
    return write_analysis_html(result, asked.view)


def _csv(result: Whole, asked: Asked) -> str:
    if isinstance(result, Compared):
        from reports.write.csv_tables import write_comparison_csv

        return write_comparison_csv(result)
    from reports.write.csv_tables import write_csv

    return write_csv(result, asked.detail)


def _json(result: Whole, asked: Asked) -> str:
    if asked.brief and not isinstance(result, Compared):
        from reports.write.brief import write_brief

        return write_brief(result)
    return render_json(encode(result))


def _perfetto(result: Whole, asked: Asked) -> str:
    if isinstance(result, Compared):
        from reports.write.perfetto.comparison import write_comparison_perfetto

        return write_comparison_perfetto(result, asked.detail)
    from reports.write.perfetto.analysis import write_perfetto

    return write_perfetto(result, asked.detail)


def _figure(form: FigureForm, result: Whole, asked: Asked) -> bytes:
    if isinstance(result, Compared):
        from reports.write.figures.comparison import draw_comparison

        return draw_comparison(result, form)
    from reports.write.figures.analysis import draw_analysis

    return draw_analysis(result, form)


def _patch(framework: str, result: Whole, asked: Asked) -> str:
    from reports.emit import emit_config

    assert isinstance(result, Result), "two runs have no plan"
    return emit_config(framework, result)


WRITERS: Final[Mapping[str, Writer]] = {
    "text": _text,
    "markdown": _markdown,
    "jira": _jira,
    "html": _html,
    "csv": _csv,
    "json": _json,
    "png": partial(_figure, "png"),
    "svg": partial(_figure, "svg"),
    "pdf": partial(_figure, "pdf"),
    "perfetto": _perfetto,
    **{name: partial(_patch, name) for name in FRAMEWORKS},
}

_OF_TRACES: Final = tuple(form for form in WRITERS if form not in FRAMEWORKS)
FORMS: Final[Mapping[Kind, tuple[str, ...]]] = {
    Kind.ANALYSIS: tuple(WRITERS),
    Kind.COMPARISON: _OF_TRACES,
    Kind.CONFIGURATION: ("text", "markdown", "jira", "html", "json", *FRAMEWORKS),
}
"""The formats that each kind of result has."""

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

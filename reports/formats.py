"""The formats, each one row: the command line, completion and every writer of files read this
table.

Nothing heavy is loaded with it: a writer loads when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from traces.errors import UsageError
from traces.frozen import frozen

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from heuristics.result.compared import Compared
    from heuristics.result.result import Merged, Result
    from heuristics.result.tool import OfKind
    from reports.content.page import Asked, Detail, Page

    Whole = Result | OfKind | Merged

FigureForm = Literal["png", "svg", "pdf"]


class ResultKind(StrEnum):
    """What a result is of, as its document says."""

    ANALYSIS = "analysis"
    COMPARISON = "comparison"
    CONFIGURATION = "configuration"
    FILES = "files_comparison"
    LAYOUTS = "layouts"
    RUN = "run"


def kind_of(result: Whole) -> ResultKind:
    """What a document names itself; the result of one run has no name."""
    if (kind_name := getattr(result, "kind", None)) is not None:
        return ResultKind(kind_name)
    from msgspec import UNSET

    run = _run(result)
    if run.about is UNSET or run.traces:
        return ResultKind.ANALYSIS
    return ResultKind.CONFIGURATION


def _of_two(result: Whole) -> TypeIs[Compared]:
    return kind_of(result) is ResultKind.COMPARISON


def _of_ranks(result: Whole) -> TypeIs[Merged]:
    return kind_of(result) is ResultKind.RUN


def page_of(result: Whole, detail: Detail, rows: int | None = None) -> Page:
    """`rows`: of the terminal that shows it, where it is taller than a first screen needs."""
    if _of_ranks(result):
        from reports.content.analysis.run import page as merged

        return merged(result)
    if (kind := kind_of(result)) is ResultKind.ANALYSIS:
        from reports.content.analysis import page as analysed
        from reports.content.page import SCREEN

        return analysed(_run(result), detail, rows or SCREEN)
    page: Page = import_module(_PAGES[kind]).page(result, detail)
    return page


_PAGES: Final = {
    ResultKind.COMPARISON: "reports.content.comparison",
    ResultKind.FILES: "reports.content.comparison",
    ResultKind.LAYOUTS: "reports.content.layouts",
    ResultKind.CONFIGURATION: "reports.content.analysis.check",
}
"""The module whose `page` shows a result."""


def _text(result: Whole, request: Asked) -> str:
    from reports.write.text import write_text

    return write_text(
        request.head.over(page_of(result, request.detail, request.view.rows)), request.view
    )


def _ticket(form: Literal["github", "jira"], result: Whole, request: Asked) -> str:
    from reports.write.github import write_github
    from reports.write.jira import write_jira

    write = {"github": write_github, "jira": write_jira}[form]
    return write(request.head.over(page_of(result, request.detail)), request.view)


def _html(result: Whole, request: Asked) -> str:
    if _of_two(result):
        from reports.write.html.comparison import write_comparison_html

        return write_comparison_html(result, request.view, request.head)
    from reports.content.page import Detail
    from reports.write.html.page import write_analysis_html, write_html, write_run_html

    if _of_ranks(result):
        return write_run_html(result, request.view, request.head)
    if kind_of(result) is ResultKind.ANALYSIS:
        return write_analysis_html(_run(result), request.view, request.head)
    return write_html(request.head.over(page_of(result, Detail.FULL)), request.view)


def _json(result: Whole, request: Asked) -> str:
    if request.brief:
        from reports.write.brief import write_brief, write_run_brief

        if _of_ranks(result):
            return write_run_brief(result)
        if kind_of(result) in _PLANNED:
            return write_brief(_run(result))
    from reports.result.codec import encode
    from reports.result.json_text import render_json

    return render_json(encode(result))


def _perfetto(result: Whole, request: Asked) -> str:
    if _of_two(result):
        from reports.write.perfetto.comparison import write_comparison_perfetto

        return write_comparison_perfetto(result, request.detail)
    from reports.write.perfetto.analysis import write_perfetto

    return write_perfetto(_run(result), request.detail)


def _figure(form: FigureForm, result: Whole, request: Asked) -> bytes:
    from reports.write.figures.canvas import drawn

    if _of_two(result):
        from reports.write.figures.comparison import draw_comparison

        return drawn(draw_comparison, result, form, request.head)
    if _of_ranks(result):
        from reports.write.figures.run import draw_run

        return drawn(draw_run, result, form, request.head)
    from reports.write.figures.analysis import draw_analysis

    return drawn(draw_analysis, _run(result), form, request.head)


def _patch(framework: str, result: Whole, request: Asked) -> str:
    from reports.emit import emit_config

    return emit_config(framework, _run(result))


def _run(result: Whole) -> Result:
    """What is of one run: two have no plan, and no table of their own."""
    from heuristics.result.result import Result

    assert isinstance(result, Result), "a format of one run"
    return result


@frozen
class Format:
    """How a result is written, and what its file ends in.

    `kinds`: the results that have it. `binary`: no text, so it goes to a file. `headed`: people
    read it, so it has a title.
    """

    write: Callable[[Whole, Asked], str | bytes]
    extension: str
    kinds: frozenset[ResultKind] = frozenset({ResultKind.ANALYSIS, ResultKind.COMPARISON})
    binary: bool = False
    headed: bool = True


_EVERY: Final = frozenset(ResultKind)
_DRAWN: Final = frozenset({ResultKind.ANALYSIS, ResultKind.COMPARISON, ResultKind.RUN})
_PLANNED: Final = frozenset({ResultKind.ANALYSIS, ResultKind.CONFIGURATION})

_REPORTS: Final = {
    "text": Format(_text, "txt", _EVERY),
    "markdown": Format(partial(_ticket, "github"), "md", _EVERY),
    "jira": Format(partial(_ticket, "jira"), "jira.txt", _EVERY),
    "html": Format(_html, "html", _EVERY),
    "json": Format(_json, "json", _EVERY, headed=False),
    "png": Format(partial(_figure, "png"), "png", _DRAWN, binary=True),
    "svg": Format(partial(_figure, "svg"), "svg", _DRAWN),
    "pdf": Format(partial(_figure, "pdf"), "pdf", _DRAWN, binary=True),
    "perfetto": Format(_perfetto, "perfetto.json", headed=False),
}
"""By name, in the order of the help. Jira's is asked for as a flavor of markdown."""
_PATCHES: Final = {
    "bridge": Format(partial(_patch, "bridge"), "yaml", _PLANNED, headed=False),
    "megatron-lm": Format(partial(_patch, "megatron-lm"), "sh", _PLANNED, headed=False),
}
FORMATS: Final = {**_REPORTS, **_PATCHES}
FRAMEWORKS: Final = tuple(_PATCHES)
"""What a plan's first step is written for as a patch, asked for by `--emit-config`."""


def named(kind: ResultKind) -> tuple[str, ...]:
    """The formats of a kind of results that a command line may name."""
    return tuple(
        name for name, report in _REPORTS.items() if kind in report.kinds and name != "jira"
    )


def form_of_file(place: str) -> str:
    """The format that the name of a file ends in, the longest ending first; text for a name without
    one.

    Raises `UsageError` for an ending of no format.
    """
    fits = [name for name, report in _REPORTS.items() if place.endswith(f".{report.extension}")]
    if fits:
        return max(fits, key=lambda name: len(FORMATS[name].extension))
    path = Path(place)
    # what exists is refused by its own words
    if not path.suffix or path.exists() or place.endswith("/"):
        return "text"
    endings = ", ".join(f".{report.extension}" for report in _REPORTS.values())
    raise UsageError(
        f"no format ends in {path.suffix!r}. End the name in one of {endings}, or give -f."
    )


def as_bytes(content: str | bytes) -> bytes:
    """A text as UTF-8; half a character of a foreign name becomes an escape, as JSON writes it."""
    if isinstance(content, str):
        return content.encode(errors="backslashreplace")
    return content

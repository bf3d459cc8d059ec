"""The formats, each one row: the command line, completion and every writer of files read this table.

Nothing heavy is loaded with it: a writer loads when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from traces.errors import UsageError

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from heuristics.result.compared import Compared
    from heuristics.result.compared_files import ComparedFiles
    from heuristics.result.layouts import Layouts
    from heuristics.result.result import Merged, Result
    from heuristics.result.tool import OfKind
    from reports.content.blocks import Asked, Detail, Page

    Whole = Result | OfKind | Merged

FigureForm = Literal["png", "svg", "pdf"]


class Kind(Enum):
    """What a result is of, as its document says."""

    ANALYSIS = "analysis"
    COMPARISON = "comparison"
    CONFIGURATION = "configuration"
    FILES = "files_comparison"
    LAYOUTS = "layouts"
    RUN = "run"


def kind_of(result: Whole) -> Kind:
    """What a document names itself; the result of one run has no name."""
    if (named := getattr(result, "kind", None)) is not None:
        return Kind(named)
    from msgspec import UNSET

    run = _run(result)
    return Kind.ANALYSIS if run.about is UNSET or run.traces else Kind.CONFIGURATION


def _of_two(result: Whole) -> TypeIs[Compared]:
    return kind_of(result) is Kind.COMPARISON


def _of_files(result: Whole) -> TypeIs[ComparedFiles]:
    return kind_of(result) is Kind.FILES


def _of_layouts(result: Whole) -> TypeIs[Layouts]:
    return kind_of(result) is Kind.LAYOUTS


def _of_ranks(result: Whole) -> TypeIs[Merged]:
    return kind_of(result) is Kind.RUN


def page_of(result: Whole, detail: Detail, rows: int | None = None) -> Page:
    """`rows`: of the terminal that shows it, where it is taller than a first screen needs."""
    if _of_two(result) or _of_files(result):
        from reports.content.comparison import page as compared

        return compared(result, detail)
    if _of_layouts(result):
        from reports.content.layouts import page as planned

        return planned(result, detail)
    if _of_ranks(result):
        from reports.content.analysis.run import page as merged

        return merged(result)
    if kind_of(result) is Kind.CONFIGURATION:
        from reports.content.analysis.check import page as checked

        return checked(_run(result), detail)
    from reports.content.analysis import page as analysed

    return analysed(_run(result), detail) if rows is None else analysed(_run(result), detail, rows)


def _page(result: Whole, asked: Asked) -> Page:
    return asked.head.over(page_of(result, asked.detail))


def _text(result: Whole, asked: Asked) -> str:
    from reports.write.text import write_text

    return write_text(asked.head.over(page_of(result, asked.detail, asked.view.rows)), asked.view)


def _markdown(result: Whole, asked: Asked) -> str:
    from reports.write.github import write_github

    return write_github(_page(result, asked), asked.view)


def _jira(result: Whole, asked: Asked) -> str:
    from reports.write.jira import write_jira

    return write_jira(_page(result, asked), asked.view)


def _html(result: Whole, asked: Asked) -> str:
    if _of_two(result):
        from reports.write.html.comparison import write_comparison_html

        return write_comparison_html(result, asked.view, asked.head)
    from reports.content.blocks import Detail
    from reports.write.html.page import write_analysis_html, write_html

    if _of_ranks(result):
        from reports.write.html.page import write_run_html

        return write_run_html(result, asked.view, asked.head)
    if _of_files(result) or _of_layouts(result) or kind_of(result) is Kind.CONFIGURATION:
        return write_html(asked.head.over(page_of(result, Detail.FULL)), asked.view)
    return write_analysis_html(_run(result), asked.view, asked.head)


def _json(result: Whole, asked: Asked) -> str:
    if asked.brief and _of_ranks(result):
        from reports.write.brief import write_run_brief

        return write_run_brief(result)
    if asked.brief and not _of_two(result) and not _of_layouts(result):
        from reports.write.brief import write_brief

        return write_brief(_run(result))
    from reports.result.codec import encode
    from reports.result.json_text import render_json

    return render_json(encode(result))


def _perfetto(result: Whole, asked: Asked) -> str:
    if _of_two(result):
        from reports.write.perfetto.comparison import write_comparison_perfetto

        return write_comparison_perfetto(result, asked.detail)
    from reports.write.perfetto.analysis import write_perfetto

    return write_perfetto(_run(result), asked.detail)


def _figure(form: FigureForm, result: Whole, asked: Asked) -> bytes:
    if _of_two(result):
        from reports.write.figures.comparison import draw_comparison

        return draw_comparison(result, form, asked.head)
    if _of_ranks(result):
        from reports.write.figures.run import draw_run

        return draw_run(result, form, asked.head)
    from reports.write.figures.analysis import draw_analysis

    return draw_analysis(_run(result), form, asked.head)


def _patch(framework: str, result: Whole, asked: Asked) -> str:
    from reports.emit import emit_config

    return emit_config(framework, _run(result))


def _run(result: Whole) -> Result:
    """What is of one run: two have no plan, and no table of their own."""
    from heuristics.result.result import Result

    assert isinstance(result, Result), "a format of one run"
    return result


@dataclass(frozen=True, slots=True)
class Format:
    """How a result is written, and what its file ends in.

    `kinds`: the results that have it. `binary`: no text, so it goes to a file. `patch`: what a plan sets,
    asked for by `--emit-config`. `headed`: people read it, so it has a title.
    """

    write: Callable[[Whole, Asked], str | bytes]
    extension: str
    kinds: frozenset[Kind] = frozenset({Kind.ANALYSIS, Kind.COMPARISON})
    binary: bool = False
    patch: bool = False
    headed: bool = True


_EVERY: Final = frozenset(Kind)
_DRAWN: Final = frozenset({Kind.ANALYSIS, Kind.COMPARISON, Kind.RUN})
_PLANNED: Final = frozenset({Kind.ANALYSIS, Kind.CONFIGURATION})

FORMATS: Final[Mapping[str, Format]] = {
    "text": Format(_text, "txt", _EVERY),
    "markdown": Format(_markdown, "md", _EVERY),
    "jira": Format(_jira, "jira.txt", _EVERY),
    "html": Format(_html, "html", _EVERY),
    "json": Format(_json, "json", _EVERY, headed=False),
    "png": Format(partial(_figure, "png"), "png", _DRAWN, binary=True),
    "svg": Format(partial(_figure, "svg"), "svg", _DRAWN),
    "pdf": Format(partial(_figure, "pdf"), "pdf", _DRAWN, binary=True),
    "perfetto": Format(_perfetto, "perfetto.json", headed=False),
    "bridge": Format(partial(_patch, "bridge"), "yaml", _PLANNED, patch=True, headed=False),
    "megatron-lm": Format(partial(_patch, "megatron-lm"), "sh", _PLANNED, patch=True, headed=False),
}
"""By name, in the order of the help. Jira's is asked for as a flavor of markdown."""

FRAMEWORKS: Final = tuple(name for name, one in FORMATS.items() if one.patch)
"""What a plan's first step is written for as a patch."""


def named(kind: Kind) -> tuple[str, ...]:
    """The formats of a kind of results that a command line may name."""
    return tuple(
        name for name, one in FORMATS.items() if kind in one.kinds and not one.patch and name != "jira"
    )


def form_of_file(place: str) -> str:
    """The format that the name of a file ends in, the longest ending first; text for a name without one.

    Raises `UsageError` for an ending of no format.
    """
    fits = [name for name, one in FORMATS.items() if not one.patch and place.endswith(f".{one.extension}")]
    if fits:
        return max(fits, key=lambda name: len(FORMATS[name].extension))
    path = Path(place)
    if not path.suffix or path.exists() or place.endswith("/"):  # what exists is refused by its own words
        return "text"
    there = ", ".join(f".{one.extension}" for one in FORMATS.values() if not one.patch)
    raise UsageError(f"no format ends in {path.suffix!r}. End the name in one of {there}, or give -f.")


def as_bytes(content: str | bytes) -> bytes:
    """A text as UTF-8; half a character of a foreign name becomes an escape, as JSON writes it."""
    return content.encode(errors="backslashreplace") if isinstance(content, str) else content

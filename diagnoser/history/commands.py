"""`moe-diag history`: results kept over time. Nothing here prints or exits; cli mounts it."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diagnoser.options import CacheDir, Force, KeepOrigin, NsysPath, StoreFile, Tag
from diagnoser.options.command import command
from traces.errors import UsageError

if TYPE_CHECKING:
    from diagnoser.history.store import Store
    from reports.content.blocks import Page
    from reports.content.trend import Kept

history_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


class TrendForm(StrEnum):
    """Formats of a trend."""

    TEXT = "text"
    PNG = "png"
    SVG = "svg"


@history_app.callback()
def _history() -> None:
    """Keep results over time, see where a number shifted, and name results to compare with.

    All is in one SQLite file of your own. It keeps whole results (about 30 KB a rank), their numbers and your
    tags; neither machine names nor paths unless asked. Several runs may add to it at once.

    \b
    moe-diag history add result.json --tag "$(git rev-parse --short HEAD)"
    moe-diag history list
    moe-diag history trend step_ns
    moe-diag history baseline main 12         then: moe-diag compare --baseline main new.nsys-rep
    """


@history_app.command()
@command(bounded=True)
def add(
    result: Annotated[
        Path,
        typer.Argument(metavar="RESULT.json|TRACE", readable=False, show_default=False, help="What to keep."),
    ],
    tag: Tag = "",
    keep_origin: KeepOrigin = False,
    store: StoreFile = None,
    nsys: NsysPath = None,
    cache_dir: CacheDir = None,
) -> None:
    """Keep a result. A trace is diagnosed first; the same result is kept once.

    For a trace with its configuration and log, diagnose first and add the result:

    \b
    moe-diag analyze run.nsys-rep --config run.yaml --log train.log -f json -o result.json
    moe-diag history add result.json --tag nightly-0412
    """
    from diagnoser.history.kept import add_file, row_of
    from diagnoser.options.requests import Analysis

    history = _store(store)
    added = add_file(history, result, Analysis(result, nsys=nsys, cache_dir=cache_dir), tag, keep_origin)
    _write(_kept_words(row_of(history, added.id), added.is_new, added.size_bytes))


@history_app.command("list")
def list_(store: StoreFile = None) -> None:
    """All results, oldest first, and which are baselines."""
    from diagnoser.output import base_name
    from reports.content.trend import list_page

    history = _store(store)
    lines = [replace(row, name=base_name(Path(row.name))) for row in history.rows()]
    _write(_text(list_page(lines, history.baselines())))


@history_app.command()
def trend(
    metric: Annotated[
        str,
        typer.Argument(metavar="[METRIC]", show_default=False, help="A number of results; none: list them."),
    ] = "",
    like: Annotated[
        int | None,
        typer.Option(metavar="ID", help="Show results alike to this one [default: to the newest]."),
    ] = None,
    form: Annotated[
        TrendForm | None,
        typer.Option("--format", "-f", metavar="text|png|svg", help="Format [default: as -o ends, or text]."),
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="PATH", help="File, folder, or '-' (stdout).")
    ] = "-",
    force_overwrite: Force = False,
    store: StoreFile = None,
) -> None:
    """One number over all results, and where its mean shifted beyond what chance would do.

    Results of another GPU, number of ranks or size of the model are another trend: they are left out, counted
    and named. Where results do not tell the number there is a gap. A shift is marked at the first result
    after it; at most 5 % of trends without one have a mark, and fewer than 8 results never have.

    \b
    moe-diag history trend                                   the numbers there are
    moe-diag history trend step_ns
    moe-diag history trend budget_frac.exposed_comm -o communication.png
    moe-diag history trend ledger.exposed_comm.ep_dispatch --like 4
    """
    from diagnoser.history.kept import metric_names, trend_of
    from diagnoser.output import plan_targets, write
    from reports.content.trend import metrics_page, trend_page

    chosen = form or _form_of(output)
    if chosen is TrendForm.PNG and output == "-":
        raise UsageError("a png is no text for a terminal. Give -o FILE.png")
    history = _store(store)
    extensions = {"text": "txt", "png": "png", "svg": "svg"}
    named = Path(f"{metric or 'metrics'}.sqlite")  # -o FOLDER/ names the file by the metric
    (target,) = plan_targets([chosen.value], output, [named, history.path], extensions, force_overwrite)
    rows = history.rows()
    if not metric:
        _write(_text(metrics_page(metric_names(rows))))
        return
    found = trend_of(rows, metric, like)
    if chosen is TrendForm.TEXT:
        write(target, _text(trend_page(found)), force_overwrite)
        return
    from reports.write.figures.trend import draw_trend

    if chosen is TrendForm.SVG:
        write(target, draw_trend(found, "svg").decode(), force_overwrite)
    else:
        write(target, draw_trend(found, "png"), force_overwrite)


@history_app.command()
@command()
def baseline(
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False, help="Of the baseline.")],
    result: Annotated[
        str,
        typer.Argument(
            metavar="[RESULT.json|TRACE|ID]",
            show_default=False,
            help="What it is from now on, a number being one of the list; none: show.",
        ),
    ] = "",
    tag: Tag = "",
    store: StoreFile = None,
    nsys: NsysPath = None,
    cache_dir: CacheDir = None,
) -> None:
    """Name a result, to compare others with it; a file is added to the history first.

    \b
    moe-diag history baseline main 12
    moe-diag history baseline release-1.4 result.json
    moe-diag history baseline main                          which result it is
    moe-diag compare --baseline main new.nsys-rep
    """
    from diagnoser.history.kept import add_file, baseline_row, check_name, set_baseline
    from diagnoser.options.requests import Analysis

    history = _store(store)
    if not result:
        row = baseline_row(history, name)
    else:
        check_name(name)
        asked = Analysis(result, nsys=nsys, cache_dir=cache_dir)
        number = int(result) if result.isdecimal() else add_file(history, Path(result), asked, tag).id
        row = set_baseline(history, name, number)
    _write(f"Baseline {name} is {_row_words(row)}\n")


def _store(given: Path | None) -> Store:
    from diagnoser.history.store import Store, history_file

    return Store(history_file(given))


def _form_of(output: str) -> TrendForm:
    ending = output.rpartition(".")[2]
    return TrendForm(ending) if ending in ("png", "svg") else TrendForm.TEXT


def _kept_words(row: Kept, is_new: bool, size_bytes: int) -> str:
    if not is_new:
        return f"The same result is kept already, as {_row_words(row)} Nothing was added.\n"
    return f"Kept as {_row_words(row)} Its document takes {-(-size_bytes // 1000)} KB.\n"


def _row_words(row: Kept) -> str:
    from reports.content.names import name_of
    from traces.spelling import milliseconds, printable

    step = "step unknown" if row.step_ns is None else f"step {milliseconds(row.step_ns)} ms"
    wall = "no bottleneck" if row.wall is None else name_of(row.wall)
    tag = f", tag {printable(row.tag, 40)}" if row.tag else ""
    return f"result {row.id} of {row.added_at[:10]}: {printable(row.name, 40)}{tag}, {step}, {wall}."


def _text(page: Page) -> str:
    from reports.content.blocks import View
    from reports.write.text import write_text

    return write_text(page, View())


def _write(text: str) -> None:
    from diagnoser.output import Target, write

    write(Target("text", None), text, force=False)

"""`moe-diag history`: results kept over time. Nothing here prints or exits; cli mounts it."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diagnoser.options import CacheDir, Force, KeepOrigin, NsysPath, StoreFile, Tag, argument, option
from diagnoser.options.command import command, commands_of
from diagnoser.options.help import HelpAll
from traces.errors import UsageError
from traces.patterns import whole_number

if TYPE_CHECKING:
    from diagnoser.history.store import Kept, Store
    from reports.content.blocks import Page

history_app = commands_of()


TrendForm = StrEnum("TrendForm", "TEXT PNG SVG")
ExportForm = StrEnum("ExportForm", "CSV PROMETHEUS")


@history_app.callback()
def _history(help_all: HelpAll = False) -> None:
    """Keep results over time, see where a number shifted, and name results to compare with.

    All is in one SQLite file of your own. It keeps whole results (about 30 KB a rank), their numbers and your
    tags; neither machine names nor paths unless asked. Several runs may add to it at once.

    \b
    moe-diag history add result.json --tag "$(git rev-parse --short HEAD)"
    moe-diag history list
    moe-diag history trend step_ns
    moe-diag history export -o results.csv    for other programs; Prometheus too
    moe-diag history baseline main 12         then: moe-diag compare --baseline main new.nsys-rep
    """


@history_app.command()
@command(bounded=True)
def add(
    result: Annotated[Path, argument("RESULT.json|TRACE", "What to keep.")],
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
    from diagnoser.output import show

    history = _store(store)
    added = add_file(history, result, Analysis(result, nsys=nsys, cache_dir=cache_dir), tag, keep_origin)
    words = _row_words(row_of(history, added.id))
    if added.is_new:
        show(f"Kept as {words} Its document takes {-(-added.size_bytes // 1000)} KB.\n")
    else:
        show(f"The same result is kept already, as {words} Nothing was added.\n")


@history_app.command("list")
def list_(store: StoreFile = None) -> None:
    """All results, oldest first, and which are baselines."""
    from diagnoser.output import base_name
    from reports.content.trend import list_page

    history = _store(store)
    lines = [replace(row, name=base_name(Path(row.name))) for row in history.rows()]
    _show(list_page(lines, history.baselines()))


@history_app.command()
def trend(
    metric: Annotated[str, argument("[METRIC]", "A number of results; none: list them.")] = "",
    like: Annotated[
        int | None, option("ID", "Show results alike to this one [default: to the newest].")
    ] = None,
    form: Annotated[
        TrendForm | None, option("text|png|svg", "Format [default: as -o ends, or text].", "--format", "-f")
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
    from reports.content.blocks import View
    from reports.content.trend import metrics_page, trend_page

    ending = output.rpartition(".")[2]
    chosen = form or TrendForm(ending if ending in ("png", "svg") else "text")
    if chosen is TrendForm.PNG and output == "-":
        raise UsageError("a png is no text for a terminal. Give -o FILE.png")
    history = _store(store)
    named = Path(f"{metric or 'metrics'}.sqlite")  # -o FOLDER/ names the file by the metric
    (target,) = plan_targets([chosen.value], output, [named, history.path], force_overwrite)
    rows = history.rows()
    if not metric:
        _show(metrics_page(metric_names(rows)))
        return
    found = trend_of(rows, metric, like)
    if chosen is TrendForm.TEXT:
        from reports.write.text import write_text

        write(target, write_text(trend_page(found), View()), force_overwrite)
        return
    from reports.write.figures.trend import draw_trend

    is_svg = chosen is TrendForm.SVG
    drawn = draw_trend(found, "svg" if is_svg else "png")
    write(target, drawn.decode() if is_svg else drawn, force_overwrite)


@history_app.command()
def export(
    form: Annotated[
        ExportForm | None,
        option(
            "csv|prometheus", "Format [default: prometheus where -o ends in .prom, or csv].", "--format", "-f"
        ),
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="PATH", help="File, or '-' (stdout).")
    ] = "-",
    force_overwrite: Force = False,
    store: StoreFile = None,
) -> None:
    """Numbers for other programs: a CSV table of all results, or the newest ones for Prometheus.

    CSV has a row a result and a column a number, times in ns. Prometheus' text has the newest result of each
    kind (GPU, ranks, sizes of the model) as gauges, times in seconds, as node_exporter's textfile collector
    reads it.

    \b
    moe-diag history export -o results.csv
    moe-diag history export -o moe_diag.prom --force-overwrite
    """
    from diagnoser.output import plan_targets, write
    from reports.write.history_export import write_history_csv, write_prometheus

    history = _store(store)
    chosen = form or ExportForm("prometheus" if output.endswith(".prom") else "csv")
    if output != "-" and Path(output).is_dir():
        output = str(Path(output) / ("history.prom" if chosen is ExportForm.PROMETHEUS else "history.csv"))
    (target,) = plan_targets(["csv"], output, [history.path], force_overwrite)
    writer = write_prometheus if chosen is ExportForm.PROMETHEUS else write_history_csv
    write(target, writer(history.rows()), force_overwrite)


@history_app.command()
@command()
def baseline(
    name: Annotated[str, argument("NAME", "Of the baseline.")],
    result: Annotated[
        str,
        argument(
            "[RESULT.json|TRACE|ID]", "What it is from now on, a number being one of the list; none: show."
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
    from diagnoser.history.kept import add_file, baseline_row, check_name, row_of
    from diagnoser.options.requests import Analysis
    from diagnoser.output import show

    history = _store(store)
    if not result:
        row = baseline_row(history, name)
    else:
        check_name(name)
        asked = Analysis(result, nsys=nsys, cache_dir=cache_dir)
        number = whole_number(result)
        if number is None:
            number = add_file(history, Path(result), asked, tag).id
        row = row_of(history, number)
        history.set_baseline(name, number)
    show(f"Baseline {name} is {_row_words(row)}\n")


def _store(given: Path | None) -> Store:
    from diagnoser.history.store import Store, history_file

    return Store(history_file(given))


def _row_words(row: Kept) -> str:
    from reports.content.names import name_of
    from traces.spelling import milliseconds, printable

    step = "step unknown" if row.step_ns is None else f"step {milliseconds(row.step_ns)} ms"
    wall = "no bottleneck" if row.wall is None else name_of(row.wall)
    tag = f", tag {printable(row.tag, 40)}" if row.tag else ""
    return f"result {row.id} of {row.added_at[:10]}: {printable(row.name, 40)}{tag}, {step}, {wall}."


def _show(page: Page) -> None:
    from diagnoser.output import show_page
    from reports.content.blocks import View

    show_page(page, View())

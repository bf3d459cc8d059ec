"""`moe-diag history`: results kept over time. Nothing here prints or exits; cli mounts it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from diagnoser.options import Place
from diagnoser.options.command import command, commands_of
from diagnoser.options.help import HelpAll
from traces.patterns import whole_number

if TYPE_CHECKING:
    from diagnoser.history.store import Store
    from reports.content.history import Line

history_app = commands_of()


@history_app.callback()
def _history(help_all: HelpAll = False) -> None:
    """Keep results over time, and name results to compare with.

    All is in one SQLite file of your own. It keeps whole results (about 30 KB a rank) and your
    tags; neither machine names nor paths unless asked. Several runs may add to it at once.

    \b
    moe-diag history add result.json --tag "$(git rev-parse --short HEAD)"
    moe-diag history list
    moe-diag history baseline main 12         then: moe-diag compare --baseline main new.nsys-rep
    """


@history_app.command()
@command()
def add(
    result: Path,
    tag: str = "",
    keep_origin: bool = False,
    store: Path | None = None,
    nsys: str | None = None,
    cache_dir: Place | None = None,
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
    added = add_file(
        history, result, Analysis(result, nsys=nsys, cache_dir=cache_dir), tag, keep_origin
    )
    words = _row_words(row_of(history, added.id))
    if added.is_new:
        show(f"Kept as {words} Its document takes {-(-added.size_bytes // 1000)} KB.\n")
    else:
        show(f"The same result is kept already, as {words} Nothing was added.\n")


@history_app.command("list")
@command()
def list_(store: Path | None = None) -> None:
    """All results, oldest first, and which are baselines."""
    from diagnoser.output import base_name, show_page
    from reports.content.history import list_page
    from reports.content.page import View

    history = _store(store)
    lines = [replace(row, name=base_name(Path(row.name))) for row in history.rows()]
    show_page(list_page(lines, history.baselines()), View())


@history_app.command()
@command()
def baseline(
    name: str,
    result: str = "",
    tag: str = "",
    store: Path | None = None,
    nsys: str | None = None,
    cache_dir: Place | None = None,
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


def _row_words(row: Line) -> str:
    from reports.content.names import name_of
    from traces.spelling import milliseconds, printable

    step = "step unknown" if row.step_ns is None else f"step {milliseconds(row.step_ns)} ms"
    wall = "no bottleneck" if row.wall is None else name_of(row.wall)
    tag = f", tag {printable(row.tag, 40)}" if row.tag else ""
    return (
        f"result {row.id} of {row.added_at[:10]}: {printable(row.name, 40)}{tag}, {step}, {wall}."
    )

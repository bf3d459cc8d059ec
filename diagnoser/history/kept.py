"""What the history keeps: files as documents, and names for results to compare with."""

import platform
from dataclasses import replace
from pathlib import Path
from typing import Final

from diagnoser.history.store import Added, Store, history_file
from diagnoser.options.requests import Analysis
from reports.content.history import Line
from reports.result.codec import Document
from reports.result.read import is_result, of_file, read_document
from traces.errors import NotATrace, UsageError
from traces.files.beneath import real_path
from traces.patterns import compiled


def add_file(
    store: Store, path: Path, asked: Analysis, tag: str, keep_origin: bool = False
) -> Added:
    """Keep a result or a trace. Raises `InputError` and `NothingToDiagnose` for what cannot be
    used.
    """
    document = document_of(path, asked)
    with of_file(path):
        return store.add(document, tag, (platform.node(), real_path(path)) if keep_origin else None)


def document_of(path: Path, asked: Analysis) -> Document:
    """The document of an earlier result, yet to be checked, or of a trace, diagnosed as `analyze`
    does.
    """
    if path.is_file() and is_result(path):
        return read_document(path)
    from diagnoser.output.progress import progress_display
    from diagnoser.running.pipeline import diagnose

    try:
        with progress_display() as progress:
            return diagnose(replace(asked, progress=progress)).to_dict()
    except NotATrace:
        if not path.name.endswith((".json", ".json.gz")):
            raise
    return read_document(path)  # its keys were sorted


_NAME: Final = compiled(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")


def baseline_document(name: str) -> Document:
    """The document that a baseline of the usual history stands for.

    Raises `UsageError` with the names there are, `InputError` for a file that is no history.
    """
    history = Store(history_file(None))
    return history.document(baseline_row(history, name).id)


def baseline_row(store: Store, name: str) -> Line:
    """The result that a baseline stands for. Raises `UsageError` with the names there are."""
    baselines = store.baselines()
    if name not in baselines:
        there = f"There are {', '.join(sorted(baselines))}" if baselines else "There is none yet"
        raise UsageError(
            f"no baseline {name!r}. {there}; set one: moe-diag history baseline NAME RESULT"
        )
    return row_of(store, baselines[name])


def check_name(name: str) -> None:
    """Raise `UsageError` for a name that a command line or a table would not carry well."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is no name for a baseline. Give letters and digits, then also . _ + -; 64 "
            f"at most."
        )


def row_of(store: Store, number: int) -> Line:
    """The result of that number. Raises `UsageError`."""
    rows = store.rows()
    for row in rows:
        if row.id == number:
            return row
    there = f"It has {rows[0].id} to {rows[-1].id}" if rows else "It is empty"
    raise UsageError(f"the history has no result {number}. {there}: moe-diag history list")

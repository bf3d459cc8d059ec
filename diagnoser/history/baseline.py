"""Baselines: names for results of the history that others are compared with."""

import re
from pathlib import Path
from typing import Any, Final

from diagnoser.history.place import history_file
from diagnoser.history.store import Kept, Store
from traces.errors import UsageError

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")


def baseline_document(name: str, store: Path | None = None) -> dict[str, Any]:
    """The document that a baseline stands for, from the file given or the usual one.

    Raises `UsageError` with the names there are, `InputError` for a file that is no history.
    """
    kept = Store(history_file(store))
    document = kept.document(baseline_row(kept, name).id)
    if document is None:
        raise no_such_result(kept, kept.baselines()[name])
    return document


def baseline_row(store: Store, name: str) -> Kept:
    """The result that a baseline stands for. Raises `UsageError` with the names there are."""
    baselines = store.baselines()
    if name not in baselines:
        there = f"There are {', '.join(sorted(baselines))}" if baselines else "There is none yet"
        raise UsageError(f"no baseline {name!r}. {there}; set one: moe-diag history baseline NAME RESULT")
    return row_of(store, baselines[name])


def set_baseline(store: Store, name: str, number: int) -> Kept:
    """Let a name stand for a result. Raises `UsageError` for a name or a number that cannot be."""
    check_name(name)
    row = row_of(store, number)
    store.set_baseline(name, number)
    return row


def check_name(name: str) -> None:
    """Raise `UsageError` for a name that a command line or a table would not carry well."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is no name for a baseline. Give letters and digits, then also . _ + -; 64 at most."
        )


def row_of(store: Store, number: int) -> Kept:
    """The result of that number. Raises `UsageError`."""
    for row in store.rows():
        if row.id == number:
            return row
    raise no_such_result(store, number)


def no_such_result(store: Store, number: int) -> UsageError:
    """The error for a number that no result has."""
    rows = store.rows()
    there = f"It has {rows[0].id} to {rows[-1].id}" if rows else "It is empty"
    return UsageError(f"the history has no result {number}. {there}: moe-diag history list")

"""The readers of SQLite files, by the names that the command line and the document use."""

from enum import StrEnum
from typing import Final

from traces.errors import UsageError
from traces.limits import Limit


class Reader(StrEnum):
    """Who reads an SQLite file: its pages decoded, Python's sqlite3, or whichever is faster."""

    AUTO = "auto"
    PAGES = "pages"
    SQLITE3 = "sqlite3"


PAGES_FROM: Final = Limit(
    8_000_000,
    "bytes",
    "ours: a megabyte of event tables takes sqlite3 0.043 s of CPU and compiled loops 0.002 s; "
    "numba and the loops take 0.32 s once (medians of 5, 2026-11-22)",
)


def reader_named(name: str) -> Reader:
    """The reader of a name. Raises `UsageError` for a name that none has."""
    try:
        return Reader(name)
    except ValueError:
        raise UsageError(f"{name!r} is no reader. Type one of {', '.join(Reader)}.") from None

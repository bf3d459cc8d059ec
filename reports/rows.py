"""Rows of a result: those that have some values, and a field of each."""

from collections.abc import Iterable
from operator import attrgetter
from typing import Any, TypeVar

from traces.missing import known

Row = TypeVar("Row")


def those(rows: Iterable[Row], **having: object) -> list[Row]:
    """The rows whose fields have these values, in their order."""
    found = []
    for row in rows:
        if all(getattr(row, name) == value for name, value in having.items()):
            found.append(row)
    return found


def each(rows: Iterable[object], field: str) -> list[Any]:
    """A field of every row: `id`, or one of a field, as `capture.stacks`."""
    return [*map(attrgetter(field), rows)]


def known_of(rows: Iterable[object], field: str) -> list[Any]:
    """The same of the rows in which it is known."""
    found = []
    for value in each(rows, field):
        if known(value) is not None:
            found.append(value)
    return found

"""Rows of a result: those of which a field has a value, and a field of each."""

from collections.abc import Iterable
from operator import attrgetter
from typing import Any, TypeVar

from traces.missing import known

Row = TypeVar("Row")


def those(rows: Iterable[Row], **having: object) -> list[Row]:
    """The rows of which a field has this value, in their order."""
    ((name, value),) = having.items()
    return [row for row in rows if getattr(row, name) == value]


def each(rows: Iterable[object], field: str) -> list[Any]:
    """A field of every row: `id`, or one of a field, as `capture.stacks`."""
    return [*map(attrgetter(field), rows)]


def known_of(rows: Iterable[object], field: str) -> list[Any]:
    """The same of the rows in which it is known."""
    return [value for value in each(rows, field) if known(value) is not None]

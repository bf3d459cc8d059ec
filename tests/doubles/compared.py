"""Comparisons as results: of many rows, with planted text, and typed as a reader would."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from heuristics.result.compared import Comparable, Compared
from reports.result.codec import Document, decode
from tests.doubles.comparison_document import (
    GRAPHS,
    MS,
    OTHER_NSYS,
    attribution,
    document_of,
    facts,
    moved,
    regression,
)

Make = Callable[[], Compared]


def typed(document: Document) -> Compared:
    return decode(document, Compared)


def compared(make: Make) -> Compared:
    return typed(document_of(make()))


def many_rows() -> Compared:
    """Twenty rows of 1 ms each beyond noise, 20 suspects, 20 changes and 20 limits."""
    told = facts()
    rows = tuple(moved(f"compute.class_{place}", 1, 2) for place in range(20))
    still = moved("noise", 20, 4, ci95_ns=None)
    return regression(
        facts=replace(told, attribution=attribution(4 * MS, (*rows, still)), changed=told.changed * 4),
        suspects=(GRAPHS,) * 20,
        comparable=Comparable("with_differences", (OTHER_NSYS,) * 20),
    )

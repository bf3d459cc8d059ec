"""Tables of the plain text: a name on the left, figures in columns on the right, within 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from reports.layout import INDENT, WIDTH
from reports.words import printable

_GAP: Final = "  "
_LEAST: Final = 12
"""Columns that a name gets at least."""

Cells = Sequence[str]


def aligned(rows: Sequence[Cells]) -> Iterator[str]:
    """Rows of a name and right-aligned figures, all alike; long names are cut in the middle."""
    figures = [max(len(row[place]) for row in rows) for place in range(1, len(rows[0]))]
    taken = sum(len(_GAP) + width for width in figures)
    indent = INDENT if max(len(row[0]) for row in rows) + taken + len(INDENT) <= WIDTH else _GAP
    width = max(_LEAST, min(max(len(row[0]) for row in rows), WIDTH - len(indent) - taken))
    for name, *cells in rows:
        right = "".join(f"{_GAP}{cell:>{size}}" for cell, size in zip(cells, figures, strict=True))
        yield f"{indent}{printable(name, width):<{width}}{right}"

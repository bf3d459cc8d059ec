"""What `compare` returns."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reports.document import Document

if TYPE_CHECKING:
    import pandas as pd

    from heuristics.comparison.size import Gate

_TIMES: Final = ("delta_ns", "count_ns", "duration_ns", "overlap_ns")


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """A finished comparison. `gate`: what the gate says, None where none was given."""

    _document: Document
    gate: Gate | None = None

    def __repr__(self) -> str:
        return f"<Comparison: {self._document['verdict']}>"

    def to_dict(self) -> Document:
        """The JSON document of a comparison, version 1.0, as plain values; a copy of its own."""
        return copy.deepcopy(self._document)

    def to_frame(self) -> pd.DataFrame:
        """A pandas table with one row per row of the attribution, the largest difference first.

        Columns: row, wall, and per step, new less base, positive is slower, delta_ns with its parts count_ns,
        duration_ns, overlap_ns (Int64, <NA> where not told). `delta_ns` adds up to the document's
        `step_delta_ns`.
        """
        import pandas as pd

        columns = ["row", "wall", *_TIMES]
        rows = [[row[column] for column in columns] for row in self._document["attribution"]]
        return pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(_TIMES, "Int64"))

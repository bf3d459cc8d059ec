"""What `compare` returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec.structs import asdict

from heuristics.result.compared import Compared, Gate
from reports.result.codec import Document, encode
from traces.missing import known

if TYPE_CHECKING:
    import pandas as pd

_TIMES: Final = ("delta_ns", "count_ns", "duration_ns", "overlap_ns")


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """A finished comparison."""

    result: Compared
    """Everything that was found, typed: an unknown value is `traces.missing.Missing`."""

    def __repr__(self) -> str:
        return f"<Comparison: {self.result.verdict}>"

    @property
    def gate(self) -> Gate | None:
        """The answer of the gate, None where none was given."""
        return self.result.gate

    def to_dict(self) -> Document:
        """The JSON document of a comparison, version 1.0, as plain values; a copy of its own."""
        return encode(self.result)

    def to_frame(self) -> pd.DataFrame:
        """A pandas table with one row per row of the attribution, the largest difference first.

        Columns: row, wall, and per step, new less base, positive is slower, delta_ns with its parts count_ns,
        duration_ns, overlap_ns (Int64, <NA> where unknown). `delta_ns` adds up to the document's
        `step_delta_ns`.
        """
        import pandas as pd

        columns = ["row", "wall", *_TIMES]
        rows = [[known(asdict(row)[column]) for column in columns] for row in self.result.attribution]
        return pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(_TIMES, "Int64"))

"""The small interface between a file's bytes and its schema: named tables, read as columns.

`SqliteTables` reads any SQLite file and is the reference; `PageTables` reads large plain ones faster.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol

import numpy as np

from traces.columns import IntArray


@dataclass(frozen=True, slots=True)
class Texts:
    """A text column: `codes` of shape (n,) index the distinct `values`; -1 where the row has NULL."""

    codes: IntArray
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableColumns:
    """Columns of one table in the same row order; integers hold `traces.columns.NULL` for NULL."""

    integers: Mapping[str, IntArray]
    texts: Mapping[str, Texts]

    def __len__(self) -> int:
        return len(next(iter(self.integers.values()), ())) or max(
            (len(text.codes) for text in self.texts.values()), default=0
        )


RowFilter = Mapping[str, Sequence[int] | None]
"""Which rows are wanted: those whose column has one of the numbers; for None, those where it is not NULL."""

EVERY_ROW: Final[RowFilter] = MappingProxyType({})


class Tables(Protocol):
    """Tables of one export. Errors raised while reading are `traces.errors.DamagedTrace`."""

    @property
    def reader(self) -> str:
        """Which reader ran, for `traces[].reader`; asked when all is read."""
        ...

    def columns_of(self, table: str) -> frozenset[str]:
        """Column names of a table; empty where the table is absent."""
        ...

    def read(
        self, table: str, integers: Sequence[str], texts: Sequence[str] = (), only: RowFilter = EVERY_ROW
    ) -> TableColumns:
        """Columns of a table that has them, in one pass; `only` names columns among the integers."""
        ...

    def strings(self, ids: IntArray) -> Mapping[int, str]:
        """Texts of `StringIds` for the distinct ids given; ids that are not there are left out."""
        ...

    def blobs(self, table: str, integers: Sequence[str], blob: str) -> tuple[IntArray, list[bytes]]:
        """Rows where `blob` is not NULL: the integer columns, shape (n, len(integers)), and the blobs."""
        ...

    def rows(self, table: str, columns: Sequence[str]) -> Iterable[Sequence[object]]:
        """Rows of a small table (metadata, GPUs), with NULL as None."""
        ...


def empty_columns(integers: Sequence[str], texts: Sequence[str] = ()) -> TableColumns:
    """Columns of no row."""
    nothing = np.empty(0, dtype=np.int64)
    return TableColumns(dict.fromkeys(integers, nothing), {name: Texts(nothing, ()) for name in texts})

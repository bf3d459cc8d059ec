"""What stands between a file's bytes and its schema: columns of named tables, and which rows are wanted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

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


def empty_columns(integers: Sequence[str], texts: Sequence[str] = ()) -> TableColumns:
    """Columns of no row."""
    nothing = np.empty(0, dtype=np.int64)
    return TableColumns(dict.fromkeys(integers, nothing), {name: Texts(nothing, ()) for name in texts})

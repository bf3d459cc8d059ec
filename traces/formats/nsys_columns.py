"""Columns of an export's tables by name, whatever the schema has of them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from traces.columns import NULL, PLACE, PROCESS_BITS, IntArray, distinct
from traces.errors import DamagedTrace
from traces.formats.tables import EVERY_ROW, RowFilter, TableColumns, Tables, Texts, empty_columns


def read_present(
    tables: Tables,
    path: Path,
    name: str,
    required: Sequence[str],
    optional: Sequence[str],
    texts: Sequence[str] = (),
    only: RowFilter = EVERY_ROW,
) -> TableColumns:
    """A table's columns: absent optional ones are all NULL, an absent table has no rows.

    Of `only` what it says of absent columns does not count.

    Raises `DamagedTrace` where a required column is absent from a table that is there.
    """
    here = tables.columns_of(name)
    if not here:
        return empty_columns((*required, *optional), texts)
    if absent := [column for column in required if column not in here]:
        raise DamagedTrace(
            f"{path} has no column {absent[0]} in {name}, which every export has. Export the report again."
        )
    present = [*required, *(column for column in optional if column in here)]
    wanted = {column: values for column, values in only.items() if column in here}
    table = tables.read(name, present, [column for column in texts if column in here], wanted)
    for column in ("start", "end"):
        _check_times(table.integers.get(column), path, f"{name}.{column}")
    row_count = len(table)
    # what is absent takes no memory
    absent_number = np.broadcast_to(np.full(1, NULL, dtype=np.int64), row_count)
    absent_text = Texts(np.broadcast_to(np.full(1, -1, dtype=PLACE), row_count), ())
    return TableColumns(
        {column: table.integers.get(column, absent_number) for column in (*required, *optional)},
        {column: table.texts.get(column, absent_text) for column in texts},
    )


def named(tables: Tables, ids: Sequence[IntArray]) -> tuple[IntArray, tuple[str, ...]]:
    """Of each row the first id that StringIds knows, as an index into the names used; -1 where none."""
    chosen, open_ = np.full(len(ids[0]), NULL), np.arange(len(ids[0]), dtype=PLACE)
    found: dict[int, str] = {}
    for column in ids:
        asked = column[open_]
        texts = tables.strings(distinct(asked))
        known = np.isin(asked, [*texts])
        chosen[open_[known]], open_ = asked[known], open_[~known]
        found.update(texts)
        if not len(open_):
            break
    chosen[open_] = NULL
    used = distinct(chosen[chosen != NULL])
    place = np.searchsorted(used, chosen).astype(PLACE)
    place[open_] = -1
    return place, tuple(found[text_id] for text_id in used.tolist())


def timed(table: TableColumns) -> TableColumns:
    """The rows of host work with a start, and an end that is not before it."""
    start_ns, end_ns = table.integers["start"], table.integers["end"]
    kept = (start_ns != NULL) & (end_ns >= start_ns)
    if kept.all():
        return table
    texts = {name: Texts(text.codes[kept], text.values) for name, text in table.texts.items()}
    return TableColumns({name: values[kept] for name, values in table.integers.items()}, texts)


def process_ids(global_ids: IntArray) -> IntArray:
    """Packed ids with the thread bits cleared; NULL stays NULL."""
    return np.where(global_ids == NULL, NULL, global_ids & PROCESS_BITS)


def _check_times(times_ns: IntArray | None, path: Path, column: str) -> None:
    """Raise `DamagedTrace` for times of which a difference would not fit into 64 bits."""
    if times_ns is None:
        return
    least_ns = times_ns.min(initial=0, where=times_ns != NULL)
    if least_ns < -(1 << 61) or times_ns.max(initial=0) >= 1 << 62:
        raise DamagedTrace(f"{path} holds impossible times in {column}. Export the report again.")

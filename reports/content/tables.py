"""Tables of a page by their names in `tables.toml`, which has their heads, titles and notes."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from reports.content.blocks import ALL_BUT_FIRST, BlockRow, Entry, Table, table
from traces.texts import Texts
from traces.toml_tables import TableRow, read_table


class Shape(TableRow):
    """A table without its rows. What stands in braces is filled in."""

    heads: Texts
    title: str = ""
    numbers: Sequence[int] = ALL_BUT_FIRST
    note: str = ""


@cache
def _shapes() -> Mapping[str, Shape]:
    return read_table("reports.content", "tables.toml", dict[str, Shape])


def shaped(
    name: str, rows: Iterable[BlockRow | Sequence[Entry]], left_out: int = 0, **gaps: str
) -> Table:
    """The table of that name with these rows; `gaps`: what is filled in."""
    shape = _shapes()[name]
    heads = [head.format(**gaps) for head in shape.heads]
    title, note = shape.title.format(**gaps), shape.note.format(**gaps)
    return table(title, heads, rows, shape.numbers, note, left_out)

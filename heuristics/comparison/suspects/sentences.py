"""How a suspect's evidence is worded: figures per step, always from base to new."""

from collections.abc import Sequence
from typing import Final

from heuristics.comparison.configured import Value
from heuristics.comparison.difference.changed import Changed
from heuristics.comparison.difference.rows import RowDelta
from heuristics.comparison.suspects.view import View
from traces.limits import Limit
from traces.spelling import in_ms, percent, signed_ms

SHOWN_ROWS: Final = Limit(3, "rows", "ours: what else moved stands in the table of rows")
SHOWN_CHANGES: Final = Limit(4, "changes", "ours: all of them stand in the list of changes")


def row_sentences(view: View, rows: Sequence[RowDelta]) -> tuple[str, ...]:
    """The largest rows with their times, and how many more there are."""
    most = int(SHOWN_ROWS.value)
    largest = sorted(rows, key=lambda row: (-abs(row.delta_ns), row.row))
    found = [_row(view, row) for row in largest[:most]]
    if left := largest[most:]:
        moved_ns = view.sign * sum(row.delta_ns for row in left)
        more = "1 more row moves" if len(left) == 1 else f"{len(left)} more rows together move"
        found.append(f"{more} {signed_ms(moved_ns)} a step")
    return tuple(found)


def _row(view: View, row: RowDelta) -> str:
    part = percent(abs(row.delta_ns) / view.moved_ns)
    found = view.arrow(f"{row.row} a step", in_ms(row.base_ns), in_ms(row.new_ns))
    return f"{found} ({signed_ms(view.sign * row.delta_ns)}, {part} of all that moved)"


def change_sentences(view: View, changes: Sequence[Changed]) -> tuple[str, ...]:
    """What changed."""
    return tuple(_change(view, one) for one in changes[: int(SHOWN_CHANGES.value)])


def _change(view: View, change: Changed) -> str:
    if change.withheld:
        return f"{change.what} differs; its value is withheld"
    before = _value(change.base) if change.said_base else "not set"
    after = _value(change.new) if change.said_new else "not set"
    return f"{view.arrow(change.what, before, after)} ({change.source})"


def _value(value: Value) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_value(one) for one in value)}]"
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)

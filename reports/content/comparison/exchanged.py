"""What one side does by other kernels than the other: lines of the first screen, and the table
behind it.
"""

from collections.abc import Iterator
from typing import Final

from heuristics.result.compared import Compared, Exchange, Worked
from reports.content.blocks import Cells, Code, Sentence, Table, Term
from reports.content.comparison.difference import longest_ns, moved, per_step
from reports.content.names import WHOLE_NAME, kernel_name, name_of, statement
from reports.content.tables import shaped
from reports.measures import words_of
from reports.rows import each
from traces.limits import LITTLE
from traces.names.mangled import beside
from traces.spelling import in_ms, milliseconds, printable

Side = tuple[Worked, ...]
_LINES: Final = 3
_NAMED: Final = 2


def exchanged(compared: Compared) -> Iterator[Sentence]:
    """The exchanges that moved most, a line each, where they are large beside a step."""
    least_ns = LITTLE.value * longest_ns(compared)
    large = [exchange for exchange in _rows(compared) if abs(exchange.delta_ns) >= least_ns]
    for place, entry in enumerate(large[:_LINES]):
        yield statement(_line(entry), "" if place else "Other kernels")


def _rows(compared: Compared) -> tuple[Exchange, ...]:
    if exchanges := compared.exchanged:
        return exchanges.rows
    return ()


def _line(exchange: Exchange) -> str:
    return words_of("exchange")[exchange.change].format(
        what=_what(exchange),
        base=_names(exchange.base, exchange.base_count, exchange.new),
        new=_names(exchange.new, exchange.new_count, exchange.base),
        base_count=_number(exchange.base_count),
        new_count=_number(exchange.new_count),
        base_ms=in_ms(exchange.base_ns),
        new_ms=in_ms(exchange.new_ns),
    )


def _what(exchange: Exchange) -> str:
    """What it is: class and pass; where only the number of a kernel differs also which."""
    parts = [name_of(exchange.key), exchange.phase or ""]
    if exchange.change in ("more", "fewer"):
        kernel = _names(exchange.new, exchange.new_count, exchange.new)
        parts.append("" if kernel == parts[0] else kernel)
    return ", ".join(filter(None, parts))


def _number(count: float) -> str:
    """Of one step, whole but where its loops were cut."""
    if count == round(count):
        return f"{round(count):,}"
    return per_step(count)


def _names(worked: Side, count: float, others: Side) -> str:
    """The first kernels of a side by their names, and how many others there are. `others`: those of
    the other side, from which each is to be told apart.
    """
    shown = worked[:_NAMED]
    names = [*map(_name, shown, others), *map(_name, shown[len(others) :])]
    others_count = count - sum(each(shown, "count"))
    if others_count > 0:
        names.append(f"{_number(others_count)} more")
    return " + ".join(names)


def _name(worked: Worked, other: Worked | None = None) -> str:
    if worked.name == worked.key:
        return name_of(worked.key)
    name = kernel_name(worked.name)
    if other is None or worked.name == other.name:
        return name
    theirs = kernel_name(other.name)
    is_alike = name.partition("_")[0] == theirs.partition("_")[0]
    if name != theirs and not (is_alike and name.endswith("...")):
        return name
    return beside(printable(worked.name, WHOLE_NAME), printable(other.name, WHOLE_NAME))


def exchange_table(compared: Compared) -> Table:
    """Every exchange that is listed: work, not wall time, of a mean step of each side."""
    return shaped("exchanged", map(_cells, _rows(compared)))


def _cells(exchange: Exchange) -> Cells:
    base = _side(exchange.base, exchange.new, exchange.base_count, exchange.base_ns)
    new = _side(exchange.new, exchange.base, exchange.new_count, exchange.new_ns)
    return Term(exchange.key), exchange.phase or "", *base, *new, moved(exchange.delta_ns)


def _side(worked: Side, others: Side, count: float, work_ns: int) -> Cells:
    if not worked:
        return "", "", ""
    return Code(_names(worked, count, others)), _number(count), milliseconds(work_ns)

"""What one side does by other kernels than the other: lines of the first screen, and the table
behind it.
"""

from collections.abc import Iterator
from typing import Final

from heuristics.result.compared import Compared, Exchange, Worked
from reports.content.blocks import Cells, Code, Sentence, Table, Term
from reports.content.comparison.difference import longest_ns, moved, per_step
from reports.content.names import kernel_name, name_of, statement
from reports.content.tables import shaped
from reports.measures import words_of
from reports.rows import each
from traces.limits import LITTLE
from traces.spelling import in_ms, milliseconds

_LINES: Final = 3
_NAMED: Final = 2


def exchanged(compared: Compared) -> Iterator[Sentence]:
    """The exchanges that moved most, a line each, where they are large beside a step."""
    least_ns = LITTLE.value * longest_ns(compared)
    large = [one for one in _rows(compared) if abs(one.delta_ns) >= least_ns]
    for place, one in enumerate(large[:_LINES]):
        yield statement(_line(one), "" if place else "Other kernels")


def _rows(compared: Compared) -> tuple[Exchange, ...]:
    if found := compared.exchanged:
        return found.rows
    return ()


def _line(one: Exchange) -> str:
    return words_of("exchange")[one.change].format(
        what=_what(one),
        base=_names(one.base, one.base_count),
        new=_names(one.new, one.new_count),
        base_count=_number(one.base_count),
        new_count=_number(one.new_count),
        base_ms=in_ms(one.base_ns),
        new_ms=in_ms(one.new_ns),
    )


def _what(one: Exchange) -> str:
    """What it is: class and pass; where only the number of a kernel differs also which."""
    parts = [name_of(one.key), one.phase or ""]
    if one.change in ("more", "fewer"):
        kernel = _names(one.new, one.new_count)
        parts.append("" if kernel == parts[0] else kernel)
    return ", ".join(filter(None, parts))


def _number(count: float) -> str:
    """Of one step, whole but where its loops were cut."""
    if count == round(count):
        return f"{round(count):,}"
    return per_step(count)


def _names(worked: tuple[Worked, ...], count: float) -> str:
    """The first kernels of a side by their names, and how many others there are."""
    names = [*map(_name, worked[:_NAMED])]
    rest = count - sum(each(worked[:_NAMED], "count"))
    if rest > 0:
        names.append(f"{_number(rest)} more")
    return " + ".join(names)


def _name(one: Worked) -> str:
    if one.name == one.key:
        return name_of(one.key)
    return kernel_name(one.name)


def exchange_table(compared: Compared) -> Table:
    """Every exchange that is listed: work, not wall time, of one typical step of each side."""
    return shaped("exchanged", map(_cells, _rows(compared)))


def _cells(one: Exchange) -> Cells:
    base = _side(one.base, one.base_count, one.base_ns)
    new = _side(one.new, one.new_count, one.new_ns)
    return Term(one.key), one.phase or "", *base, *new, moved(one.delta_ns)


def _side(worked: tuple[Worked, ...], count: float, work_ns: int) -> Cells:
    if not worked:
        return "", "", ""
    return Code(_names(worked, count)), _number(count), milliseconds(work_ns)

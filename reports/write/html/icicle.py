"""Whose time it is, as a picture: the host's time by module, below it by function, below that by
operator.

It has no figures: these stand in the table of the same name.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from traces.frozen import frozen
from traces.sections.addresses import HostStack
from traces.sections.rank import Rank
from traces.spelling import printable

_LEAST: Final = 0.003
"""Of the host's time: what is narrower is not drawn."""
_LETTER: Final = 0.0075
"""Of the width, that a letter takes."""
_CUT: Final = 9
"""Letters below which a name that is cut says nothing."""
_NAME: Final = 120
_OUTSIDE: Final = "no module or range"


@frozen
class Cell:
    """A rectangle: row, beginning and width as shares, what it is called and looked for, and its
    hue.
    """

    row: int
    left: float
    width: float
    name: str
    label: str
    search: str
    hue: str


def icicle_of(rank: Rank) -> list[Cell]:
    """The cells of one rank, the largest of each row first; none where nothing waits for the host,
    or nothing is known of it.
    """
    addresses = rank.addresses
    if not addresses or not any(map(_levels, addresses.host_stacks)):
        return []
    total_ns = addresses.host_starved_ns + addresses.host_blocking_ns
    return [*_cells(addresses.host_stacks, total_ns, 0, 0.0)]


Level = tuple[str, str]
"""A name and its hue."""


def _levels(one: HostStack) -> list[Level]:
    """The names of a stack from the outside in; what is not known is left out but for the
    outermost.
    """
    outer, inner = one.module or one.range, (one.function, one.operator or one.native, one.os_call)
    levels = [level for level in zip(inner, ("host", "compute", "copy"), strict=True) if level[0]]
    if outer or levels:
        levels.insert(0, (outer, "memory") if outer else (_OUTSIDE, "idle"))
    return levels


def _cells(stacks: Sequence[HostStack], total_ns: int, row: int, left: float) -> Iterator[Cell]:
    """The cells of one row within their parent, largest first, each followed by those below it."""
    parts = defaultdict[Level, list[HostStack]](list)
    for stack in stacks:
        levels = _levels(stack)
        if row < len(levels):
            parts[levels[row]].append(stack)
    for (name, hue), within in sorted(parts.items(), key=lambda part: -_ns(part[1])):
        width = _ns(within) / total_ns
        if width < _LEAST:
            return
        shown, search = printable(name, _NAME), name
        if name == _OUTSIDE:
            search = ""
        elif "." not in name and "::" not in name:
            # of a family of ranges the longest part without a number
            search = max(name.split("N"), key=len)
        yield Cell(row, left, width, shown, _label(shown, width), search, hue)
        yield from _cells(within, total_ns, row + 1, left)
        left += width


def _ns(stacks: Sequence[HostStack]) -> int:
    return sum(stack.starved_ns + stack.blocking_ns for stack in stacks)


def _label(name: str, width: float) -> str:
    """As much of the end of a name as there is room for; nothing where that is no word."""
    room, parts = int(width / _LETTER), name.split(".")
    for short in (name, ".".join(parts[-2:]), parts[-1]):
        if len(short) <= room:
            return short
    if room < _CUT:
        return ""
    return printable(parts[-1], room)

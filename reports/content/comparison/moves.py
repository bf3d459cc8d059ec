"""From the step of base to that of new: where the sum stands after each part, for every picture of
it.
"""

from collections.abc import Sequence

from heuristics.result.compared import Compared
from reports.content.blocks import Hue
from reports.content.comparison.difference import ranked
from reports.content.names import hue_of
from reports.rows import each
from traces.frozen import frozen


@frozen
class Move:
    """One bar: from where the sum stood to where it stands after it, in ns away from base."""

    from_ns: int
    to_ns: int
    hue: Hue


def moves_of(compared: Compared, named: int) -> tuple[Move, ...]:
    """A bar for each of the first `named` parts, one for all others, and the whole; they add up."""
    moves, end_ns, whole_ns = [], 0, compared.step_delta_ns
    for row in ranked(compared)[:named]:
        begin_ns, end_ns = end_ns, end_ns + row.delta_ns
        moves.append(Move(begin_ns, end_ns, hue_of(row.row)))
    return (*moves, Move(end_ns, whole_ns, Hue.IDLE), Move(0, whole_ns, Hue.OTHER))


def reach(moves: Sequence[Move]) -> tuple[int, int]:
    """The least and the most that the sum comes to, with zero, which is base."""
    ends = [0, *each(moves, "to_ns")]
    return min(ends), max(ends)

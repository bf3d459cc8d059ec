"""The communication activities of a rank, with what their names alone say."""

from collections.abc import Callable
from typing import Final

import numpy as np

from traces.arrays import BoolArray, IntArray, bools, distinct, ints, last_at
from traces.columns import NULL
from traces.frozen import frozen
from traces.groups import passing
from traces.names.kernels import COMM_KINDS, KernelClass, kind_of, operation_of, phase_of
from traces.patterns import Pattern, first_found
from traces.resolve.resolution import OPERATIONS, PHASES, UNTOLD, place_of
from traces.timeline import Activities, RankTimeline, Source
from traces.toml_tables import read_table


def innermost(rank: RankTimeline, rows: Activities, of_text: IntArray, silent: int) -> IntArray:
    """Value of the innermost range around the launch of each of some rows whose text has one, shape
    (m,).

    `of_text`: the value of each range text, `silent` where it has none; it ends with that of no
    text.
    """
    ranges = rank.columns.ranges
    value = of_text[ranges.text]
    telling = (value != silent) & (ranges.thread_gid != NULL)
    result = np.full(len(rows), silent, dtype=np.int64)
    start, end = ranges.start_ns[telling], ranges.end_ns[telling]
    thread, value = ranges.thread_gid[telling], value[telling]
    for gid in rows.launching_threads:
        here = thread == gid
        mine = np.flatnonzero(rows.launch_thread == gid)
        place = stab(start[here], end[here], rows.launch_ns[mine])
        result[mine] = np.append(value[here], silent)[place]
    return result


def stab(start_ns: IntArray, end_ns: IntArray, time_ns: IntArray) -> IntArray:
    """Of each time the innermost of the nested intervals that holds it, -1 where none does.

    Ranges of one thread nest. Those of one depth are disjoint, so each depth is one binary search.
    """
    order = np.lexsort((-end_ns, start_ns))
    start, end = start_ns[order], end_ns[order]
    depth = np.arange(len(order)) - np.searchsorted(np.sort(end), start, side="right")
    place = np.full(len(time_ns), -1)
    for level in distinct(depth):
        level_places = np.flatnonzero(depth == level)
        at = last_at(start[level_places], time_ns)
        inside = (at >= 0) & (time_ns < end[level_places[at]])
        place[inside] = order[level_places[at[inside]]]
    return place


GENERIC: Final = "nccl_generic"
"""Subclass of a kernel that does every collective, as each of RCCL's."""
RANGES: Final = read_table("traces.resolve", "ranges.toml", dict[str, dict[str, Pattern]])
"""What is told by ranges -> the patterns of those that do."""
_COLLECTIVES: Final = RANGES["collectives"]
"""Subclass -> ranges that say so."""


@frozen
class Communication:
    """Communication activities of one rank, in order: `index` into the rank's `Activities`, shape
    (m,).
    """

    rank: RankTimeline
    index: IntArray
    rows: Activities
    classes: tuple[KernelClass, ...]
    """Of each kernel name of the columns; the last is for activities without a name."""
    told: IntArray
    """Subclass, a place in `_COLLECTIVES`, told by a range: of copies, and of kernels whose name
    does not."""

    def __len__(self) -> int:
        return len(self.index)

    def of_subclass(self, *subclasses: str) -> BoolArray:
        wanted = bools([kernel.subclass in subclasses for kernel in self.classes])
        mask: BoolArray = wanted[self.rows.name]
        has_range, by_range = self._told_by(lambda name: int(name in subclasses))
        mask[has_range] = by_range == 1
        return mask

    def operation_by_name(self) -> IntArray:
        operation = ints([_operation(kernel.subclass) for kernel in self.classes])[self.rows.name]
        has_range, by_range = self._told_by(_operation)
        operation[has_range] = by_range
        return operation

    def kind_by_name(self) -> IntArray:
        """Place in `COMM_KINDS` of the kind by name, else by the range around a generic one, shape
        (m,).
        """
        kind = self.rank.activities.key[self.index]
        has_range, by_range = self._told_by(lambda name: COMM_KINDS.index(kind_of(name)))
        kind[has_range] = by_range
        return kind

    def phase_by_name(self) -> IntArray:
        names = (*self.rank.columns.kernel_names, "")
        return ints([*map(_phase, names, self.classes)])[self.rows.name]

    def _told_by(self, code: Callable[[str], int]) -> tuple[BoolArray, IntArray]:
        """Which kernels a range tells of, shape (m,), and the code of each one's subclass."""
        has_range = np.not_equal(self.told, UNTOLD)
        return has_range, ints([code(name) for name in _COLLECTIVES])[self.told[has_range]]


def communication_of(rank: RankTimeline) -> Communication:
    """The communication activities of a rank."""
    index = np.flatnonzero(rank.activities.is_comm)
    rows = rank.activities.take(index)
    return Communication(rank, index, rows, rank.classes, _by_range(rank, rows))


def _operation(subclass: str) -> int:
    return place_of(OPERATIONS, operation_of(subclass))


def _by_range(rank: RankTimeline, rows: Activities) -> IntArray:
    place = np.full(len(rows), UNTOLD)
    generic = passing(lambda kernel: kernel.subclass == GENERIC, rank.classes[:-1])[rows.name]
    generic |= rows.source == Source.COPY
    if generic.any():
        of_text = [*map(_collective, rank.columns.range_texts), UNTOLD]
        place[generic] = innermost(
            rank, rows.take(np.flatnonzero(generic)), np.array(of_text), UNTOLD
        )
    return place


def _collective(text: str) -> int:
    return place_of([*_COLLECTIVES], first_found(_COLLECTIVES.items(), text))


def _phase(name: str, kernel: KernelClass) -> int:
    return place_of(PHASES, phase_of(name, kernel))

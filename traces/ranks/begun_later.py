"""Recordings that began a few collectives later than others of a communicator: from where numbers count.

Where a rank has another number of collectives of a communicator than most, its numbers move by the shift at
which its ends lie together with theirs. Numbers that were recorded stay.
"""

from dataclasses import replace

import numpy as np

from traces.columns import BoolArray, IntArray
from traces.ranks import parts
from traces.ranks.flat import Flat
from traces.ranks.ordered import shift_between
from traces.ranks.summary import GroupSource


def counted_from_one_start(flat: Flat) -> Flat:
    """The rows, with the numbers of collectives in a communicator counted from one of them on all ranks."""
    named = np.flatnonzero(flat.of_source(GroupSource.COMMUNICATOR))
    places = int(flat.place.max(initial=0)) + 1
    part = flat.rows.group[named] * places + flat.place[named]
    of_part, count = np.unique(part, return_counts=True)
    uneven = _uneven(of_part // places, count)
    if not uneven.any():
        return flat
    order = named[np.argsort(part, kind="stable")]
    rows_of = dict(zip(of_part.tolist(), np.split(order, np.cumsum(count)[:-1]), strict=True))
    sequence = flat.rows.sequence.copy()
    for group in np.unique(of_part[uneven] // places).tolist():
        mine = np.flatnonzero(of_part // places == group)
        numbers, how_many = np.unique(count[mine], return_counts=True)
        usual = int(numbers[::-1][how_many[::-1].argmax()])  # of equals the longest
        led = flat.rows.end_ns[rows_of[int(of_part[mine[count[mine] == usual][0]])]]
        for one in mine[count[mine] != usual].tolist():
            rows = rows_of[int(of_part[one])]
            found = shift_between(flat.rows.end_ns[rows], led, one_clock=False)
            if found is not None:
                sequence[rows] += found[1]
    return replace(flat, rows=replace(flat.rows, sequence=sequence))


def _uneven(group: IntArray, count: IntArray) -> BoolArray:
    """Which counts are of groups whose ranks have different ones; groups stand together."""
    first = parts.begins_of(group)
    result: BoolArray = parts.spread(parts.most(count, first) != parts.least(count, first), first)
    return result

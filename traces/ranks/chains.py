"""A run as chains: what each rank did between its collectives, and how these hold the ranks together.

A rank comes to a collective by its own work, after the one of its own that had ended last, and never before
the one before in the same group has ended. An instance moves when its last participant is there. Replayed as
recorded, every time comes out as it was.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.columns import IntArray
from traces.ranks import parts
from traces.ranks.clocks import Aligned
from traces.ranks.match import Matched

NO_ROW: Final = -1
"""Nothing of the rank came before."""
NEVER: Final = int(np.iinfo(np.int64).min)
"""The end of what is not reached."""


class Ends:
    """Participations of each place by when they ended."""

    def __init__(self, place: IntArray, end_ns: IntArray) -> None:
        self._zero_ns = int(end_ns.min()) - 1 if len(end_ns) else 0
        self._span = int(end_ns.max()) - self._zero_ns + 1 if len(end_ns) else 1
        ends = self._key(place, end_ns)
        order = parts.order_of(ends, (int(place.max(initial=0)) + 1) * self._span)
        self._ends, self._rows = np.append(-1, ends[order]), np.append(NO_ROW, order)

    def before(self, place: IntArray, time_ns: IntArray) -> IntArray:
        """Of each (place, time) the row of that place that had ended last by then; else `NO_ROW`."""
        at = np.searchsorted(self._ends, self._key(place, time_ns), side="right") - 1
        return np.where(self._ends[at] >= place * self._span, self._rows[at], NO_ROW)

    def _key(self, place: IntArray, time_ns: IntArray) -> IntArray:
        return place * self._span + np.clip(time_ns - self._zero_ns, 0, self._span - 1)


@dataclass(frozen=True, slots=True)
class Chains:
    """Of each participation, shape (p,): the row that it comes `after`, the last of its rank that had ended,
    and `own_ns` since then; the row `behind` which it lies in its group; and how long it moves once the last
    rank is there: below 0 by what the clocks are apart. Where it comes after nothing, `own_ns` is the time
    itself.
    """

    first: IntArray
    ends: Ends
    after: IntArray
    behind: IntArray
    own_ns: IntArray
    moving_ns: IntArray


def chains_of(matched: Matched, aligned: Aligned) -> Chains:
    """The chains of all ranks."""
    start_ns, end_ns = aligned.start_ns, aligned.end_ns
    ends = Ends(matched.place, end_ns)
    after = ends.before(matched.place, start_ns)
    own_ns = start_ns - np.where(after == NO_ROW, 0, end_ns[after])
    arrived_ns = parts.spread(parts.most(start_ns, matched.first), matched.first)
    return Chains(matched.first, ends, after, _behind(matched, aligned), own_ns, end_ns - arrived_ns)


def _behind(matched: Matched, aligned: Aligned) -> IntArray:
    """The row before in the same group, where it had ended."""
    group = matched.group[matched.instance]
    order = parts.order_of(matched.place, int(matched.place.max(initial=0)) + 1)  # groups rise in the rows
    same = (np.diff(group[order]) == 0) & (np.diff(matched.place[order]) == 0)
    if (np.diff(aligned.start_ns[order])[same] < 0).any():
        order = np.lexsort((aligned.start_ns, group, matched.place))
        same = (np.diff(group[order]) == 0) & (np.diff(matched.place[order]) == 0)
    same &= aligned.end_ns[order[:-1]] <= aligned.start_ns[order[1:]]
    behind = np.full(len(order), NO_ROW, dtype=np.int64)
    behind[order[1:][same]] = order[:-1][same]
    return behind


def replayed(chains: Chains, own_ns: IntArray, moving_ns: IntArray) -> IntArray:
    """The end of each participation, with other work and other transfers; shape (p,).

    `NEVER` where a rank comes to it only after what comes after it: a recorded order that contradicts itself.
    """
    first, after, behind = chains.first, chains.after, chains.behind
    count, rows = len(first) - 1, np.arange(len(after))
    instance = np.append(parts.numbers(first), count)
    before = np.concatenate((instance[after], instance[np.where(behind == after, NO_ROW, behind)]))
    told = before != count
    follower, before = np.tile(rows, 2)[told], before[told]
    waits_for = np.bincount(instance[follower], minlength=count)
    order = np.argsort(before)  # those who wait, by the instance that they wait for
    followers = instance[follower[order]]
    begins = parts.borders(np.bincount(before, minlength=count))
    end_ns = np.full(len(after) + 1, NEVER)  # the last stands for nothing before
    ready = np.flatnonzero(waits_for == 0)
    while len(ready):
        rows = _ranges(first[ready], first[ready + 1])
        since_ns = np.where(after[rows] == NO_ROW, 0, end_ns[after[rows]])
        here_ns = np.maximum(since_ns + own_ns[rows], end_ns[behind[rows]])
        lengths = first[ready + 1] - first[ready]
        arrived_ns = np.maximum.reduceat(here_ns, np.cumsum(lengths) - lengths)
        end_ns[rows] = np.repeat(arrived_ns, lengths) + moving_ns[rows]
        later = np.sort(followers[_ranges(begins[ready], begins[ready + 1])])
        each = parts.begins_of(later)
        later = later[each[:-1]]
        waits_for[later] -= np.diff(each)
        ready = later[waits_for[later] == 0]
    result: IntArray = end_ns[:-1]
    return result


def _ranges(begin: IntArray, end: IntArray) -> IntArray:
    """The numbers of several ranges, one after the other."""
    lengths = end - begin
    whole = int(lengths.sum())
    result: IntArray = np.arange(whole) + np.repeat(begin - (np.cumsum(lengths) - lengths), lengths)
    return result

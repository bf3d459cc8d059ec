"""A sequence as loops: alike neighbours are one run, and runs that stand several times in a row a
loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from traces.arrays import (
    BoolArray,
    IntArray,
    columns_of,
    ints,
    listed,
    none_of,
    order_of,
    row_by_row,
    summed,
    zeros,
)
from traces.frozen import frozen
from traces.groups import before_of, begins, first_of, group_of
from traces.limits import Limit

TRIED: Final = Limit(
    32,
    "periods",
    "ours, at once and one after the other: a loop of a step is among the first three that most "
    "rows keep, and steps of all recordings that we have need 1 to 21 passes",
)


@frozen
class Folded:
    """A sequence of n rows as runs: `run` of shape (n,) is the run of each row, `of` the number of
    its rows.

    `of` and `length` have one entry a run: what its rows are, and how many follow each other, each
    time. `loops`: first run, how many runs and how often, the outer before those within.
    """

    run: IntArray
    of: IntArray
    length: IntArray
    loops: tuple[tuple[int, int, int], ...]


def fold(numbers: IntArray, most: int) -> Folded | None:
    """The sequence as runs and loops; None where these are more than `most` runs.

    Shorter periods are folded first, so that loops within loops are found from the inside.
    """
    tree, level = _runs_of(numbers)
    for _ in range(TRIED.whole):
        shorter = _folded_once(tree, level)
        if shorter is None:
            break
        level = shorter
    if summed(ints(tree.sizes)[level.token]) > most:
        return None
    return _laid_out(tree, level, len(numbers))


@dataclass(slots=True)
class _Tree:
    """What tokens stand for: a run (number, length), or a loop (times, tokens of its body).

    `rows` and `sizes`: how many rows and how many runs each stands for.
    """

    parts: list[tuple[int, int] | tuple[int, tuple[int, ...]]] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    loops: dict[tuple[int, tuple[int, ...]], int] = field(default_factory=dict)

    def loop(self, times: int, body: tuple[int, ...]) -> int:
        """The token of a loop, the same for the same loop."""
        if (token := self.loops.get((times, body))) is not None:
            return token
        token = self.loops[times, body] = len(self.parts)
        self.parts.append((times, body))
        rows = size = 0
        for inner in body:
            rows += self.rows[inner]
            size += self.sizes[inner]
        self.rows.append(times * rows)
        self.sizes.append(size)
        return token


@frozen
class _Level:
    """The sequence as tokens, in order."""

    token: IntArray


def _runs_of(numbers: IntArray) -> tuple[_Tree, _Level]:
    """Alike neighbours as one token each."""
    first = np.flatnonzero(begins(numbers))
    length, number = np.diff(first, append=len(numbers)), numbers[first]
    token = group_of(number, length)
    tree = _Tree()
    for at in first_of(token).tolist():
        tree.parts.append((int(number[at]), int(length[at])))
        tree.rows.append(int(length[at]))
        tree.sizes.append(1)
    return tree, _Level(token)


def _folded_once(tree: _Tree, level: _Level) -> _Level | None:
    """The level with every loop of its shortest period folded; None where nothing is repeated."""
    token = level.token
    for period in _periods(token):
        if stretches := list(_repeated(token, period)):
            kept, folded = ~none_of(len(token)), token.copy()
            for first, times in stretches:
                folded[first] = tree.loop(times, listed(token[first : first + period]))
                kept[first + 1 : first + times * period] = False
            return _Level(folded[kept])
    return None


def _periods(token: IntArray) -> list[int]:
    """Periods that may be there, rising: how far apart the same tokens, and the same three,
    stand.
    """
    periods: list[int] = []
    for key in (token, group_of(token[:-2], token[1:-1], token[2:])):
        before = before_of(key)
        apart = (np.arange(len(key)) - before)[before >= 0]
        counts = np.bincount(apart[apart <= len(token) // 2])  # a longer one stands only once
        often = order_of(-counts)[: TRIED.whole]
        periods += often[counts[often] > 0].tolist()
    return sorted(set(periods))


def _repeated(token: IntArray, period: int) -> Iterator[tuple[int, int]]:
    """Where tokens repeat themselves after a period, and how often they then stand there; none
    overlaps.
    """
    same = token[period:] == token[:-period]
    end = 0
    for first, last in _stretches(same, period):
        begin = max(first, end)
        times = (last - begin) // period + 1
        if times > 1:
            yield begin, times
            end = begin + times * period


def _stretches(mask: BoolArray, least: int) -> Iterator[tuple[int, int]]:
    """Stretches in which a mask holds, of at least some length."""
    change = np.diff(mask.astype(np.int8), prepend=0, append=0)
    first, last = np.flatnonzero(change == 1), np.flatnonzero(change == -1)
    long = last - first >= least
    yield from row_by_row(first[long], last[long])


def _laid_out(tree: _Tree, level: _Level, count: int) -> Folded:
    """The runs in order, each row given to its run."""
    run = zeros(count)
    runs: list[tuple[int, int]] = []
    loops: list[tuple[int, int, int]] = []

    def lay(token: int, starts: IntArray) -> None:
        """One token of which the passes through it begin at these rows."""
        first, second = tree.parts[token]
        if isinstance(second, int):
            run[(starts[:, None] + np.arange(second)).ravel()] = len(runs)
            runs.append((first, second))
            return
        loops.append((len(runs), tree.sizes[token], first))
        rows_per_pass = tree.rows[token] // first
        starts = (starts[:, None] + np.arange(first) * rows_per_pass).ravel()
        for inner in second:
            lay(inner, starts)
            starts = starts + tree.rows[inner]

    at = 0
    for token in level.token.tolist():
        lay(token, np.array([at]))
        at += tree.rows[token]
    of, length = columns_of(runs, 2)
    return Folded(run, of, length, tuple(loops))

"""Time by step: intervals cut at the borders of the used steps, or of the one window."""

from dataclasses import dataclass

import numpy as np

from traces.columns import IntArray
from traces.intervals import Spans
from traces.steps.found import Steps


@dataclass(frozen=True, slots=True)
class Borders:
    """Disjoint stretches in order, shape (k,): the used steps, which may touch, else the windows."""

    start_ns: IntArray
    end_ns: IntArray

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True, slots=True)
class Cut:
    """Pieces of intervals, shape (m,): of which interval, in which stretch, and where."""

    of: IntArray
    step: IntArray
    start_ns: IntArray
    end_ns: IntArray


def borders_of(steps: Steps) -> Borders:
    """The used steps; where there are none, the one window."""
    if not steps.used:
        return Borders(steps.windows.start_ns, steps.windows.end_ns)
    start, end = ([getattr(step, key) for step in steps.used] for key in ("start_ns", "end_ns"))
    return Borders(np.array(start, dtype=np.int64), np.array(end, dtype=np.int64))


def cut_at(start_ns: IntArray, end_ns: IntArray, borders: Borders) -> Cut:
    """Cut intervals [start, end), shape (n,), at the borders; what lies outside of all steps is left out."""
    first = np.searchsorted(borders.end_ns, start_ns, side="right")
    last = np.searchsorted(borders.start_ns, end_ns, side="left") - 1
    count = np.where(end_ns > start_ns, np.maximum(last - first + 1, 0), 0)
    of = np.repeat(np.arange(len(start_ns)), count)
    step = np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count) + first[of]
    start = np.maximum(start_ns[of], borders.start_ns[step])
    end = np.minimum(end_ns[of], borders.end_ns[step])
    return Cut(of, step, start, end)


def per_step_ns(held: Spans, borders: Borders) -> IntArray:
    """How much of a set of instants each step holds, shape (k,)."""
    pieces = cut_at(held.start_ns, held.end_ns, borders)
    result = np.zeros(len(borders), dtype=np.int64)
    np.add.at(result, pieces.step, pieces.end_ns - pieces.start_ns)
    return result

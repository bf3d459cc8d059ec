"""Intervals within one replay of a CUDA graph recorded by node: its inner edges are not in the trace."""

from dataclasses import dataclass

import numpy as np

from traces.account.pieces import Pieces
from traces.account.running import last_to_end
from traces.columns import PLACE, IntArray
from traces.timeline import Activities, Bucket, RankTimeline


@dataclass(frozen=True, slots=True)
class Running:
    """Pieces within a replay in which one of its nodes ran: `work` is its place in the activities."""

    pieces: Pieces
    work: IntArray


class GraphNodes:
    """Replays of a rank: activities that share the row of their launching call."""

    def __init__(self, rank: RankTimeline) -> None:
        self._rows: Activities = rank.activities
        rows = self._rows
        launched = np.flatnonzero(rows.call >= 0)
        order = launched[np.lexsort((rows.start_ns[launched], rows.call[launched]))]
        call = rows.call[order]
        self._first = np.arange(len(rows), dtype=PLACE)
        self._first[order] = order[np.searchsorted(call, call, side="left")]

    def split(self, pieces: Pieces) -> tuple[Pieces, Pieces, Running]:
        """Pieces outside of replays, opaque pieces within, and those in which another node ran.

        The time before a replay's first node is judged for that node, by its graph launch.
        """
        rows = self._rows
        first = self._first[pieces.kernel]
        begun = rows.start_ns[first]
        before = pieces.clipped(pieces.start_ns, begun)
        outer = Pieces(before.start_ns, before.end_ns, before.gap, self._first[before.kernel])
        alone = first == pieces.kernel
        within = pieces.take(~alone)
        within = within.clipped(begun[~alone], within.end_ns)
        opaque, running = self._nodes_running(within)
        return outer, opaque, running

    def _nodes_running(self, within: Pieces) -> tuple[Pieces, Running]:
        """Cut out where a node of the same replay without compute ran, the one that ends last first."""
        rows = self._rows
        opaque: list[tuple[int, int, int, int]] = []
        running: list[tuple[int, int, int, int, int]] = []
        not_compute = np.flatnonzero((rows.bucket != Bucket.COMPUTE) & (rows.call >= 0))
        not_compute = not_compute[np.argsort(rows.call[not_compute], kind="stable")]
        calls = rows.call[not_compute]
        for index in range(len(within)):
            start, end = int(within.start_ns[index]), int(within.end_ns[index])
            gap, kernel = int(within.gap[index]), int(within.kernel[index])
            low, high = np.searchsorted(calls, (rows.call[kernel], rows.call[kernel] + 1))
            for at, until, last in last_to_end(rows, not_compute[low:high], start, end):
                if last is None:
                    opaque.append((at, until, gap, kernel))
                else:
                    running.append((at, until, gap, kernel, last))
        rest = Pieces(*np.array(opaque, dtype=np.int64).reshape(-1, 4).T)
        table = np.array(running, dtype=np.int64).reshape(-1, 5).T
        return rest, Running(Pieces(*table[:4]), table[4])

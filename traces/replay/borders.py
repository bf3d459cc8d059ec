"""How long the steps of a recording last in a replay: from border to border, by the work done until each."""

from __future__ import annotations

import numpy as np

from traces.columns import IntArray
from traces.replay.run import Replayed
from traces.timeline import Activities


class Borders:
    """The borders of a recording's steps, or windows, shape (k, 2), and its work as recorded.

    A replay has reached a border when all work is done that had ended by then, and of the work that ran
    across it as much as had been done; where none had begun, when the first work starts.
    """

    def __init__(self, rows: Activities, pairs_ns: IntArray) -> None:
        at_ns = pairs_ns.ravel()
        self._by_end = np.argsort(rows.end_ns, kind="stable")
        self._ended = np.searchsorted(rows.end_ns[self._by_end], at_ns, side="right") - 1
        self._across = [np.flatnonzero((rows.start_ns < at) & (rows.end_ns > at)) for at in at_ns.tolist()]
        self._done_ns = [at - rows.start_ns[work] for at, work in zip(at_ns, self._across, strict=True)]
        self._length_ns = [(rows.end_ns - rows.start_ns)[work] for work in self._across]

    def lengths_ns(self, done: Replayed) -> IntArray:
        """From the first to the second border of each pair, shape (k,)."""
        latest = np.maximum.accumulate(done.end_ns[self._by_end])
        reached = np.where(self._ended >= 0, latest[np.maximum(self._ended, 0)], done.start_ns.min())
        for place, work in enumerate(self._across):
            if len(work):
                lasts_ns = done.end_ns[work] - done.start_ns[work]
                part_ns = lasts_ns * self._done_ns[place] // self._length_ns[place]
                reached[place] = max(int(reached[place]), int((done.start_ns[work] + part_ns).max()))
        pairs = reached.reshape(-1, 2)
        result: IntArray = pairs[:, 1] - pairs[:, 0]
        return result

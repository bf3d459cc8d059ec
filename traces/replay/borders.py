"""How long the steps of a recording last in a replay: from border to border, by the work done until each."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from traces.columns import IntArray
from traces.launchers import helper_work
from traces.replay.run import Replayed
from traces.timeline import Activities


class Borders:
    """The borders of a recording's steps, or windows, shape (k, 2), and its work as recorded.

    A replay has reached a border when all work is done that had ended by then, and of the work that ran
    across it as much as had been done; where none had begun, when the first work starts. Work of helper
    threads, whose pace is their own, makes no border. Stretches with the instants `apart_ns` between them are
    replayed apart: none holds up the next, and what came before a later one stays. Each step counts for so
    long as `stand_for_ns` says, shape (k,); None: for itself.
    """

    def __init__(
        self,
        rows: Activities,
        pairs_ns: Sequence[tuple[int, int]],
        stand_for_ns: Sequence[int] | None = None,
        apart_ns: Sequence[int] = (),
    ) -> None:
        pairs = np.array(pairs_ns, dtype=np.int64).reshape(-1, 2)
        at_ns, lengths_ns = pairs.ravel(), pairs[:, 1] - pairs[:, 0]
        self._times = np.ones(len(pairs)) if stand_for_ns is None else np.array(stand_for_ns) / lengths_ns
        own = ~helper_work(rows)
        self._by_end = np.argsort(rows.end_ns, kind="stable")
        self._by_end = self._by_end[own[self._by_end]]
        ends = rows.end_ns[self._by_end]
        self._ended = np.searchsorted(ends, at_ns, side="right") - 1
        parts = (0, *np.searchsorted(ends, apart_ns).tolist(), len(ends))
        self._parts = [slice(*part) for part in pairwise(parts)]
        self._at_ns, self._part = at_ns, np.searchsorted(apart_ns, at_ns)
        self._begun = self._ended >= np.array(parts)[self._part]
        self._across = [
            np.flatnonzero(own & (rows.start_ns < at) & (rows.end_ns > at)) for at in at_ns.tolist()
        ]
        self._done_ns = [at - rows.start_ns[work] for at, work in zip(at_ns, self._across, strict=True)]
        self._length_ns = [(rows.end_ns - rows.start_ns)[work] for work in self._across]

    def lengths_ns(self, done: Replayed) -> IntArray:
        """From the first to the second border of each pair, shape (k,), for all that it stands for."""
        ends = done.end_ns[self._by_end]
        latest = np.concatenate([np.maximum.accumulate(ends[part]) for part in self._parts])
        before = np.where(self._part > 0, self._at_ns, done.start_ns[self._by_end].min())
        reached = np.where(self._begun, latest[np.maximum(self._ended, 0)], before)
        for place, work in enumerate(self._across):
            if len(work):
                lasts_ns = done.end_ns[work] - done.start_ns[work]
                part_ns = lasts_ns * self._done_ns[place] // self._length_ns[place]
                reached[place] = max(int(reached[place]), int((done.start_ns[work] + part_ns).max()))
        pairs = reached.reshape(-1, 2)
        return ((pairs[:, 1] - pairs[:, 0]) * self._times).astype(np.int64)

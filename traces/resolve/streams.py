"""Evidence: the stream. Each communicator of PyTorch has its own, so what runs on one has one purpose."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traces.columns import BoolArray, IntArray, distinct
from traces.resolve.communication import Communication
from traces.timeline import Bucket


@dataclass(frozen=True, slots=True)
class Streams:
    """Streams of the communication activities: `of_row` numbers them, shape (m,), and says which are shared.

    A stream with compute kernels is no communicator's own: nothing follows from it.
    """

    of_row: IntArray
    ids: IntArray
    own: BoolArray

    def __len__(self) -> int:
        return len(self.ids)

    def share(self, mask: BoolArray, among: BoolArray) -> IntArray:
        """How many of each stream's rows in `among` are in `mask`, per row; shape (m,)."""
        return np.bincount(self.of_row[mask & among], minlength=len(self))[self.of_row]

    def any_of(self, mask: BoolArray) -> BoolArray:
        """Rows on a communicator's own stream that has a row in the mask; shape (m,)."""
        return self.own[self.of_row] & (np.bincount(self.of_row[mask], minlength=len(self))[self.of_row] > 0)

    def agreed(self, value: IntArray, among: BoolArray, shared: bool = False) -> IntArray:
        """Per row of `among` the one value (not negative) that all others told on its stream have.

        At least half of the stream's rows must be told; -1 elsewhere, and on streams that compute runs on too
        unless `shared`. Shape (m,).
        """
        told = among & (value >= 0)
        top = int(value.max(initial=0)) + 1
        counts = np.zeros((len(self), top), dtype=np.int64)
        np.add.at(counts, (self.of_row[told], value[told]), 1)
        number = np.bincount(self.of_row[among], minlength=len(self))
        one = ((counts > 0).sum(axis=1) == 1) & (2 * counts.sum(axis=1) >= number) & (self.own | shared)
        per_stream = np.where(one, counts.argmax(axis=1), -1)
        return np.where(among, per_stream[self.of_row], -1)


def streams_of(comm: Communication) -> Streams:
    """Number the streams of the communication activities."""
    rows = comm.rank.activities
    ids = distinct(comm.rows.stream_id)
    compute = distinct(rows.stream_id[rows.bucket == Bucket.COMPUTE])
    return Streams(np.searchsorted(ids, comm.rows.stream_id), ids, ~np.isin(ids, compute))

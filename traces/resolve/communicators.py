"""Evidence: the communicator. What runs on one has one purpose, and so has what runs on its stream.

The PyTorch profiler writes the process group of a collective beside its kernel.
"""

from typing import Final

import numpy as np

from traces.arrays import FOREVER, BoolArray, IntArray, distinct, ints, zeros
from traces.columns import PURPOSES
from traces.frozen import frozen
from traces.groups import mask_of
from traces.limits import NEARLY_ALL
from traces.resolve.communication import Communication
from traces.resolve.nccl_calls import ALL_TO_ALL, POINT_TO_POINT, UNKNOWN
from traces.resolve.resolution import UNTOLD


@frozen
class Parts:
    """The communication activities in parts, by stream or by communicator.

    `of_row` numbers the part of each activity, shape (m,), `ids` names the parts. From one that is
    not `own`, where other work runs too, nothing follows.
    """

    of_row: IntArray
    ids: IntArray
    own: BoolArray

    def __len__(self) -> int:
        return len(self.ids)

    def share(self, mask: BoolArray, among: BoolArray) -> IntArray:
        """How many of each part's rows in `among` are in `mask`, per row; shape (m,)."""
        return np.bincount(self.of_row[mask & among], minlength=len(self))[self.of_row]

    def nearly_all(self, mask: BoolArray, among: BoolArray) -> BoolArray:
        """Rows of a part where nearly all of its rows in `among` are in the mask; shape (m,)."""
        return self.share(mask, among) >= NEARLY_ALL.value * self.share(among, among)

    def any_of(self, mask: BoolArray) -> BoolArray:
        """Rows of an own part that has a row in the mask; shape (m,)."""
        return (self.own & mask_of(self.of_row[mask], len(self)))[self.of_row]

    def agreed(self, value: IntArray, among: BoolArray, shared: bool = False) -> IntArray:
        """Per row of `among` the one purpose that all others told in its part have.

        At least half of the part's rows must be told; `UNTOLD` elsewhere, and in parts that are not
        own unless `shared`. Shape (m,).
        """
        settled = among & (value != UNTOLD)
        counts = zeros((len(self), len(PURPOSES)))
        np.add.at(counts, (self.of_row[settled], value[settled]), 1)
        number = np.bincount(self.of_row[among], minlength=len(self))
        agrees = (
            ((counts > 0).sum(axis=1) == 1)
            & (2 * counts.sum(axis=1) >= number)
            & (self.own | shared)
        )
        per_part = np.where(agrees, counts.argmax(axis=1), UNTOLD)
        return np.where(among, per_part[self.of_row], UNTOLD)


def streams_of(comm: Communication, communicator: IntArray) -> Parts:
    """By stream. One with compute kernels or several communicators is not own.

    `communicator` numbers that of each activity, shape (m,), -1 where untold.
    """
    rows = comm.rank.activities
    ids = distinct(comm.rows.stream_id)
    of_row = np.searchsorted(ids, comm.rows.stream_id)
    compute = distinct(rows.stream_id[rows.is_compute])
    known = communicator != UNTOLD
    most, least = np.full(len(ids), UNTOLD), np.full(len(ids), FOREVER)
    np.maximum.at(most, of_row[known], communicator[known])
    np.minimum.at(least, of_row[known], communicator[known])
    return Parts(of_row, ids, ~np.isin(ids, compute) & (most <= least))


def communicators_of(communicator: IntArray) -> Parts:
    """By communicator, shape (m,), -1 where untold: those rows are no part of their own."""
    ids = distinct(np.append(communicator, UNTOLD))
    return Parts(np.searchsorted(ids, communicator), ids, ids != UNTOLD)


_SHAPE_OF: Final = ints([ALL_TO_ALL, POINT_TO_POINT, UNKNOWN])
"""Of each of `EXCHANGES`, the last where none is told."""


@frozen
class ProcessGroups:
    """Of each activity, shape (m,): the `group` by number, its `purpose` (`PURPOSES`), `UNTOLD`
    where untold.

    `shape` is that of `traces.resolve.nccl_calls`, by the name of the collective.
    """

    group: IntArray
    purpose: IntArray
    shape: IntArray


def process_groups_of(comm: Communication) -> ProcessGroups:
    """Ask what stands beside each communication kernel; nothing does beside copies."""
    group, purpose, exchange = np.full((3, len(comm)), UNTOLD)
    recorded = comm.rank.columns.collectives
    if recorded is not None:
        kernel = comm.rows.is_kernel
        row = comm.rows.row[kernel]
        group[kernel], purpose[kernel] = recorded.group[row], recorded.purpose[row]
        exchange[kernel] = recorded.exchange[row]
    return ProcessGroups(group, purpose, _SHAPE_OF[exchange])

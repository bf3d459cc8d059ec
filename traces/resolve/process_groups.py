"""Evidence: the process group of a collective, as the PyTorch profiler wrote it beside the kernel."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.columns import EXCHANGES, PURPOSES, BoolArray, IntArray
from traces.resolve.communication import Communication
from traces.resolve.nccl_groups import ALL_TO_ALL, POINT_TO_POINT, UNKNOWN
from traces.resolve.resolution import UNTOLD
from traces.timeline import Source

_SHAPE_OF: Final = {"all_to_all": ALL_TO_ALL, "p2p": POINT_TO_POINT}


@dataclass(frozen=True, slots=True)
class ProcessGroups:
    """Of each activity, shape (m,): the `group` by number, its `purpose` (`PURPOSES`), `UNTOLD` where untold.

    `shape` is that of `traces.resolve.nccl_groups`, by the name of the collective.
    """

    group: IntArray
    purpose: IntArray
    shape: IntArray

    def of_purpose(self, purpose: str) -> BoolArray:
        """Mask of the activities whose group is described so."""
        return np.equal(self.purpose, PURPOSES.index(purpose))


def process_groups_of(comm: Communication) -> ProcessGroups:
    """Ask what stands beside each communication kernel; nothing does beside copies."""
    group, purpose, exchange = (np.full(len(comm), UNTOLD, dtype=np.int64) for _ in range(3))
    recorded = comm.rank.columns.collectives
    if recorded is not None:
        kernel = comm.rows.source == Source.KERNEL
        row = comm.rows.row[kernel]
        group[kernel], purpose[kernel] = recorded.group[row], recorded.purpose[row]
        exchange[kernel] = recorded.exchange[row]
    of_exchange = np.array([*(_SHAPE_OF[name] for name in EXCHANGES), UNKNOWN], dtype=np.int64)
    return ProcessGroups(group, purpose, of_exchange[exchange])

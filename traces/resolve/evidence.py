"""Everything that is asked about the communication of a rank before its purposes are settled."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.columns import PURPOSES, BoolArray, IntArray
from traces.resolve.communication import Communication
from traces.resolve.draft import Draft
from traces.resolve.nccl_groups import Groups, groups_of
from traces.resolve.neighbours import Neighbours, neighbours_of
from traces.resolve.parts import Parts, communicators_of, streams_of
from traces.resolve.process_groups import ProcessGroups, process_groups_of
from traces.resolve.ranges import Enclosing, enclosing_ranges
from traces.resolve.resolution import UNTOLD
from traces.timeline import Source

_OF_GATHER: Final = ("ep", "dp", "cp", "tp")
_OF_SENDRECV: Final = ("ep", "pp", "cp", "tp")
_OF_ALL_REDUCE: Final = ("tp",)


@dataclass(frozen=True, slots=True)
class Evidence:
    """All evidence on the communication activities of a rank; `sendrecv` masks the exchanges, shape (m,)."""

    comm: Communication
    sendrecv: BoolArray
    processes: ProcessGroups
    groups: Groups
    ranges: Enclosing
    communicators: Parts
    streams: Parts
    near: Neighbours

    def fitting(self, purpose: IntArray) -> IntArray:
        """The purposes that the operation can have, `UNTOLD` for the others, shape (m,).

        A group of data parallelism may gather, scatter and reduce, but what it exchanges is not gradients.
        """
        gather = self.comm.of_subclass("all_gather", "reduce_scatter")
        result = np.full(len(purpose), UNTOLD, dtype=np.int64)
        for which, purposes in (
            (gather, _OF_GATHER),
            (self.sendrecv, _OF_SENDRECV),
            (self.comm.of_subclass("all_reduce"), _OF_ALL_REDUCE),
        ):
            fits = which & np.isin(purpose, [PURPOSES.index(name) for name in purposes])
            result[fits] = purpose[fits]
        return result


def evidence_on(comm: Communication) -> Evidence:
    """Ask every kind of evidence."""
    groups, processes = groups_of(comm), process_groups_of(comm)
    # a process group stands for its communicators; no trace has both
    communicator = np.where(groups.communicator == UNTOLD, processes.group, groups.communicator)
    copies = comm.rows.source == Source.COPY  # NCCL's copy engines: an all-to-all without a kernel
    return Evidence(
        comm=comm,
        sendrecv=comm.of_subclass("sendrecv") | (copies & (groups.all_to_all_count > 0)),
        processes=processes,
        groups=groups,
        ranges=enclosing_ranges(comm),
        communicators=communicators_of(communicator),
        streams=streams_of(comm, communicator),
        near=neighbours_of(comm),
    )


def settle_by_communicator(draft: Draft, found: Evidence, among: BoolArray) -> None:
    """Settle what is still open of the mask as the others of its communicator are settled, if these agree."""
    purpose = found.fitting(found.communicators.agreed(draft.purpose, among))
    draft.settle_each(purpose, "communicator", "medium")

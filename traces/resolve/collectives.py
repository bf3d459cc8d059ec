"""AllGather, ReduceScatter and AllReduce: data parallelism, expert traffic, or tensor parallelism.

A name says the operation only. Process groups and ranges say the purpose, else the others of its
communicator, else the configuration; else what stands beside the optimizer is data-parallel, and so is its
communicator or stream; else gathers and scatters that bracket the permute are a dispatcher's.
"""

from typing import Final

import numpy as np

from traces.resolve.communication import Communication
from traces.resolve.draft import Draft
from traces.resolve.evidence import Evidence, settle_by_communicator
from traces.resolve.neighbours import Neighbours, Role
from traces.resolve.parts import Parts
from traces.resolve.ranges import Enclosing
from traces.resolve.resolution import PHASES, UNTOLD

_FORWARD: Final = PHASES.index("fwd")


def settle_collectives(draft: Draft, found: Evidence, *, only_data_parallel: bool) -> None:
    """Settle the purpose of collectives, once that of SendRecv is settled, as far as evidence goes.

    `only_data_parallel`: the configuration leaves gathers and scatters no other use.
    """
    comm, near = found.comm, found.near
    collective = comm.of_subclass("all_gather", "reduce_scatter")
    named = collective | comm.of_subclass("all_reduce")
    described = np.where(named, found.fitting(found.processes.purpose), UNTOLD)
    draft.settle_each(described, "process_group", "high")
    _settle_by_ranges(draft, comm, found.ranges)
    settle_by_communicator(draft, found, collective)
    draft.settle(collective & only_data_parallel, "dp", "configuration", "high")
    _settle_data_parallel(draft, found)
    _settle_gather_dispatcher(draft, comm, near, found.streams)


def _settle_by_ranges(draft: Draft, comm: Communication, ranges: Enclosing) -> None:
    """Purpose of collectives launched within a range that names it."""
    collective = comm.of_subclass("all_gather", "reduce_scatter")
    draft.settle(collective & ranges.of_purpose("dp"), "dp", "nvtx_range", "high")
    with_reduce = collective | comm.of_subclass("all_reduce")
    draft.settle(with_reduce & ranges.of_purpose("tp"), "tp", "nvtx_range", "high")
    draft.settle(collective & ranges.of_purpose("ep"), "ep", "nvtx_range", "high")
    draft.settle(collective & ranges.of_purpose("cp"), "cp", "nvtx_range", "high")


def _settle_data_parallel(draft: Draft, found: Evidence) -> None:
    """Gathers and scatters beside the optimizer, and the others of the same communicator or kind of stream.

    Sharded optimizers gather parameters after they step and scatter gradients before (ZeRO, Megatron-Core's
    distributed optimizer, FSDP). A stream that scatters in the forward pass too carries activations as well:
    there only what stands beside the optimizer itself is told.
    """
    comm, near, streams = found.comm, found.near, found.streams
    gather, scatter = comm.of_subclass("all_gather"), comm.of_subclass("reduce_scatter")
    beside = (gather & (near.previous == Role.OPTIMIZER)) | (scatter & (near.next == Role.OPTIMIZER))
    in_forward = (near.previous_phase == _FORWARD) & (near.next_phase == _FORWARD)
    alone = beside
    for parts in (found.communicators, streams):
        alone = alone & ~parts.any_of(scatter & in_forward)
    draft.settle(alone & streams.own[streams.of_row], "dp", "neighbours", "medium")
    draft.settle(beside, "dp", "neighbours", "low")
    draft.settle((gather | scatter) & found.communicators.any_of(alone), "dp", "communicator", "medium")
    draft.settle((gather | scatter) & streams.any_of(alone), "dp", "stream", "medium")


def _settle_gather_dispatcher(draft: Draft, comm: Communication, near: Neighbours, streams: Parts) -> None:
    """Gathers before the permute, scatters after the unpermute: tokens travel by them, where by nothing else.

    Where tokens travel another way, a gather after the router carries their counts, before the map of rows,
    the permute, or the experts (HybridEP permutes in its own kernels).
    """
    gather, scatter = comm.of_subclass("all_gather"), comm.of_subclass("reduce_scatter")
    before = draft.open & gather & (near.next == Role.PERMUTE) & (near.previous != Role.UNPERMUTE)
    after = draft.open & scatter & (near.previous == Role.UNPERMUTE)
    other_payload = draft.of("ep") | comm.of_subclass("ep_dispatch", "ep_combine", "ep_a2a", "ep_fused")
    if other_payload.any():
        to_experts = np.isin(near.next, (Role.ROUTER, Role.PERMUTE, Role.EXPERT))
        counts = draft.open & gather & (near.previous == Role.ROUTER) & to_experts
        draft.settle(counts & streams.nearly_all(counts, gather), "ep", "neighbours", "low")
        return
    open_sendrecv = (comm.of_subclass("sendrecv") & draft.open).any()
    both = streams.any_of(before) & streams.any_of(after)
    if not open_sendrecv:
        regular = streams.nearly_all(before | after, gather | scatter)
        draft.settle((before | after) & regular & both, "ep", "neighbours", "low")

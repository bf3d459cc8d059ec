"""What a recording holds and lacks, before anything is diagnosed from it; what NCCL said of its
calls.
"""

from collections.abc import Mapping

from msgspec import UNSET

from traces.account.clocks import clock_offset_ns
from traces.arrays import distinct, summed
from traces.columns import NULL, Columns
from traces.frozen import frozen
from traces.sections.trace import Messages
from traces.timeline import Timeline


@frozen
class Capture:
    """One trace as a recording. `rows`: what was recorded, by name, with its number of rows.

    `correlation_frac`: kernels whose launch was recorded, None without kernels. `clock_offset_ns`:
    by rank (process, device), 0 where host and GPU clocks agree, None where no launch was recorded.
    """

    rows: Mapping[str, int]
    correlation_frac: float | None
    clock_offset_ns: Mapping[tuple[int | None, int], int | None]
    graph_launches: int
    opaque_graph_launches: int


def measure_capture(columns: Columns, timeline: Timeline) -> Capture:
    """Count what a trace holds."""
    rows = {
        "kernels": len(columns.kernels),
        "copies and memsets": len(columns.copies),
        "graph replays": len(columns.replays),
        "CUDA calls": len(columns.calls),
        "NVTX ranges": len(columns.ranges),
        "event records": len(columns.events),
        "synchronisations": len(columns.syncs),
        "OS calls": len(columns.os_calls),
        "profiler overhead": len(columns.overheads),
        "memory events": 0 if columns.memory is None else len(columns.memory),
        "GPU counter samples": sum(map(len, columns.gpu_samples)),
    }
    total, launched, offset_ns = 0, 0, {}
    for rank in timeline.ranks:
        kernel = rank.activities.is_kernel
        total += summed(kernel)
        launched += summed(kernel & rank.activities.is_launched)
        offset_ns[rank.process, rank.device] = clock_offset_ns(rank)
    return Capture(
        rows,
        launched / total if total else None,
        offset_ns,
        timeline.graph_launches,
        timeline.opaque_graph_launches,
    )


def measure_messages(columns: Columns) -> tuple[Messages, ...] | None:
    """NCCL's messages of a trace, by operation; None where the export holds no payloads."""
    calls = columns.nccl_calls
    if calls is None:
        return None
    result = []
    for code, name in enumerate(calls.names):
        mine = calls.name == code
        size, peer = calls.payloads.size_bytes[mine], calls.payloads.peer[mine]
        communicator = calls.payloads.communicator[mine]
        peers = len(distinct(peer[peer != NULL]))
        result.append(
            Messages(
                name,
                summed(mine),
                summed(size[size != NULL]),
                len(distinct(communicator[communicator != NULL])),
                peers or UNSET,
            )
        )
    return tuple(result)

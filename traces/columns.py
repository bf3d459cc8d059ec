"""Columns: one trace's events as arrays, exactly as recorded. Every reader ends here.

Times are integer nanoseconds on the trace's own clock. A NULL in the source is `NULL`, never zero.
Rows keep the order of the source, which is not sorted.
"""

from collections.abc import Iterator
from enum import IntEnum
from typing import Final

import numpy as np

from traces.arrays import BoolArray, FloatArray, IntArray, Lasting, Rows
from traces.frozen import frozen
from traces.problems import Problems
from traces.texts import Texts

NULL: Final = int(np.iinfo(np.int64).min)
"""Stands for SQL NULL in integer columns; no id or time of a real export has this value."""


PROCESS_BITS: Final = ~0xFFFFFF
"""Mask of a packed thread id that leaves its process (nsys: HW 8 bits, VM 8, process 24, thread
24)."""


def process_of(gid: int) -> int:
    """Operating-system process id in a packed id; that is signed and can be negative, so it is
    masked.
    """
    return (gid >> 24) & 0xFFFFFF


@frozen
class GpuRows(Rows):
    """Work that ran on a GPU: one row per interval, all arrays of shape (n,).

    `process_gid` is nsys's global process id with the thread bits cleared (NULL where the export
    has none).
    """

    start_ns: IntArray
    end_ns: IntArray
    device_id: IntArray
    stream_id: IntArray
    correlation_id: IntArray
    process_gid: IntArray


@frozen
class LaunchShapes:
    """The distinct launch shapes of a trace: `grid` and `block` of shape (k, 3), the others (k,).

    Shared memory is in bytes, registers are per thread. What the source lacks is NULL.
    """

    grid: IntArray
    block: IntArray
    registers: IntArray
    static_shared_bytes: IntArray
    dynamic_shared_bytes: IntArray

    @property
    def blocks(self) -> IntArray:
        """Blocks of each grid, shape (k,), NULL where it was not recorded."""
        return np.where(self.grid.min(axis=1) > 0, self.grid.prod(axis=1), NULL)  # NULL is negative


@frozen
class Kernels:
    """Kernels, shape (n,). `name` indexes `Columns.kernel_names` (-1: none), `shape` the rows of
    `shapes`.
    """

    rows: GpuRows
    name: IntArray
    in_graph: BoolArray
    shape: IntArray
    shapes: LaunchShapes

    def __len__(self) -> int:  # rows may be left out
        return len(self.name)


@frozen
class Copies:
    """Copies and memsets. `kind` indexes `COPY_KINDS`; `memory` is a `Memory`, NULL: not recorded:
    what a copy to the host writes, and what any other reads.
    """

    rows: GpuRows
    kind: IntArray
    size_bytes: IntArray
    memory: IntArray

    def __len__(self) -> int:
        return len(self.kind)


COPY_KINDS: Final = (
    *("memcpy_h2d", "memcpy_d2h", "memcpy_d2d", "memcpy_p2p", "memset", "memcpy_h2h"),
    *("memcpy_uvm_h2d", "memcpy_uvm_d2h", "memcpy_uvm_d2d", "memcpy_unknown"),
)


class Memory(IntEnum):
    """What memory a copy reads or writes, as nsys numbers it (ENUM_CUDA_MEM_KIND); others are kept
    as recorded.
    """

    PAGEABLE = 0
    PINNED = 1
    DEVICE = 2


@frozen
class OnThread(Rows, Lasting):
    """What host threads did, shape (n,)."""

    start_ns: IntArray
    end_ns: IntArray
    thread_gid: IntArray


@frozen
class Calls(OnThread):
    """CUDA runtime and driver calls on the host, shape (n,). `name` indexes
    `Columns.call_names`.
    """

    correlation_id: IntArray
    name: IntArray


@frozen
class Ranges(OnThread):
    """Closed NVTX ranges, shape (n,). `text` indexes `Columns.range_texts` (-1: no text)."""

    text: IntArray


@frozen
class EventRecords(Rows):
    """Events recorded on streams, shape (n,), one row per record; joined to their call by
    correlation id.

    `event_id` is a handle and used again; `event_sync_id` is unique per record, NULL before schema
    3.24.
    """

    process_gid: IntArray
    context_id: IntArray
    stream_id: IntArray
    event_id: IntArray
    event_sync_id: IntArray
    correlation_id: IntArray


@frozen
class Syncs(Rows):
    """Synchronisations: a stream's wait for an event, or the host's for event, stream or all; shape
    (n,).

    What a row is, its call's name tells (by correlation id): the recorded type differs between
    versions. `stream_id` is NULL where the source says none.
    """

    start_ns: IntArray
    end_ns: IntArray
    process_gid: IntArray
    context_id: IntArray
    stream_id: IntArray
    event_id: IntArray
    event_sync_id: IntArray
    correlation_id: IntArray


@frozen
class HostSpans(OnThread):
    """What host threads did besides CUDA calls (OS runtime calls, the profiler's own work), shape
    (n,).

    `name` indexes `names` (-1: none).
    """

    name: IntArray
    names: Texts


PURPOSES: Final = ("ep", "pp", "cp", "dp", "tp")
"""What communication is for: expert, pipeline, context, data or tensor parallelism."""

EXCHANGES: Final = ("all_to_all", "p2p")
"""How ranks exchange by sends and receives: each with all of its group, or with single others."""


@frozen
class ProcessGroup:
    """A process group: a fingerprint of its name and its ranks, the same on each of them.

    `size` and `members`, global ranks, are None where the trace does not say, or not of all.
    """

    key: int
    size: int | None
    members: tuple[int, ...] | None


@frozen
class Collectives:
    """What stands beside each kernel about its collective, shape (n,) as `Kernels`; -1 where
    nothing does.

    `exchange` indexes `EXCHANGES`; other collectives are told by their kernels' names. `group`
    numbers the process groups, `purpose` indexes `PURPOSES`: what the description of the group says
    it is for. `descriptions`: those that say so, in the words of the frameworks we know; `groups`
    by number. `sequence`: the number of the collective in its group, `size_bytes` what a rank
    gives; None where no kernel has one.
    """

    exchange: IntArray
    group: IntArray
    purpose: IntArray
    descriptions: Texts = ()
    groups: tuple[ProcessGroup, ...] = ()
    sequence: IntArray | None = None
    size_bytes: IntArray | None = None


@frozen
class MemoryUse(Rows):
    """GPU memory in use after each change of it, shape (n,), by process and device in order of
    time.

    `used_bytes` is what the process then had on the device. Where `is_sum`, it adds up what was
    taken and given back since the recording began, so what was there before is not in it; else the
    source says it. `is_unmatched` marks changes of unknown size: of this memory nothing was
    recorded before. `correlation_id` joins a change to its call, NULL where the source does not
    say.
    """

    time_ns: IntArray
    process_gid: IntArray
    device_id: IntArray
    used_bytes: IntArray
    is_unmatched: BoolArray
    correlation_id: IntArray
    is_sum: bool


@frozen
class SmLimits:
    """What one SM of a GPU can hold, as the trace lists it; None where it does not."""

    warps: int | None
    blocks: int | None
    registers: int | None
    shared_bytes: int | None


@frozen
class Gpu:
    """A GPU of the machine. Each field is None where the trace does not say; `name` only if we know
    it.
    """

    gpu_id: int | None
    cuda_device: int | None
    name: str | None
    sm_count: int | None
    capability: str | None
    memory_bytes: int | None
    limits: SmLimits | None = None


NO_GPU: Final = Gpu(None, None, None, None, None, None)
"""Stands for a GPU of which the trace says nothing."""


@frozen
class GpuSamples(Lasting):
    """Samples of one whole GPU, in order of time, arrays of shape (n,); whoever used it is in them.

    A sample covers [start, end), one period unless the next begins earlier, so that a hole in the
    sampling stays a hole. Fractions are 0 to 1 and NaN where a sample lacks the metric.
    `sm_active_frac` is residency (a warp was there), the other two are throughput (an instruction
    was issued; the tensor pipe worked).
    """

    gpu_id: int
    start_ns: IntArray
    end_ns: IntArray
    sm_active_frac: FloatArray
    sm_issue_frac: FloatArray
    tensor_active_frac: FloatArray


@frozen
class Payloads:
    """Fields of each blob, arrays of shape (n,), NULL where it has none.

    `communicator` is NCCL's 64-bit hash as a signed number; `size_bytes` is per call and rank, not
    what goes over a link; `rank_count` is the parent's in the rows of ncclCommSplit. NULL too is
    what a blob lacks that ends early, and all of one whose layout is unknown, or defined
    differently by two processes.
    """

    communicator: IntArray
    size_bytes: IntArray
    peer: IntArray
    root: IntArray
    rank_count: IntArray
    rank: IntArray
    cuda_device: IntArray


@frozen
class NcclCalls:
    """NCCL calls with payloads, shape (n,), in the export's order. `name` indexes `names` (-1:
    none).
    """

    start_ns: IntArray
    end_ns: IntArray
    thread_gid: IntArray
    name: IntArray
    names: Texts
    payloads: Payloads


@frozen
class TraceInfo:
    """What a trace says of itself: no host, user or path. `stacks`: frames of the program were
    recorded.

    `own_names`: the host and the user of the recording, where it has them. Never printed: they are
    taken out of recorded names.
    """

    name: str
    kind: str
    exporter_version: str | None
    schema: str | None
    reader: str
    gpus: tuple[Gpu, ...]
    missing_tables: Texts
    diagnostics: Texts
    stacks: bool = False
    own_names: Texts = ()


@frozen
class Columns:
    """One trace as arrays. `gpu_of` maps (process id, CUDA device) to a place in `info.gpus`."""

    info: TraceInfo
    kernels: Kernels
    copies: Copies
    replays: GpuRows
    calls: Calls
    ranges: Ranges
    events: EventRecords
    syncs: Syncs
    os_calls: HostSpans
    overheads: HostSpans
    thread_names: dict[int, str]
    """Packed thread id to its name. Never printed: names are the user's."""
    kernel_names: Texts
    call_names: Texts
    range_texts: Texts
    gpu_of: dict[tuple[int, int], int]
    rank_of: dict[int, int]
    """Process id to the rank that the trace records (MPI_RANKS, distributedInfo), where it does."""
    world_size: int | None = None
    """How many ranks the run has, where the trace says so."""
    session_start_ns: int | None = None
    """What makes the trace's times UNIX times when it is added, where the trace says so."""
    gpu_samples: tuple[GpuSamples, ...] = ()
    nccl_calls: NcclCalls | None = None
    """NCCL calls with their payloads, where the export holds them."""
    collectives: Collectives | None = None
    """What the PyTorch profiler wrote beside NCCL's kernels, where it did."""
    memory: MemoryUse | None = None  # where it was recorded: neither profiler does so unless asked
    frames: HostSpans | None = (
        None  # functions, as PyTorch spells them; `names/frames.py`: what is shown
    )
    problems: Problems | None = (
        None  # of operators among `ranges`; the PyTorch profiler notes them, if asked
    )

    def named_spans(self) -> Iterator[tuple[HostSpans | Ranges, IntArray, Texts]]:
        """Ranges and frames, where there are any, each with its text's place among the texts."""
        yield self.ranges, self.ranges.text, self.range_texts
        if self.frames is not None:
            yield self.frames, self.frames.name, self.frames.names

"""Names and codes of nsys SQLite exports, 2020.3 (no version table) to schema 3.28, as data.

Sources: NVIDIA's user guides 2021.5 to 2026.4 ("Exporting to SQLite"), the comments of a full
schema 3.0.0 export, and real exports of schemas 2.9.1 to 3.25.0. Tables come and go (lazily
created: absent means no row, not traced, or filtered out), columns too; both are always looked up
by name.
"""

from typing import Final

KERNELS: Final = "CUPTI_ACTIVITY_KIND_KERNEL"
MEMCPY: Final = "CUPTI_ACTIVITY_KIND_MEMCPY"
MEMSET: Final = "CUPTI_ACTIVITY_KIND_MEMSET"
GRAPHS: Final = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
CALLS: Final = "CUPTI_ACTIVITY_KIND_RUNTIME"
NVTX: Final = "NVTX_EVENTS"
EVENTS: Final = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"
SYNCS: Final = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
MEMORY_USE: Final = "CUDA_GPU_MEMORY_USAGE_EVENTS"
OS_CALLS: Final = "OSRT_API"
OVERHEADS: Final = "PROFILER_OVERHEAD"
SAMPLES: Final = "COMPOSITE_EVENTS"
SAMPLE_STACKS: Final = "SAMPLING_CALLCHAINS"
CALL_STACKS: Final = "CUDA_CALLCHAINS"
OS_STACKS: Final = "OSRT_CALLCHAINS"
THREAD_NAMES: Final = "ThreadNames"
STRINGS: Final = "StringIds"
DIAGNOSTICS: Final = "DIAGNOSTIC_EVENT"
MPI_RANKS: Final = "MPI_RANKS"
RANGES: Final = (
    NVTX,
    "MPI_COLLECTIVES_EVENTS",
    "MPI_P2P_EVENTS",
    "MPI_START_WAIT_EVENTS",
    "MPI_OTHER_EVENTS",
)
"""Tables of ranges. Calls of MPI have no type; older exports have them in `NVTX`."""
GPUS: Final = "TARGET_INFO_GPU"
GPUS_2020: Final = "TARGET_INFO_CUDA_GPU"  # 2020.3 only
CUDA_DEVICES: Final = "TARGET_INFO_CUDA_DEVICE"  # (pid, CUDA ordinal) -> GPU, from 3.20.3
SYSTEM: Final = "TARGET_INFO_SYSTEM_ENV"
HOST_NAME: Final = "Hostname"
"""A row of `SYSTEM`; another one holds the whole environment of the process."""
SESSION_START: Final = "TARGET_INFO_SESSION_START_TIME"
EXPORT_TABLES: Final = ("META_DATA_EXPORT", "EXPORT_META_DATA")  # from 3.4.0, before

USED_TABLES: Final = (KERNELS, MEMCPY, MEMSET, GRAPHS, CALLS, NVTX, STRINGS, GPUS)
"""Tables whose absence a report names in `traces[].missing_tables`."""

NAME_COLUMNS: Final = ("demangledName", "shortName", "mangledName")
"""Where a kernel's name stands, best first: short names lose namespaces and templates."""

NO_STREAM: Final = 0xFFFFFFFF
"""SYNCHRONIZATION.streamId where no stream is meant."""

GPU_MEMORY_KINDS: Final = (2, 3, 5)
"""MEMORY_USE.memKind of a GPU's own memory: device, arrays, static variables. Managed memory (4, 6)
moves."""

MEMORY_TAKEN: Final = 0
MEMORY_GIVEN_BACK: Final = 1
"""MEMORY_USE.memoryOperationType. Source of these and the kinds: the ENUM tables of real
exports."""

RANGE_TYPES: Final = (59, 60, 70, 71)
"""NVTX_EVENTS.eventType of ranges: push/pop, start/end, and both kinds imported from NVTXT
files."""

COPY_KIND: Final = {
    1: "memcpy_h2d",
    2: "memcpy_d2h",
    3: "memcpy_h2d",  # host to array
    4: "memcpy_d2h",  # array to host
    5: "memcpy_d2d",  # array to array
    6: "memcpy_d2d",  # array to device
    7: "memcpy_d2d",  # device to array
    8: "memcpy_d2d",
    9: "memcpy_h2h",
    10: "memcpy_p2p",
    11: "memcpy_uvm_h2d",
    12: "memcpy_uvm_d2h",
    13: "memcpy_uvm_d2d",
}
"""CUPTI_ACTIVITY_KIND_MEMCPY.copyKind, fixed here because ENUM_CUDA_MEMCPY_OPER can be empty or
absent."""

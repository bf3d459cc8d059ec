"""Names in the PyTorch profiler's traces as data, from its first release on.

Source: the writer, pytorch/kineto (libkineto/src/output_json.cpp and CuptiActivity.h, first commits
to August 2026), and real traces recorded 2022 to 2026. The first releases capitalised categories
and called operators `Operator`.
"""

from typing import Final

from traces.columns import Memory

KERNELS: Final = "kernel"
MEMCPY: Final = "gpu_memcpy"
MEMSET: Final = "gpu_memset"
CALLS: Final = "cuda_runtime"
ANNOTATIONS: Final = "user_annotation"
OPERATORS: Final = "cpu_op"
EVENTS: Final = "cuda_event"
SYNCS: Final = "cuda_sync"
OVERHEADS: Final = "overhead"
FRAMES: Final = "python_function"
MEMORY: Final = "memory"

_CATEGORIES: Final = (
    KERNELS,
    MEMCPY,
    MEMSET,
    CALLS,
    ANNOTATIONS,
    OPERATORS,
    EVENTS,
    SYNCS,
    OVERHEADS,
    FRAMES,
)
TABLE_OF: Final = {name: name for name in _CATEGORIES} | {
    "Kernel": KERNELS,
    "Memcpy": MEMCPY,
    "Memset": MEMSET,
    "Operator": OPERATORS,
    "Runtime": CALLS,
    "cuda_driver": CALLS,
}
"""Category as written -> the name it has here.

Left out on purpose: `gpu_user_annotation` repeats host annotations on the GPU's rows and is no
work; `ac2g` (`async_cpu_to_gpu`, `async`) draws what correlation ids say. """

MEMORY_EVENT: Final = "[memory]"
"""Name of the instant events that PyTorch writes with `profile_memory`.

Source: torch/csrc/autograd/profiler_kineto.cpp. Other marks have the same category,
`cpu_instant_event`. """

CUDA_DEVICE: Final = 1
"""Argument "Device Type" of memory on a GPU (c10/core/DeviceType.h); the host's is 0."""

TABLES: Final = (*_CATEGORIES, MEMORY)
"""Every name of a category here."""

USED_TABLES: Final = (KERNELS, MEMCPY, MEMSET, CALLS, ANNOTATIONS, OPERATORS, SYNCS)
"""Categories whose absence a report names in `traces[].missing_tables`."""

HEADER_KEYS: Final = ("schemaVersion", "deviceProperties", "distributedInfo")
"""Keys beside the events of which the profiler writes at least one; other Chrome traces have
none."""

COPY_KIND: Final = {
    **dict.fromkeys(("HtoD", "HtoA"), "memcpy_h2d"),
    **dict.fromkeys(("DtoH", "AtoH"), "memcpy_d2h"),
    **dict.fromkeys(("DtoD", "AtoA", "AtoD", "DtoA"), "memcpy_d2d"),
    "PtoP": "memcpy_p2p",
    "HtoH": "memcpy_h2h",
}
"""Second word of a copy's name, as in "Memcpy HtoD (Pinned -> Device)" (A: a CUDA array), ->
kind."""
COPY_MEMORY: Final = {
    "Pageable": Memory.PAGEABLE,
    "Pinned": Memory.PINNED,
    "Device": Memory.DEVICE,
}
"""Third or fifth word of a copy's name -> what memory it reads or writes."""

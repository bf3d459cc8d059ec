"""What a CUDA call does to its thread, by its name."""

import re
from enum import IntEnum
from typing import Final

import numpy as np

from traces.columns import CODE, IntArray


class CallKind(IntEnum):
    """What a host thread is busy with while inside a call."""

    OTHER = 0
    LAUNCH = 1
    SYNC = 2
    COPY = 3
    FREE = 4  # waits for all work of the device, then frees
    ALLOCATE = 5
    INIT = 6  # module load, JIT, graph capture and instantiation


POLL: Final = "poll of host memory"
"""Stands for a call where the host waits for the GPU without one."""

_PATTERNS: Final = (
    (CallKind.SYNC, rf"Synchronize|^{POLL}$"),
    (CallKind.LAUNCH, r"ModuleLaunch"),
    (
        CallKind.INIT,
        r"Module|Library|Capture|GraphInstantiate|GraphCreate|cuInit|FuncGetAttributes|FuncSetAttr",
    ),
    (CallKind.FREE, r"(?:cudaFree|cuMemFree|hipFree)(?!.*Async)"),
    (
        CallKind.ALLOCATE,
        r"Malloc|MemAlloc|Free|HostAlloc|HostRegister|cuMem(?:Create|Map|Unmap|SetAccess|Release|Address)",
    ),
    (CallKind.LAUNCH, r"Launch"),
    (CallKind.COPY, r"[mM]emcpy"),
)
"""The first match counts. Names of the CUDA runtime and driver APIs, and of HIP."""


def call_kinds(names: tuple[str, ...]) -> IntArray:
    """Kind of each distinct call name; one more at the end for calls without a name (code -1)."""
    return np.array([*map(_kind, names), CallKind.OTHER], dtype=CODE)


def _kind(name: str) -> CallKind:
    return next((kind for kind, pattern in _PATTERNS if re.search(pattern, name)), CallKind.OTHER)

"""What one SM of each compute capability can hold, and in which units it gives it out.

Sources: "Technical Specifications per Compute Capability" of NVIDIA's CUDA C++ Programming Guide, and the
occupancy calculator of the CUDA toolkit, cuda_occupancy.h 13.0 (blocks, units, sub-partitions), whose numbers
agree with the device limits of every recording at hand (7.0, 7.5, 8.0, 8.6, 8.9, 9.0, 10.3).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from traces.columns import Gpu, SmLimits

WARP_THREADS: Final = 32
REGISTER_UNIT: Final = 256
"""Registers are given to a warp in multiples of this (all capabilities listed here)."""
SUB_PARTITIONS: Final = 4
"""An SM's registers lie in this many parts; a warp takes all of its own from one."""


@dataclass(frozen=True, slots=True)
class SmCapacity:
    """What one SM holds; shared memory goes out in `shared_unit_bytes`, with a reserve per block."""

    warps: int
    blocks: int
    registers: int
    shared_bytes: int
    shared_unit_bytes: int
    reserved_shared_bytes: int


_VOLTA: Final = {"shared_unit_bytes": 256, "reserved_shared_bytes": 0}
_AMPERE: Final = {"shared_unit_bytes": 128, "reserved_shared_bytes": 1024}  # the driver's own, per block


def _capacity(warps: int, blocks: int, shared_kib: int, units: dict[str, int]) -> SmCapacity:
    return SmCapacity(warps, blocks, 65_536, shared_kib * 1024, **units)


_BY_CAPABILITY: Final = {
    "7.0": _capacity(64, 32, 96, _VOLTA),
    "7.5": _capacity(32, 16, 64, _VOLTA),
    "8.0": _capacity(64, 32, 164, _AMPERE),
    "8.6": _capacity(48, 16, 100, _AMPERE),
    "8.7": _capacity(48, 16, 164, _AMPERE),
    "8.9": _capacity(48, 24, 100, _AMPERE),
    "9.0": _capacity(64, 32, 228, _AMPERE),
    "10.0": _capacity(64, 32, 228, _AMPERE),
    "10.3": _capacity(64, 32, 228, _AMPERE),
    "12.0": _capacity(48, 24, 100, _AMPERE),
    "12.1": _capacity(48, 24, 100, _AMPERE),
}


def sm_capacity(gpu: Gpu) -> SmCapacity | None:
    """Capacity of a GPU's SMs: the trace's own limits first, the table for the rest.

    None where the capability is unknown, to the trace or to us: the units of allocation depend on it.
    """
    table = _BY_CAPABILITY.get(gpu.capability or "")
    if table is None:
        return None
    own = gpu.limits or SmLimits(None, None, None, None)
    return SmCapacity(
        own.warps or table.warps,
        own.blocks or table.blocks,
        own.registers or table.registers,
        own.shared_bytes or table.shared_bytes,
        table.shared_unit_bytes,
        table.reserved_shared_bytes,
    )


_ARCHITECTURE: Final = re.compile(r"(?:(?<![A-Za-z0-9])|(?<=fmha)|(?<=Fwd)|(?<=Bwd))[sS]m_?(\d{2,3})(?!\d)")

_GENERATIONS: Final = {"volta": "70", "turing": "75", "ampere": "80"}
"""What cuBLAS and cuDNN begin kernel names with."""
_GENERATION: Final = re.compile(rf"\b({'|'.join(_GENERATIONS)}) \w")


def capability_at_least(kernel_names: Iterable[str]) -> str | None:
    """The newest capability that kernel names speak of: a lower bound of the GPU's, never the GPU itself.

    A kernel built for sm_80 runs on an H100 as well. None where no name speaks of one.
    """
    names = [name.replace("_", " ") for name in kernel_names]
    spoken = {found for name in names for found in _ARCHITECTURE.findall(name)}
    spoken |= {_GENERATIONS[found] for name in names for found in _GENERATION.findall(name)}
    known = [
        (int(text[:-1]), int(text[-1])) for text in spoken if f"{text[:-1]}.{text[-1]}" in _BY_CAPABILITY
    ]
    return "{}.{}".format(*max(known)) if known else None

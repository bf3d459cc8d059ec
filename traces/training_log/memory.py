"""Memory that trainers report, and PyTorch's out-of-memory errors.

Megatron-LM's MB are 1024 x 1024 bytes (report_memory in megatron/training/utils.py of core_v0.12.0 and
megatron/training/utils/common_utils.py at d98e8a64), Megatron-Bridge's gigabytes are 1e9 bytes
(report_memory in training/utils/train_utils.py, v0.2 to 067f987d); both call 1024 x 1024 bytes MB in
theoretical footprints. PyTorch's sizes are binary (c10/cuda/CUDACachingAllocator.cpp).
"""

import re
from collections.abc import Mapping
from typing import Final

from traces.limits import Limit
from traces.training_log.log import LoggedMemory, OutOfMemory, Stage, TheoreticalMemory
from traces.training_log.tracebacks import rank_of

WORDS: Final = (b"memory",)
KEPT: Final = Limit(10_000, "reports", "ours: every rank of a large run, and bounded")
_NUMBER: Final = r"[0-9]{1,12}(?:\.[0-9]{1,30})?(?:e-[0-9]{1,2})?"
_REPORT: Final = re.compile(r"\[Rank ([0-9]{1,7})\].* memory \((MB|GB)\) \|")
_UNIT_BYTES: Final[Mapping[str, float]] = {"MB": 1024.0**2, "GB": 1e9}
_FIELDS: Final[Mapping[str, str]] = {
    "allocated": "allocated",
    "max allocated": "peak_allocated",
    "reserved": "reserved",
    "max reserved": "peak_reserved",
    "mem-allocated-gigabytes": "allocated",
    "mem-max-allocated-gigabytes": "peak_allocated",
    "mem-reserved-gigabytes": "reserved",
    "mem-max-reserved-gigabytes": "peak_reserved",
}
_PART: Final = re.compile(rf"\| ({'|'.join(_FIELDS)}): ({_NUMBER})(?= |$)")
_THEORETICAL: Final = re.compile(
    rf"Theoretical memory footprints: weight and optimizer=({_NUMBER}) MB"
    rf"(?:, activation=({_NUMBER}) MB, total=({_NUMBER}) MB)?"
)

_OUT: Final = re.compile(r"CUDA out of memory|CUDA error: out of memory|Cuda failure [0-9 ]*'out of memory'")
_SIZE: Final = r"([0-9]{1,12}(?:\.[0-9]{1,9})? (?:bytes|KiB|MiB|GiB|TiB))"
_SIZE_BYTES: Final[Mapping[str, int]] = {
    "bytes": 1,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
}
_REQUESTED: Final = re.compile(rf"Tried to allocate {_SIZE}")
# PyTorch 2.1 spells it "capacty".
_CAPACITY: Final = re.compile(
    rf"GPU ([0-9]{{1,4}}) has a total capaci?ty of {_SIZE} of which {_SIZE} is free"
)
_ALLOCATED: Final = re.compile(rf"Of the allocated memory {_SIZE} is allocated by PyTorch")
_POOLS: Final = re.compile(rf"with {_SIZE} allocated in private pools")
_UNALLOCATED: Final = re.compile(rf"and {_SIZE} is reserved by PyTorch but unallocated")
_BEFORE_2_1: Final = re.compile(
    rf"\(GPU ([0-9]{{1,4}}); {_SIZE} total capacity; {_SIZE} already allocated; {_SIZE} free; "
    rf"{_SIZE} reserved in total by PyTorch\)"
)


def logged_memory(number: int, text: str) -> LoggedMemory | None:
    """A rank's report; None where the line is none."""
    found = _REPORT.search(text) if " memory (" in text else None
    if found is None:
        return None
    unit = _UNIT_BYTES[found[2]]
    told = {_FIELDS[name]: round(float(value) * unit) for name, value in _PART.findall(text)}
    return LoggedMemory(
        line=number,
        rank=int(found[1]),
        allocated_bytes=told.get("allocated"),
        peak_allocated_bytes=told.get("peak_allocated"),
        reserved_bytes=told.get("reserved"),
        peak_reserved_bytes=told.get("peak_reserved"),
    )


def theoretical_memory(number: int, text: str) -> TheoreticalMemory | None:
    """The trainer's own sum; None where the line is none."""
    found = _THEORETICAL.search(text) if "Theoretical" in text else None
    if found is None:
        return None
    weights, activation, total = (
        None if part is None else round(float(part) * _UNIT_BYTES["MB"]) for part in found.groups()
    )
    return TheoreticalMemory(number, weights or 0, activation, total)


def is_out_of_memory(text: str) -> bool:
    """Whether the line says that the GPU's memory ran out."""
    return "out of memory" in text and _OUT.search(text) is not None


def out_of_memory(number: int, text: str, stage: Stage) -> OutOfMemory:
    """The error with what it says; NCCL's and CUDA's own say no sizes."""
    requested = _size(_REQUESTED.search(text), 1)
    old = _BEFORE_2_1.search(text)
    if old:
        return OutOfMemory(
            line=number,
            stage=stage,
            rank=rank_of(text),
            capacity_bytes=_size(old, 2),
            allocated_bytes=_size(old, 3),
            free_bytes=_size(old, 4),
            reserved_bytes=_size(old, 5),
            requested_bytes=requested,
            device=int(old[1]),
        )
    capacity = _CAPACITY.search(text)
    allocated, unallocated = _size(_ALLOCATED.search(text), 1), _size(_UNALLOCATED.search(text), 1)
    return OutOfMemory(
        line=number,
        stage=stage,
        rank=rank_of(text),
        capacity_bytes=_size(capacity, 2),
        free_bytes=_size(capacity, 3),
        allocated_bytes=allocated,
        reserved_bytes=None if allocated is None or unallocated is None else allocated + unallocated,
        requested_bytes=requested,
        graph_pool_bytes=_size(_POOLS.search(text), 1),
        device=int(capacity[1]) if capacity else None,
    )


def _size(found: re.Match[str] | None, group: int) -> int | None:
    if found is None:
        return None
    value, unit = found[group].split()
    return round(float(value) * _SIZE_BYTES[unit])

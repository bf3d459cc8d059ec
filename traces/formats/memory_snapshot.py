"""PyTorch's memory snapshot -> allocations of each GPU in order. Nothing of the file is ever run.

`torch.cuda.memory._dump_snapshot` writes a pickle (or its JSON): `segments`, with the blocks that
lie in each now, and `device_traces`, per device what the caching allocator did since recording
began, or the newest of it. Source: torch/cuda/memory.py and c10/cuda/CUDACachingAllocator (PyTorch
2.1 to 2.9).

What lay in memory when recording began has no entry: it is found backwards, from the blocks at the
end.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from traces.errors import NotASnapshot
from traces.files.dumped import DumpKind, read_dumped
from traces.files.plain_pickle import PICKLE, NotPlain, read_plain
from traces.frozen import frozen
from traces.limits import Limit

PARTS: Final = Limit(
    5_000_000, "blocks and entries", "ours: far more than any allocator holds or records"
)
_LARGEST: Final = 1 << 50
"""Bytes of the largest size, far above any GPU's."""
_ALL_TOGETHER: Final = 1 << 62
"""Bytes of all allocations of a history, far more than a day of training takes."""
_FRAMES: Final = 256
_LETTERS: Final = 512
"""Of a stack, and of a text, no more than this is read."""

Frame = tuple[str, str]
"""File and function, as written: what of them may be shown, `traces.names.allocations` says."""


@frozen
class Allocation:
    """Memory from `begin` to `end`, places of entries; `begin` -1: before the first, `end` None:
    kept.
    """

    address: int
    size_bytes: int
    frames: tuple[Frame, ...]
    begin: int
    end: int | None


@frozen
class DeviceMemory:
    """One GPU. `reserved_bytes`, `segment_count`: as the snapshot was taken; `peak_reserved_bytes`:
    the most.

    `out_of_memory_count`: how many allocations failed.
    """

    device: int
    reserved_bytes: int
    segment_count: int
    allocations: tuple[Allocation, ...]
    entry_count: int
    out_of_memory_count: int
    peak_reserved_bytes: int


class _Wrong(ValueError):
    """A part that no snapshot has."""


_SNAPSHOT: Final = DumpKind(
    "snapshot",
    "Give what torch.cuda.memory._dump_snapshot(FILE) wrote, or its JSON",
    NotASnapshot,
    (NotPlain, _Wrong),
)


def read_memory_snapshot(path: Path) -> tuple[DeviceMemory, ...]:
    """The GPUs of a snapshot that hold memory. Raises `TraceNotFound`, or `NotASnapshot` for what
    is none.
    """
    return read_dumped(path, _SNAPSHOT, _read)


def _read(data: bytes) -> tuple[DeviceMemory, ...]:
    return _devices(read_plain(data) if data.startswith(PICKLE) else json.loads(data))


def _devices(document: object) -> tuple[DeviceMemory, ...]:
    if not isinstance(document, dict) or not isinstance(document.get("segments"), list):
        raise _Wrong("it has no segments")
    traces = document.get("device_traces", [])
    if (
        not isinstance(traces, list)
        or len(document["segments"]) > PARTS.value
        or len(traces) > 4096
    ):
        raise _Wrong("it has more parts than a snapshot")
    parts = _Parts()
    segments = defaultdict[int, list[Mapping[str, Any]]](list)
    for segment in document["segments"]:
        segments[_number(_object(segment), "device", 4096)].append(segment)
    devices = []
    for device in sorted({*segments, *range(len(traces))}):
        entries = traces[device] if device < len(traces) else []
        if device in segments or entries:
            devices.append(_device(device, segments.get(device, []), entries, parts))
    return tuple(devices)


class _Parts:
    """Counts parts, so that lists which a pickle names again and again cannot grow without end."""

    def __init__(self) -> None:
        self.count = 0
        self.known = dict[int, tuple[object, tuple[Frame, ...]]]()

    def each(self, given: object) -> Iterator[Mapping[str, Any]]:
        if not isinstance(given, list):
            raise _Wrong("its parts are no lists")
        self.count += len(given)
        if self.count > PARTS.value:
            raise _Wrong("it has more parts than a snapshot")
        return map(_object, given)

    def frames(self, given: object) -> tuple[Frame, ...]:
        """Frames of a stack, the innermost first; stacks are shared, so that each is read once."""
        if not isinstance(given, list):
            return ()
        if id(given) not in self.known:
            read = tuple(
                (_text(frame, "filename"), _text(frame, "name"))
                for frame in given[:_FRAMES]
                if isinstance(frame, dict) and isinstance(frame.get("name"), str)
            )
            self.known[id(given)] = given, read
        return self.known[id(given)][1]


def _device(
    device: int, segments: list[Mapping[str, Any]], entries: object, parts: _Parts
) -> DeviceMemory:
    reserved = sum(_number(segment, "total_size", _LARGEST) for segment in segments)
    if reserved > _LARGEST:
        raise _Wrong("it holds more than any GPU")
    held = {}
    for segment in segments:
        address = _number(segment, "address", 1 << 64)
        for block in parts.each(segment.get("blocks", [])):
            size = _number(block, "size", reserved + 1)
            at = _number(block, "address", 1 << 64) if "address" in block else address
            if _text(block, "state").startswith("active"):
                held[at] = Allocation(at, size, parts.frames(_stack(block)), -1, None)
            address = at + size
    done = [entry for entry in parts.each(entries) if isinstance(entry.get("action"), str)]
    failed = sum(entry["action"] == "oom" for entry in done)
    most = then = reserved
    for entry in reversed(done):  # counted back from what is now
        if sign := _RESERVES.get(entry["action"]):
            then -= sign * _number(entry, "size", _LARGEST)
            most = max(most, then)
    allocations = tuple(_lifetimes(done, held, parts))
    if max(most, sum(allocation.size_bytes for allocation in allocations)) > _ALL_TOGETHER:
        raise _Wrong("it took more than any run takes")
    return DeviceMemory(device, reserved, len(segments), allocations, len(done), failed, most)


_RESERVES: Final = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}


def _stack(block: Mapping[str, Any]) -> object:
    """Frames of a block, where it has them; older snapshots have them in its history."""
    history = block.get("history")
    if (
        "frames" not in block
        and isinstance(history, list)
        and history
        and isinstance(history[0], dict)
    ):
        return history[0].get("frames")
    return block.get("frames")


def _lifetimes(
    entries: list[Mapping[str, Any]], held: dict[int, Allocation], parts: _Parts
) -> Iterator[Allocation]:
    """All memory in use since before the first entry, by address: a block is in use until it is
    free.
    """
    open_ = dict[int, Allocation]()
    for place, entry in enumerate(entries):
        action = entry["action"]
        if action not in ("alloc", "free_completed"):
            continue
        address, size = _number(entry, "addr", 1 << 64), _number(entry, "size", _LARGEST)
        began = open_.get(address)  # at another allocation its end is not among the entries
        if began:
            yield replace(began, end=place)
        if action == "alloc":
            open_[address] = Allocation(
                address, size, parts.frames(entry.get("frames")), place, None
            )
        elif not began:
            yield Allocation(address, size, (), -1, place)
        else:
            del open_[address]
    yield from open_.values()
    for address, kept in held.items():
        if address not in open_:
            yield kept


def _object(given: object) -> Mapping[str, Any]:
    if not isinstance(given, dict):
        raise _Wrong("a part of it is no object")
    return given


def _text(given: Mapping[str, Any], key: str) -> str:
    value = given.get(key)
    if isinstance(value, str):
        return value[:_LETTERS]
    return ""


def _number(given: Mapping[str, Any], key: str, below: int) -> int:
    value = given.get(key)
    if type(value) is not int or not 0 <= value < below:
        raise _Wrong(f"{key} is no number that fits")
    return value

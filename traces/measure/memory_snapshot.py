"""Memory over the history of a snapshot: its peak, what holds it, by what it is for and by stack.

A history of three entries: A takes 10, B takes 5, A gives back. Of 20 bytes in use at the end 5 are
B's, so 15 were there before: the level is 15, then 25, 30 and 20, and the peak, 30, is A, B and
those 15.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final

import numpy as np

from traces.addresses.measure import READ
from traces.arrays import IntArray, listed, zeros
from traces.formats.memory_snapshot import Allocation, DeviceMemory
from traces.limits import Limit
from traces.measure.memory import POINTS
from traces.missing import gap, unless
from traces.names.allocations import category_at_peak, shown
from traces.sections.memory_snapshot import (
    AllocationStack,
    MemorySnapshot,
    SnapshotCurve,
    SnapshotDevice,
)
from traces.sections.section import copied
from traces.texts import Texts

FRAMES: Final = Limit(6, "frames", "ours: enough to separate layers, few enough to read")


def snapshot_of(devices: Sequence[DeviceMemory]) -> MemorySnapshot:
    """All GPUs of the files that were given."""
    return MemorySnapshot(tuple(map(_device, devices)))


def _device(memory: DeviceMemory) -> SnapshotDevice:
    level = used_over_entries(memory)
    used = int(level[-1])
    peak = int(level.argmax())
    stacks = _stacks(memory.allocations, peak)
    most = READ.whole
    left_out = stacks[most:]
    # in as many places as a page has, the most of each stretch; the last is the end
    edges = np.unique(np.linspace(0, len(level) - 1, POINTS.whole, dtype=np.int64))
    unknown = None if memory.entry_count else gap(_NO_HISTORY, _RECORD)
    at_peak = Counter[str]()
    for stack in stacks:
        at_peak[stack.category] += stack.size_bytes
    return copied(
        SnapshotDevice,
        memory,
        used_bytes=used,
        unused_reserved_bytes=max(0, memory.reserved_bytes - used),
        entries=memory.entry_count,
        before_recording_bytes=int(level[0]),
        peak_bytes=unless(unknown, int(level[peak])),
        peak_reserved_bytes=unless(unknown, memory.peak_reserved_bytes),
        at_peak_bytes=unless(unknown, dict(at_peak.most_common())),
        stacks_at_peak=tuple(stacks[:most]),
        stacks_left_out=len(left_out),
        stacks_left_out_bytes=sum(stack.size_bytes for stack in left_out),
        curve=SnapshotCurve(listed(edges), listed(np.maximum.reduceat(level, edges))),
        out_of_memory=memory.out_of_memory_count,
    )


_NO_HISTORY: Final = "the snapshot has no history of allocations"
_RECORD: Final = "call torch.cuda.memory._record_memory_history() before the steps"


def used_over_entries(memory: DeviceMemory) -> IntArray:
    """Bytes in use before the first entry and after each, shape (entries + 1,)."""
    change: IntArray = zeros(memory.entry_count + 1)
    for block in memory.allocations:
        change[block.begin + 1] += block.size_bytes
        if block.end is not None:
            change[block.end + 1] -= block.size_bytes
    return np.cumsum(change)


def _stacks(allocations: Sequence[Allocation], peak: int) -> list[AllocationStack]:
    """What is held at the peak by what it is for and the frames that may be shown, the largest
    first.
    """
    size = defaultdict[tuple[str, Texts], int](int)
    count = Counter[tuple[str, Texts]]()
    for block in allocations:
        if block.begin >= peak or (block.end is not None and block.end < peak):
            continue
        category = category_at_peak(block.frames, began=block.begin >= 0, kept=block.end is None)
        key = category, shown(block.frames, FRAMES.whole)
        size[key] += block.size_bytes
        count[key] += 1
    ordered = sorted(size, key=lambda key: (-size[key], key))
    return [AllocationStack(*key, count[key], size[key]) for key in ordered]

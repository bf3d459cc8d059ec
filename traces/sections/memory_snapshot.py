"""What a memory snapshot of PyTorch shows: `memory_snapshot` of a result."""

from collections.abc import Mapping

from traces.missing import OrMissing
from traces.sections.section import Bytes, Count, Section
from traces.texts import Key, Recorded


class AllocationStack(Section):
    """Memory in use at the peak that one stack took; `frames`: innermost first, of known packages
    alone.
    """

    category: Key
    frames: tuple[Recorded, ...]
    count: Count
    size_bytes: Bytes


class SnapshotCurve(Section):
    """Memory in use over the entries of the history, as columns of one length: the most of each
    stretch.
    """

    entry: tuple[Count, ...]
    used_bytes: tuple[Bytes, ...]


class SnapshotDevice(Section):
    """One GPU. Memory is in use from its allocation until it is free for others.

    `used_bytes`, `reserved_bytes` and their difference `unused_reserved_bytes` (fragments and
    cache) are of the moment when the snapshot was taken. `before_recording_bytes`: in use before
    the first entry. `at_peak_bytes`: by what it is for, which adds up to `peak_bytes`;
    `stacks_left_out` more stacks hold `stacks_left_out_bytes`.
    """

    device: Count
    reserved_bytes: Bytes
    used_bytes: Bytes
    unused_reserved_bytes: Bytes
    segment_count: Count
    entries: Count
    before_recording_bytes: Bytes
    peak_bytes: OrMissing[Bytes]
    peak_reserved_bytes: OrMissing[Bytes]
    at_peak_bytes: OrMissing[Mapping[Key, Bytes]]
    stacks_at_peak: tuple[AllocationStack, ...]
    stacks_left_out: Count
    stacks_left_out_bytes: Bytes
    curve: SnapshotCurve
    out_of_memory: Count


class MemorySnapshot(Section):
    """Files of `--memory-snapshot`, one a process."""

    devices: tuple[SnapshotDevice, ...]

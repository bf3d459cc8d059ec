"""Memory snapshots of PyTorch, read, and what of them a run's room rests on."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType
from msgspec.structs import replace as with_fields

from diagnoser.options import Place
from reports.rows import known_of
from traces.missing import Missing
from traces.sections.memory_snapshot import MemorySnapshot

if TYPE_CHECKING:
    from traces.measurements import RankMeasurements


def read_snapshots(given: Iterable[Place]) -> MemorySnapshot | UnsetType:
    """All files given; UNSET where there are none. Raises `InputError` for one that cannot be
    used.
    """
    paths = [*map(Path, given)]
    if not paths:
        return UNSET
    from traces.formats.memory_snapshot import read_memory_snapshot
    from traces.measure.memory_snapshot import snapshot_of

    return snapshot_of([*chain.from_iterable(map(read_memory_snapshot, paths))])


def peak_of(snapshot: MemorySnapshot | UnsetType) -> int | None:
    """The most that PyTorch had reserved on any GPU; None where no history tells."""
    if isinstance(snapshot, UnsetType):
        return None
    return max(known_of(snapshot.devices, "peak_reserved_bytes"), default=0) or None


def with_peak(
    ranks: Sequence["RankMeasurements"], snapshot: MemorySnapshot | UnsetType
) -> Sequence["RankMeasurements"]:
    """The one rank of a recording without memory use, with the peak of the one GPU of its
    snapshot.
    """
    peak = peak_of(snapshot)
    if (
        peak is None
        or isinstance(snapshot, UnsetType)
        or len(ranks) != 1
        or len(snapshot.devices) != 1
        or not isinstance(ranks[0].memory.peak_bytes, Missing)
    ):
        return ranks
    return [replace(ranks[0], memory=with_fields(ranks[0].memory, peak_bytes=peak))]

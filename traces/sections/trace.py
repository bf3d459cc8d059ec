"""What each recording says of itself: `traces[]`."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from traces.missing import OrMissing
from traces.sections.section import Bytes, Count, Frac, Section
from traces.texts import FileName, FilePath, GpuName, Key, Keys, Release, Sentences


class Gpu(Section):
    """One GPU of the recording."""

    name: OrMissing[GpuName]
    sm_count: OrMissing[Count]
    capability: OrMissing[Release]
    memory_bytes: OrMissing[Bytes]


class Messages(Section):
    """NCCL's calls of one operation that carry a payload. `size_bytes`: per call and rank, not over
    a link.

    `peer_count` is absent where the operation names no peer.
    """

    operation: Key
    call_count: Count
    size_bytes: Bytes
    communicator_count: Count
    peer_count: Count | UnsetType = UNSET


class Capture(Section):
    """How good the recording is. `stacks`: frames of the program's code were recorded beside its
    calls.
    """

    correlation_frac: OrMissing[Frac]
    diagnostics: Sentences
    perturbation_frac: OrMissing[Annotated[float, Meta(ge=-1)]]
    stacks: bool | UnsetType = UNSET


class Trace(Section, kw_only=True):
    """One recording. `path` as it was given, absent from a redacted result."""

    name: FileName
    path: FilePath | UnsetType = UNSET
    kind: Key
    exporter_version: OrMissing[Release]
    schema: OrMissing[Release]
    reader: Key
    gpus: tuple[Gpu, ...]
    missing_tables: Keys
    nccl_messages: OrMissing[tuple[Messages, ...]]
    capture: Capture

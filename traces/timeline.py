"""Columns -> ranks: one GPU of one process each, its activities in order, with where each was
launched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import IntEnum
from typing import Final

import numpy as np

from traces.arrays import PLACE, BoolArray, IntArray, Lasting, distinct
from traces.columns import (
    COPY_KINDS,
    NULL,
    PROCESS_BITS,
    Calls,
    Columns,
    Gpu,
    Kernels,
    OnThread,
    process_of,
)
from traces.cures import cure
from traces.frozen import frozen
from traces.host_clock import ClockFix
from traces.launches import of_call
from traces.missing import Missing, gap
from traces.names.kernels import (
    COMM_KINDS,
    UNNAMED,
    KernelClass,
    classify_kernel,
    compute_classes,
)
from traces.texts import Texts


class Bucket(IntEnum):
    """What an activity is to the step: the first of these that runs gets the instant."""

    COMPUTE = 0
    COMM = 1
    COPY = 2


KEYS: Final = {Bucket.COMPUTE: compute_classes(), Bucket.COMM: COMM_KINDS, Bucket.COPY: COPY_KINDS}
"""What `Activities.key` indexes, by bucket."""


class Source(IntEnum):
    """The table an activity comes from."""

    KERNEL = 0
    COPY = 1
    REPLAY = 2


@frozen
class Activities(Lasting):
    """Work of one GPU, arrays of shape (n,), ordered by start, then stream, then correlation id.

    Nine of ten bytes of a long trace stand here, so that what only the order needs is not kept.

    `bucket` is a `Bucket`, `key` indexes `KEYS[bucket]`, `source` is a `Source`, `row` its row in
    that table of the columns, `name` indexes their kernel names (-1: none). `call` is the row of
    the launching call in `calls` (-1: not recorded), `launch_ns`, `launch_end_ns` and
    `launch_thread` are that call's start, end and thread (NULL where not recorded).
    """

    start_ns: IntArray
    end_ns: IntArray
    stream_id: IntArray
    bucket: IntArray
    key: IntArray
    source: IntArray
    row: IntArray
    name: IntArray
    call: IntArray
    launch_ns: IntArray
    calls: Calls

    @property
    def is_compute(self) -> BoolArray:
        return self.bucket == Bucket.COMPUTE

    @property
    def is_comm(self) -> BoolArray:
        return self.bucket == Bucket.COMM

    @property
    def is_copy(self) -> BoolArray:
        """Copies and memsets; those between GPUs are communication."""
        return self.bucket == Bucket.COPY

    @property
    def is_kernel(self) -> BoolArray:
        return self.source == Source.KERNEL

    @property
    def is_replay(self) -> BoolArray:
        """Graph replays that were recorded whole."""
        return self.source == Source.REPLAY

    @property
    def is_transfer(self) -> BoolArray:
        """Recorded as a copy or a memset, though it may be communication."""
        return self.source == Source.COPY

    @property
    def is_launched(self) -> BoolArray:
        """Which have a recorded launch."""
        return self.launch_ns != NULL

    @property
    def launched_ns(self) -> IntArray:
        """When each was launched, shape (n,); where no launch was recorded, when it began."""
        return np.where(self.is_launched, self.launch_ns, self.start_ns)

    @property
    def launch_end_ns(self) -> IntArray:
        """When each launching call returned; seldom asked for, so that it is looked up each
        time.
        """
        return of_call(self.calls.end_ns, self.call)

    @property
    def launch_thread(self) -> IntArray:
        """The thread of each launching call; looked up as `launch_end_ns` is."""
        return of_call(self.calls.thread_gid, self.call)

    @property
    def launching_threads(self) -> IntArray:
        return distinct(self.launch_thread[self.launch_thread != NULL])

    def copies(self, kind: str) -> BoolArray:
        """Which are copies of one of `COPY_KINDS`, shape (n,)."""
        return self.of(Bucket.COPY, kind)

    def of(self, bucket: Bucket, *keys: str) -> BoolArray:
        """What has one of some keys of a bucket, shape (n,)."""
        return (self.bucket == bucket) & np.isin(self.key, [*map(KEYS[bucket].index, keys)])

    def take(self, which: BoolArray | IntArray) -> Activities:
        """Some of the activities, by mask or index; each column is taken when it is first asked
        for.
        """
        return _Subset(
            self, (np.flatnonzero(which) if which.dtype == np.bool_ else which).astype(PLACE)
        )


class _Subset(Activities):
    """The activities in some places of others. Few columns of them are ever asked for."""

    __slots__ = ("_all", "_places")

    def __init__(self, rows: Activities, places: IntArray) -> None:
        source = (rows._all, rows._places[places]) if isinstance(rows, _Subset) else (rows, places)
        for name, value in zip((*_Subset.__slots__, "calls"), (*source, rows.calls), strict=True):
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> IntArray:
        """A column that was not asked for before: its slot is empty."""
        if name not in Activities.__slots__:
            raise AttributeError(name)
        column: IntArray = getattr(self._all, name)[self._places]
        object.__setattr__(self, name, column)
        return column

    def __len__(self) -> int:
        return len(self._places)


@frozen
class RankTimeline:
    """One process on one GPU. `process` is the operating system's id, None where the trace has
    none.
    """

    columns: Columns
    process_gid: int
    device: int
    activities: Activities
    opaque_graph_frac: float
    """Share of the trace's CUDA graph launches of which no work was recorded."""
    clock: ClockFix | None
    """How its host's times were put on the GPU's clock, where they were on another."""
    beside: int
    """How many others, a process on a GPU each, work in the recording."""

    @property
    def calls(self) -> Calls:
        """The host's calls, of all processes."""
        return self.columns.calls

    @property
    def kernels(self) -> Kernels:
        """What was recorded of kernels, of all ranks."""
        return self.columns.kernels

    @property
    def process(self) -> int | None:
        return None if self.process_gid == NULL else process_of(self.process_gid)

    @property
    def gpu(self) -> Gpu | None:
        """The GPU it ran on: by the export's own map, else the only one listed, else by CUDA
        ordinal; else what all that are listed are.
        """
        listed, known = self.columns.info.gpus, self.columns.gpu_of
        if (
            self.process is not None
            and (place := known.get((self.process, self.device))) is not None
        ):
            return listed[place]
        if known:
            return None
        if len(listed) == 1:
            return listed[0]
        here = next((gpu for gpu in listed if gpu.cuda_device == self.device), None)
        alike = {replace(gpu, gpu_id=None, cuda_device=None) for gpu in listed}
        if here is None and len(alike) == 1:
            return alike.pop()
        return here

    @property
    def physical_gpu(self) -> int | None:
        """The number of its GPU on the machine: by the export's own map, or because there is only
        one.
        """
        gpu = self.gpu if self.columns.gpu_of or len(self.columns.info.gpus) == 1 else None
        return gpu.gpu_id if gpu else None

    @property
    def blocks(self) -> IntArray:
        """Blocks of each activity's grid, shape (n,), NULL where it has none."""
        rows = self.activities
        blocks = np.full(len(rows), NULL)
        kernel = rows.is_kernel
        blocks[kernel] = self.kernels.shapes.blocks[self.kernels.shape[rows.row[kernel]]]
        return blocks

    @property
    def classes(self) -> tuple[KernelClass, ...]:
        """Of each kernel name of the columns; the last is for activities without a name (-1)."""
        return (*map(classify_kernel, self.columns.kernel_names), UNNAMED)

    def copy_bytes(self, copies: IntArray | BoolArray) -> IntArray:
        """Sizes of some copies, by their places in the activities or a mask; NULL where not
        recorded.
        """
        return self.columns.copies.size_bytes[self.activities.row[copies]]

    def named(self, fits: Callable[[str, KernelClass], object]) -> BoolArray:
        """The kernels whose name, and what it says, fits; shape (n,)."""
        names = (*self.columns.kernel_names, "")
        fitting = [
            bool(name and fits(name, kind)) for name, kind in zip(names, self.classes, strict=True)
        ]
        return np.array(fitting)[self.activities.name]

    def of_class(self, *classes: str) -> BoolArray:
        """The kernels whose name is of one of these classes; shape (n,)."""
        return self.named(lambda _, kernel: kernel.class_ in classes)

    def of_phase(self, phase: str) -> BoolArray:
        """The kernels whose name says that they are forward ("fwd") or backward ("bwd"); shape
        (n,).
        """
        return self.named(lambda _, kernel: kernel.phase == phase)

    def may_be_own(self, rows: OnThread) -> BoolArray:
        """What threads of its process did, shape (n,), or threads of an unknown one."""
        known = (rows.thread_gid != NULL) & (self.process_gid != NULL)
        return ~known | (rows.thread_gid & PROCESS_BITS == self.process_gid)

    def cure(self, missing: str) -> str:
        """What to record to learn what the trace does not say, in the terms of who recorded it."""
        return cure(missing, self.columns.info.kind)

    def lacks(self, reason: str, missing: str) -> Missing:
        """A gap of the field that it stands in, and what to record so that there is none."""
        return gap(reason, self.cure(missing))

    @property
    def has_kernels(self) -> bool:
        return bool(self.activities.is_kernel.any())


@frozen
class Timeline:
    """All ranks of one trace, ordered by process and device, and what was wrong with single rows.

    `columns` are without times and places of GPU work: these stand in the activities of the ranks.
    """

    columns: Columns
    ranks: tuple[RankTimeline, ...]
    warnings: Texts
    graph_launches: int
    opaque_graph_launches: int
    """Graph launches of which neither kernels nor a replay were recorded: their work is not in the
    trace."""

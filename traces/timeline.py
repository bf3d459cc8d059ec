"""Columns -> ranks: one GPU of one process each, its activities in order, with where each was launched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import IntEnum
from typing import Final

import numpy as np

from traces.arrays import CODE, PLACE, BoolArray, IntArray, Lasting, codes_of, distinct, last_at, summed
from traces.columns import COPY_KINDS, NULL, PROCESS_BITS, Calls, Columns, Gpu, GpuRows, process_of
from traces.copy_engines import copies_of_collectives
from traces.cures import cure
from traces.frozen import frozen
from traces.gpu_rows import checked_times, known_device, known_process
from traces.groups import group_of, passing
from traces.host_clock import ClockFix, clock_fixes, on_gpu_clock
from traces.launches import AMBIGUOUS, joined_rows, launches_a_graph, of_call
from traces.missing import Missing, gap
from traces.names.kernels import (
    COMM_KINDS,
    GRAPH_REPLAY,
    UNNAMED,
    KernelClass,
    classify_kernel,
    comm_kind,
    compute_class,
    compute_classes,
    is_communication,
)
from traces.spelling import duration, signed_ms


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

    `bucket` is a `Bucket`, `key` indexes `KEYS[bucket]`, `source` is a `Source`, `row` its row in that
    table of the columns, `name` indexes their kernel names (-1: none). `call` is the row of the launching
    call in `calls` (-1: not recorded), `launch_ns`, `launch_end_ns` and `launch_thread` are that call's
    start, end and thread (NULL where not recorded).
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
    def is_launched(self) -> BoolArray:
        """Which have a recorded launch."""
        return self.launch_ns != NULL

    @property
    def launched_ns(self) -> IntArray:
        """When each was launched, shape (n,); where no launch was recorded, when it began."""
        return np.where(self.is_launched, self.launch_ns, self.start_ns)

    @property
    def launch_end_ns(self) -> IntArray:
        """When each launching call returned; seldom asked for, so that it is looked up each time."""
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
        return self.is_copy & (self.key == COPY_KINDS.index(kind))

    def take(self, which: BoolArray | IntArray) -> Activities:
        """Some of the activities, by mask or index; each column is taken when it is first asked for."""
        return _Some(self, (np.flatnonzero(which) if which.dtype == np.bool_ else which).astype(PLACE))


class _Some(Activities):
    """The activities in some places of others. Few columns of them are ever asked for."""

    __slots__ = ("_all", "_places")

    def __init__(self, rows: Activities, places: IntArray) -> None:
        whole = (rows._all, rows._places[places]) if isinstance(rows, _Some) else (rows, places)
        for name, value in zip((*_Some.__slots__, "calls"), (*whole, rows.calls), strict=True):
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
    """One process on one GPU. `process` is the operating system's id, None where the trace has none."""

    columns: Columns
    process_gid: int
    device: int
    activities: Activities
    opaque_graph_frac: float = 0.0
    """Share of the trace's CUDA graph launches of which no work was recorded."""
    clock: ClockFix | None = None
    """How its host's times were put on the GPU's clock, where they were on another."""

    @property
    def process(self) -> int | None:
        return None if self.process_gid == NULL else process_of(self.process_gid)

    @property
    def gpu(self) -> Gpu | None:
        """The GPU it ran on: by the export's own map, else the only one listed, else by CUDA ordinal."""
        listed, known = self.columns.info.gpus, self.columns.gpu_of
        if self.process is not None and (place := known.get((self.process, self.device))) is not None:
            return listed[place]
        if known:
            return None
        if len(listed) == 1:
            return listed[0]
        return next((gpu for gpu in listed if gpu.cuda_device == self.device), None)

    @property
    def physical_gpu(self) -> int | None:
        """The number of its GPU on the machine: by the export's own map, or because there is only one."""
        listed, known = self.columns.info.gpus, self.columns.gpu_of
        told = self.gpu if known or len(listed) == 1 else None
        return told.gpu_id if told else None

    @property
    def blocks(self) -> IntArray:
        """Blocks of each activity's grid, shape (n,), NULL where it has none."""
        rows = self.activities
        blocks = np.full(len(rows), NULL)
        kernel = rows.is_kernel
        kernels = self.columns.kernels
        blocks[kernel] = kernels.shapes.blocks[kernels.shape[rows.row[kernel]]]
        return blocks

    @property
    def classes(self) -> tuple[KernelClass, ...]:
        """Of each kernel name of the columns; the last is for activities without a name (-1)."""
        return (*map(classify_kernel, self.columns.kernel_names), UNNAMED)

    def copy_bytes(self, copies: IntArray) -> IntArray:
        """Sizes of some copies, by their places in the activities; NULL where not recorded."""
        return self.columns.copies.size_bytes[self.activities.row[copies]]

    def named(self, fits: Callable[[str, KernelClass], object]) -> BoolArray:
        """The kernels whose name, and what it says, fits; shape (n,)."""
        names = (*self.columns.kernel_names, "")
        found = [bool(name and fits(name, one)) for name, one in zip(names, self.classes, strict=True)]
        return np.array(found)[self.activities.name]

    def of_class(self, *classes: str) -> BoolArray:
        """The kernels whose name is of one of these classes; shape (n,)."""
        return self.named(lambda _, kernel: kernel.class_ in classes)

    def of_phase(self, phase: str) -> BoolArray:
        """The kernels whose name says that they are forward ("fwd") or backward ("bwd"); shape (n,)."""
        return self.named(lambda _, kernel: kernel.phase == phase)

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
    warnings: tuple[str, ...]
    graph_launches: int
    opaque_graph_launches: int
    """Graph launches of which neither kernels nor a replay were recorded: their work is not in the trace."""


def build(columns: Columns) -> Timeline:
    """Sort a trace's GPU work into ranks; ones with neither kernels nor graph rows are only warned of.

    Where the caller keeps no columns, their times and places of GPU work go before the ranks take them.
    """
    work, warnings = _all_work(columns)
    graphs = _graph_launches(columns, work)
    fixes = clock_fixes(columns, work.rows, work.call)
    none = GpuRows.none()  # the work holds the GPU's rows now
    kernels, copies = replace(columns.kernels, rows=none), replace(columns.copies, rows=none)
    columns = on_gpu_clock(replace(columns, kernels=kernels, copies=copies), fixes)
    for gid, fix in fixes.items():
        apart, within = signed_ms(fix.ahead_ns), duration(fix.within_ns)
        warnings.append(
            f"process {process_of(gid)}: its host's clock was {apart} ahead of its GPU's, by launches and "
            f"waits known within {within}; host times were corrected"
        )
    ranks, rows = [], work.rows
    for places in work.by_rank():
        mine, gid, device = work.take(places, columns), rows.process_gid[places[0]], rows.device_id[places[0]]
        launched, opaque = graphs.get(int(gid), (0, 0))
        hidden_frac = opaque / launched if launched else 0.0
        rank = RankTimeline(columns, int(gid), int(device), mine, hidden_frac, fixes.get(int(gid)))
        busy = mine.end_ns > mine.start_ns
        if not (busy & (mine.source != Source.COPY)).any():
            warnings.append(f"process {rank.process}, GPU {device}: no kernels that take time; left out")
        else:
            ranks.append(rank)
    launches, hidden = (sum(counts) for counts in zip((0, 0), *graphs.values(), strict=True))
    return Timeline(columns, tuple(ranks), tuple(warnings), launches, hidden)


def _graph_launches(columns: Columns, work: _Work) -> dict[int, tuple[int, int]]:
    """By process: how many CUDA graph launches there are, and of how many no work was recorded.

    A launch may have a runtime and a driver row; both share the correlation id and count once. Those before
    the first launch of a process that has compute, and after its last, are a capture cut off, whose work ran
    outside of it; unless no graph launch of the process shows any work.
    """
    calls = columns.calls
    rows = np.flatnonzero(passing(launches_a_graph, columns.call_names)[calls.name])
    has_work = np.isin(rows, distinct(work.call))
    computed = work.call[work.kept & (work.bucket == Bucket.COMPUTE) & (work.call >= 0)]
    process, computing = calls.thread_gid & PROCESS_BITS, distinct(computed)
    found: dict[int, tuple[int, int]] = {}
    for one in distinct(process[rows]).tolist():
        within_ns = calls.start_ns[computing[process[computing] == one]]
        of_process = process[rows] == one
        mine, ids = rows[of_process], calls.correlation_id
        worked = distinct(ids[rows[of_process & has_work]])
        seen = mine
        if len(worked) and len(within_ns):
            launched_ns = calls.start_ns[mine]
            seen = mine[(launched_ns >= within_ns.min()) & (launched_ns <= within_ns.max())]
        opaque = np.setdiff1d(ids[seen], worked)
        found[one] = len(distinct(ids[mine])), len(opaque)
    return found


@frozen
class _Work:
    """Every row of GPU work, shape (n,): kernels, copies, replays; `kept` are those with times and a device.

    `call`: as in `Activities`. No row of `rows` ends before it starts; processes and devices are as known.
    """

    rows: GpuRows
    kept: BoolArray
    bucket: IntArray
    key: IntArray
    call: IntArray

    def by_rank(self) -> Iterator[IntArray]:
        """Places of each process and device, in the order of `Activities`."""
        kept, rows = np.flatnonzero(self.kept), self.rows
        order = np.lexsort((rows.correlation_id[kept], rows.stream_id[kept], rows.start_ns[kept]))
        of_rank = group_of(rows.device_id[kept], rows.process_gid[kept])[order]
        if not of_rank.any():  # most recordings are of one rank
            yield from [kept[order]] if len(order) else []
            return
        order = order[np.argsort(of_rank, kind="stable")]
        yield from np.split(kept[order], np.cumsum(np.bincount(of_rank))[:-1])

    def take(self, places: IntArray, columns: Columns) -> Activities:
        """The activities of some places, by the columns that the rows are of."""
        rows, calls, call = self.rows, columns.calls, self.call[places]
        lengths = [len(columns.kernels), len(columns.copies), len(columns.replays)]
        begins = np.cumsum([0, *lengths[:-1]])
        source = (last_at(begins, places)).astype(CODE)
        row = (places - begins[source]).astype(PLACE)
        name, is_kernel = np.full(len(places), -1, dtype=PLACE), source == Source.KERNEL
        name[is_kernel] = columns.kernels.name[row[is_kernel]]
        return Activities(
            rows.start_ns[places],
            rows.end_ns[places],
            rows.stream_id[places],
            self.bucket[places],
            self.key[places],
            source,
            row,
            name,
            call,
            of_call(calls.start_ns, call),
            calls,
        )


def _all_work(columns: Columns) -> tuple[_Work, list[str]]:
    """All work, and what was wrong with single rows."""
    rows = GpuRows.joined(columns.kernels.rows, columns.copies.rows, columns.replays)
    gid = known_process(rows.process_gid, columns)
    timed, end_ns, warnings = checked_times(rows)
    device, placed = known_device(rows.device_id)
    if count := summed(timed & ~placed):
        warnings.append(f"GPU rows that name no device, left out: {count}")
    rows = replace(rows, end_ns=end_ns, device_id=device, process_gid=gid)
    call = joined_rows(columns.calls, gid, rows.correlation_id)
    if count := summed(call == AMBIGUOUS):
        warnings.append(f"GPU rows whose correlation id several calls bear, joined to no launch: {count}")
    call = np.maximum(call, PLACE(-1))
    first = len(columns.kernels)
    collective = copies_of_collectives(columns, call[first : first + len(columns.copies)])
    return _Work(rows, timed & placed, *_kinds(columns, collective), call), warnings


def _kinds(columns: Columns, collective: BoolArray) -> tuple[IntArray, IntArray]:
    """Bucket and key of each kernel, copy and replay, in that order; each distinct name is matched once.

    `collective`: copies that are communication, as those between GPUs are.
    """
    place = {bucket: codes_of(keys) for bucket, keys in KEYS.items()}
    of_name = [
        (Bucket.COMM, place[Bucket.COMM][comm_kind(kernel)])
        if is_communication(kernel)
        else (Bucket.COMPUTE, place[Bucket.COMPUTE][compute_class(kernel)])
        for kernel in (*map(classify_kernel, columns.kernel_names), UNNAMED)  # without a name: -1, the last
    ]
    of_kernel = np.array(of_name, dtype=CODE)[columns.kernels.name]
    between_gpus = (columns.copies.kind == place[Bucket.COPY]["memcpy_p2p"]) | collective
    copy_bucket = np.where(between_gpus, CODE(Bucket.COMM), CODE(Bucket.COPY))
    copy_key = np.where(between_gpus, place[Bucket.COMM]["other_comm"], columns.copies.kind).astype(CODE)
    replay = np.full(len(columns.replays), place[Bucket.COMPUTE][GRAPH_REPLAY], dtype=CODE)
    bucket = np.concatenate((of_kernel[:, 0], copy_bucket, np.full(len(replay), Bucket.COMPUTE, dtype=CODE)))
    return bucket, np.concatenate((of_kernel[:, 1], copy_key, replay))

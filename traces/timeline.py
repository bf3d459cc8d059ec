"""Columns -> ranks: one GPU of one process each, its activities in order, with where each was launched."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np

from traces.columns import (
    COPY_KINDS,
    NULL,
    PROCESS_BITS,
    BoolArray,
    Columns,
    Gpu,
    GpuRows,
    IntArray,
    distinct,
    end_to_end,
    grid_blocks,
    group_of,
    process_of,
    without_gpu_rows,
)
from traces.launches import join_launches, launches_a_graph
from traces.names.kernels import UNNAMED, classify_kernel
from traces.names.kinds import (
    COMM_KINDS,
    GRAPH_REPLAY,
    comm_kind,
    compute_class,
    compute_classes,
    is_communication,
)


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


@dataclass(frozen=True, slots=True)
class Activities:
    """Work of one GPU, arrays of shape (n,), ordered by start, then stream, then correlation id.

    `bucket` is a `Bucket`, `key` indexes `KEYS[bucket]`, `source` is a `Source`, `row` its row in that
    table of the columns, `name` indexes their kernel names (-1: none). `call` is the row of the launching
    call in `Columns.calls` (-1: not recorded), `launch_ns`, `launch_end_ns` and `launch_thread` are that
    call's start, end and thread (NULL where not recorded).
    """

    start_ns: IntArray
    end_ns: IntArray
    stream_id: IntArray
    correlation_id: IntArray
    bucket: IntArray
    key: IntArray
    source: IntArray
    row: IntArray
    name: IntArray
    call: IntArray
    launch_ns: IntArray
    launch_end_ns: IntArray
    launch_thread: IntArray

    def __len__(self) -> int:
        return len(self.start_ns)

    def take(self, which: BoolArray | IntArray) -> Activities:
        """Some of the activities, by mask or index."""
        return Activities(*(getattr(self, field)[which] for field in Activities.__slots__))


@dataclass(frozen=True, slots=True)
class RankTimeline:
    """One process on one GPU. `process` is the operating system's id, None where the trace has none."""

    columns: Columns
    process_gid: int
    device: int
    activities: Activities
    opaque_graph_frac: float = 0.0
    """Share of the trace's CUDA graph launches of which no work was recorded."""

    @property
    def process(self) -> int | None:
        """The operating system's process id."""
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
    def blocks(self) -> IntArray:
        """Blocks of each activity's grid, shape (n,), NULL where it has none."""
        rows = self.activities
        blocks = np.full(len(rows), NULL, dtype=np.int64)
        kernel = rows.source == Source.KERNEL
        blocks[kernel] = grid_blocks(self.columns.kernels.grid[rows.row[kernel]])
        return blocks

    @property
    def has_kernels(self) -> bool:
        """Whether single kernels were recorded, not only whole graph replays."""
        return bool((self.activities.source == Source.KERNEL).any())


@dataclass(frozen=True, slots=True)
class Timeline:
    """All ranks of one trace, ordered by process and device, and what was wrong with single rows."""

    ranks: tuple[RankTimeline, ...]
    warnings: tuple[str, ...]
    graph_launches: int
    opaque_graph_launches: int
    """Graph launches of which neither kernels nor a replay were recorded: their work is not in the trace."""


def build(columns: Columns) -> Timeline:
    """Sort a trace's GPU work into ranks; ones with neither kernels nor graph rows are only warned of."""
    all_work = _all_work(columns)
    launched, opaque = _graph_launches(columns, all_work)
    hidden_frac = opaque / launched if launched else 0.0
    ranks, warnings = [], list(all_work.warnings)
    columns = without_gpu_rows(columns)  # the activities hold them now
    work, of_rank = all_work.activities, group_of(all_work.device_id, all_work.process_gid)
    in_order = np.lexsort((work.correlation_id, work.stream_id, work.start_ns))
    for number in range(int(of_rank.max(initial=-1)) + 1):
        places = in_order[of_rank[in_order] == number]
        mine, gid, dev = work.take(places), all_work.process_gid[places[0]], all_work.device_id[places[0]]
        rank = RankTimeline(columns, int(gid), int(dev), mine, hidden_frac)
        busy = mine.end_ns > mine.start_ns
        if not (busy & (mine.source != Source.COPY)).any():
            warnings.append(f"process {rank.process}, GPU {dev}: no kernels that take time; left out")
        else:
            ranks.append(rank)
    return Timeline(tuple(ranks), tuple(warnings), launched, opaque)


def _graph_launches(columns: Columns, work: _Work) -> tuple[int, int]:
    """How many CUDA graph launches there are, and of how many no work was recorded though it should be.

    A launch may have a runtime and a driver row; both share the correlation id and count once. Those before
    the first launch of a process that has compute, and after its last, are a capture cut off, whose work ran
    outside of it; unless no graph launch shows any work.
    """
    calls = columns.calls
    is_launch = [*map(launches_a_graph, columns.call_names)]
    rows = np.flatnonzero(np.array([*is_launch, False], dtype=np.bool_)[calls.name])
    worked = {_launch_id(columns, row) for row in rows[np.isin(rows, work.call)].tolist()}
    computed = work.activities.call[(work.activities.bucket == Bucket.COMPUTE) & (work.activities.call >= 0)]
    process, computing = calls.thread_gid & PROCESS_BITS, distinct(computed)
    ids, opaque = {_launch_id(columns, row) for row in rows.tolist()}, set()
    for one in distinct(process[rows]).tolist():
        within_ns = calls.start_ns[computing[process[computing] == one]]
        mine = rows[process[rows] == one]
        if worked and len(within_ns):
            launched_ns = calls.start_ns[mine]
            mine = mine[(launched_ns >= within_ns.min()) & (launched_ns <= within_ns.max())]
        opaque |= {_launch_id(columns, row) for row in mine.tolist()}
    return len(ids), len(opaque - worked)


def _launch_id(columns: Columns, row: int) -> tuple[int, int]:
    calls = columns.calls
    return int(calls.thread_gid[row]) & PROCESS_BITS, int(calls.correlation_id[row])


@dataclass(frozen=True, slots=True)
class _Work:
    """Every activity of the trace that has times, its process and device; `call`: calls that launched any."""

    process_gid: IntArray
    device_id: IntArray
    activities: Activities
    call: IntArray
    warnings: tuple[str, ...]


def _all_work(columns: Columns) -> _Work:
    kernels, copies, replays = columns.kernels, columns.copies, columns.replays
    bucket, key = _kinds(columns)
    source = np.repeat(np.array(list(Source), dtype=np.int64), [len(kernels), len(copies), len(replays)])
    no_name = np.full(len(copies) + len(replays), -1, dtype=np.int64)
    rows = end_to_end(kernels.rows, copies.rows, replays)
    gid = _known_process(rows.process_gid, columns)
    launches = join_launches(columns.calls, gid, rows.correlation_id)
    timed, end_ns, warnings = _checked_times(rows)
    activities = Activities(
        rows.start_ns,
        end_ns,
        rows.stream_id,
        rows.correlation_id,
        bucket,
        key,
        source,
        np.concatenate([np.arange(len(table)) for table in (kernels, copies, replays)]),
        np.concatenate((kernels.name, no_name)),
        launches.call,
        launches.start_ns,
        launches.end_ns,
        launches.thread_gid,
    )
    called = launches.call[launches.call >= 0]
    device, placed = _known_device(rows.device_id)
    if count := int((timed & ~placed).sum()):
        warnings.append(f"GPU rows that name no device, left out: {count}")
    kept = timed & placed
    return _Work(gid[kept], device[kept], activities.take(kept), called, tuple(warnings))


def _known_device(device_id: IntArray) -> tuple[IntArray, BoolArray]:
    """Device of each row, and which have one; a row without belongs to the only device there is."""
    known = device_id != NULL
    candidates = distinct(device_id[known])
    if len(candidates) == 1:
        return np.full(len(device_id), candidates[0]), np.ones(len(device_id), dtype=np.bool_)
    return device_id, known


def _kinds(columns: Columns) -> tuple[IntArray, IntArray]:
    """Bucket and key of each kernel, copy and replay, in that order; each distinct name is matched once."""
    place = {bucket: {key: index for index, key in enumerate(keys)} for bucket, keys in KEYS.items()}
    classes = [classify_kernel(name) for name in columns.kernel_names]
    of_name = [
        (Bucket.COMM, place[Bucket.COMM][comm_kind(kernel)])
        if is_communication(kernel)
        else (Bucket.COMPUTE, place[Bucket.COMPUTE][compute_class(kernel)])
        for kernel in (*classes, UNNAMED)  # a kernel without a name has code -1: the last
    ]
    of_kernel = np.array(of_name, dtype=np.int64)[columns.kernels.name]
    between_gpus = columns.copies.kind == place[Bucket.COPY]["memcpy_p2p"]
    copy_bucket = np.where(between_gpus, Bucket.COMM, Bucket.COPY)
    copy_key = np.where(between_gpus, place[Bucket.COMM]["other_comm"], columns.copies.kind)
    replay = np.full(len(columns.replays), place[Bucket.COMPUTE][GRAPH_REPLAY], dtype=np.int64)
    bucket = np.concatenate((of_kernel[:, 0], copy_bucket, np.full(len(replay), Bucket.COMPUTE)))
    return bucket, np.concatenate((of_kernel[:, 1], copy_key, replay))


def _known_process(process_gid: IntArray, columns: Columns) -> IntArray:
    """Process of each row; a row without one belongs to the only process there is, if there is only one."""
    host = columns.calls.thread_gid
    candidates = distinct(
        np.concatenate((process_gid[process_gid != NULL], host[host != NULL] & PROCESS_BITS))
    )
    if len(candidates) != 1:
        return process_gid
    return np.where(process_gid == NULL, candidates[0], process_gid)


def _checked_times(rows: GpuRows) -> tuple[BoolArray, IntArray, list[str]]:
    """Which rows have times, their ends never before their starts, and what was amiss.

    CUPTI writes start = end = 0 where it has no times (CUPTI documentation, CUpti_ActivityKernel); an end
    before its start is work that had not ended when the recording did.
    """
    untimed = (rows.start_ns == NULL) | (rows.end_ns == NULL) | ((rows.start_ns == 0) & (rows.end_ns == 0))
    unfinished = ~untimed & (rows.end_ns < rows.start_ns)
    warnings = []
    if count := int(untimed.sum()):
        warnings.append(f"GPU rows without times, left out: {count}")
    if count := int(unfinished.sum()):
        warnings.append(f"GPU rows that end before they start, counted as empty: {count}")
    return ~untimed, np.maximum(rows.start_ns, rows.end_ns), warnings

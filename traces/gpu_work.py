"""Columns -> timeline: every row of GPU work gets its rank, its bucket and its launch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from traces.arrays import (
    CODE,
    PLACE,
    BoolArray,
    IntArray,
    distinct,
    ints,
    last_at,
    nowhere,
    order_of,
    summed,
)
from traces.columns import COPY_KINDS, PROCESS_BITS, Columns, GpuRows, process_of
from traces.copy_engines import copies_of_collectives
from traces.frozen import frozen
from traces.gpu_rows import checked_times, known_device, known_process
from traces.groups import group_of, passing
from traces.host_clock import clock_fixes, on_gpu_clock
from traces.launches import AMBIGUOUS, joined_rows, launches_a_graph, of_call
from traces.names.kernels import (
    COMM_KINDS,
    GRAPH_REPLAY,
    UNNAMED,
    KernelClass,
    classify_kernel,
    compute_class,
    kind_of,
)
from traces.spelling import duration, signed_ms
from traces.timeline import KEYS, Activities, Bucket, RankTimeline, Source, Timeline


def build(columns: Columns) -> Timeline:
    """Sort a trace's GPU work into ranks; ones with neither kernels nor graph rows are only warned
    of.

    Where the caller keeps no columns, their times and places of GPU work go before the ranks take
    them.
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
            f"process {process_of(gid)}: its host's clock was {apart} ahead of its GPU's, by "
            f"launches and waits known within {within}; host times were corrected"
        )
    ranks, rows = [], work.rows
    by_rank = [*work.by_rank()]
    for places in by_rank:
        mine = work.take(places, columns)
        gid = rows.process_gid[places[0]]
        device = rows.device_id[places[0]]
        launched, opaque = graphs.get(int(gid), (0, 0))
        hidden_frac = opaque / launched if launched else 0.0
        clock, beside = fixes.get(int(gid)), len(by_rank) - 1
        rank = RankTimeline(columns, int(gid), int(device), mine, hidden_frac, clock, beside)
        if not ((mine.end_ns > mine.start_ns) & ~mine.is_transfer).any():
            warnings.append(
                f"process {rank.process}, GPU {device}: no kernels that take time; left out"
            )
        else:
            ranks.append(rank)
    launches, hidden = ints([(0, 0), *graphs.values()]).sum(axis=0).tolist()
    return Timeline(columns, tuple(ranks), tuple(warnings), launches, hidden)


def _graph_launches(columns: Columns, work: _Work) -> dict[int, tuple[int, int]]:
    """By process: how many CUDA graph launches there are, and of how many no work was recorded.

    A launch may have a runtime and a driver row; both share the correlation id and count once.
    Those before the first launch of a process that has compute, and after its last, are a capture
    cut off, whose work ran outside of it; unless no graph launch of the process shows any work.
    """
    calls = columns.calls
    rows = np.flatnonzero(passing(launches_a_graph, columns.call_names)[calls.name])
    has_work = np.isin(rows, distinct(work.call))
    computed = work.call[work.kept & (work.bucket == Bucket.COMPUTE) & (work.call >= 0)]
    process, computing = calls.thread_gid & PROCESS_BITS, distinct(computed)
    by_process: dict[int, tuple[int, int]] = {}
    for gid in distinct(process[rows]).tolist():
        within_ns = calls.start_ns[computing[process[computing] == gid]]
        of_process = process[rows] == gid
        mine, ids = rows[of_process], calls.correlation_id
        worked = distinct(ids[rows[of_process & has_work]])
        seen = mine
        if len(worked) and len(within_ns):
            launched_ns = calls.start_ns[mine]
            seen = mine[(launched_ns >= within_ns.min()) & (launched_ns <= within_ns.max())]
        by_process[gid] = len(distinct(ids[mine])), len(np.setdiff1d(ids[seen], worked))
    return by_process


@frozen
class _Work:
    """Every row of GPU work, shape (n,): kernels, copies, replays; `kept` are those with times and
    a device.

    `call`: as in `Activities`. No row of `rows` ends before it starts; processes and devices are as
    known.
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
        order = order[order_of(of_rank)]
        yield from np.split(kept[order], np.cumsum(np.bincount(of_rank))[:-1])

    def take(self, places: IntArray, columns: Columns) -> Activities:
        """The activities of some places, by the columns that the rows are of."""
        rows, calls, call = self.rows, columns.calls, self.call[places]
        lengths = [len(columns.kernels), len(columns.copies), len(columns.replays)]
        begins = np.cumsum([0, *lengths[:-1]])
        source = (last_at(begins, places)).astype(CODE)
        row = (places - begins[source]).astype(PLACE)
        name, is_kernel = nowhere(len(places)), source == Source.KERNEL
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
        warnings.append(
            f"GPU rows whose correlation id several calls bear, joined to no launch: {count}"
        )
    call = np.maximum(call, PLACE(-1))
    first = len(columns.kernels)
    collective = copies_of_collectives(columns, call[first : first + len(columns.copies)])
    return _Work(rows, timed & placed, *_kinds(columns, collective), call), warnings


def _kinds(columns: Columns, collective: BoolArray) -> tuple[IntArray, IntArray]:
    """Bucket and key of each kernel, copy and replay, in that order; each distinct name is matched
    once.

    `collective`: copies that are communication, as those between GPUs are.
    """
    # without a name: -1, the last
    classes = (*map(classify_kernel, columns.kernel_names), UNNAMED)
    of_kernel = np.array([*map(_kind, classes)], dtype=CODE)[columns.kernels.name]
    between_gpus = (columns.copies.kind == COPY_KINDS.index("memcpy_p2p")) | collective
    copy_bucket = np.where(between_gpus, CODE(Bucket.COMM), CODE(Bucket.COPY))
    other_comm = COMM_KINDS.index("other_comm")
    copy_key = np.where(between_gpus, other_comm, columns.copies.kind).astype(CODE)
    replay = np.full(len(columns.replays), KEYS[Bucket.COMPUTE].index(GRAPH_REPLAY), dtype=CODE)
    bucket = np.concatenate(
        (of_kernel[:, 0], copy_bucket, np.full(len(replay), Bucket.COMPUTE, dtype=CODE))
    )
    return bucket, np.concatenate((of_kernel[:, 1], copy_key, replay))


def _kind(kernel: KernelClass) -> tuple[Bucket, int]:
    if kernel.class_ == "comm":
        return Bucket.COMM, COMM_KINDS.index(kind_of(kernel.subclass))
    return Bucket.COMPUTE, KEYS[Bucket.COMPUTE].index(compute_class(kernel))

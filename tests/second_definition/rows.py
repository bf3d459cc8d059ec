"""Rows of an nsys export, by plain SQL: what one process did on one GPU."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

COPIES = {1: "memcpy_h2d", 2: "memcpy_d2h", 8: "memcpy_d2d", 10: "memcpy_p2p"}
"""MEMCPY.copyKind -> kind of copy."""
NAMES = """
nvjet_ compute gemm, flash_[fb]prop compute attention, rmsnorm_ compute norm, _permute_kernel compute permute,
gated_act_kernel compute activation, AdamFunctor compute optimizer, intranode::dispatch comm ep_dispatch,
intranode::combine comm ep_combine, ncclDevKernel_AllReduce comm all_reduce, ncclDevKernel_ comm other_comm
"""
"""Of kernels: a pattern of the name, what it is, its class or kind."""
EARLIEST = -(1 << 62)


class Call(NamedTuple):
    """One CUDA call of a thread."""

    start: int
    end: int
    thread: int
    name: str
    correlation: int


class Span(NamedTuple):
    """A range, a call of the operating system or an overhead of a thread."""

    start: int
    end: int
    thread: int
    name: str


@dataclass(eq=False)
class Work:
    """One activity of the GPU: compute, comm or copy. `call` launched it, where a row says which."""

    start: int
    end: int
    group: str
    kind: str
    is_kernel: bool
    name: str
    stream: int
    correlation: int
    call: Call | None = None
    node: int | None = None
    blocks: int = 0
    pageable: bool = False


@dataclass
class Rank:
    """What one process did on one GPU. Work and calls are in order of start."""

    pid: int
    device: int
    works: list[Work] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    spans: dict[str, list[Span]] = field(default_factory=dict)
    """By table."""
    records: dict[int, tuple[int, int]] = field(default_factory=dict)
    """eventSyncId -> stream, start of the recording call."""
    waits: list[tuple[int, int, int]] = field(default_factory=list)
    """Start of the call, waiting stream, eventSyncId."""
    syncs: dict[int, tuple[int, int, int | None]] = field(default_factory=dict)
    """Correlation id -> syncType, stream, eventSyncId."""
    sms: int | None = None

    def of(self, group: str) -> list[Work]:
        """Its work of one group; of work at once first what started first: then by stream, correlation id."""
        return sorted(
            (work for work in self.works if work.group == group),
            key=lambda work: (work.start, work.stream, work.correlation),
        )


def ranks(path: Path) -> list[Rank]:
    """Every process and GPU with kernels or graphs, in an export."""
    with closing(sqlite3.connect(path)) as base:
        base.row_factory = sqlite3.Row
        texts = dict(_rows(base, "StringIds", "id, value"))
        found: dict[tuple[int, int], Rank] = {}
        for table in ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE"):
            for row in _rows(base, f"CUPTI_ACTIVITY_KIND_{table}"):
                place = _pid(row["globalPid"]), row["deviceId"]
                found.setdefault(place, Rank(*place)).works.append(_work(table, row, texts))
        for rank in found.values():
            _host(base, texts, rank)
    return [found[key] for key in sorted(found) if any(map(_takes_time, found[key].works))]


def _rows(base: sqlite3.Connection, table: str, columns: str = "*") -> Iterator[Any]:
    if base.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
        yield from base.execute(f"SELECT {columns} FROM {table}")


def _takes_time(work: Work) -> bool:
    return work.is_kernel and work.end > work.start


def _pid(packed: int) -> int:
    return packed >> 24 & 0xFFFFFF


def _work(table: str, row: Any, texts: dict[int, str]) -> Work:
    name, group, kind = table.lower(), "copy", table.lower()
    if table == "KERNEL":
        name, group, kind = texts[row["demangledName"]], "compute", "other"
        rules = [rule.split() for rule in NAMES.split(",")]
        group, kind = next((rule[1:] for rule in rules if re.search(rule[0], name)), [group, kind])
    elif table == "MEMCPY":
        kind = COPIES[row["copyKind"]]
        group, kind = ("comm", "other_comm") if kind == "memcpy_p2p" else (group, kind)
    elif table == "GRAPH_TRACE":
        group, kind = "compute", "graph_replay"
    is_kernel, on = table in ("KERNEL", "GRAPH_TRACE"), (row["streamId"], row["correlationId"])
    work = Work(row["start"], row["end"], group, kind, is_kernel, name, *on)
    if table == "KERNEL":
        work.node, work.blocks = row["graphNodeId"], row["gridX"] * row["gridY"] * row["gridZ"]
    work.pageable = table == "MEMCPY" and 0 in (row["srcKind"], row["dstKind"])
    return work


def _host(base: sqlite3.Connection, texts: dict[int, str], rank: Rank) -> None:
    calls: dict[int, Call] = {}
    for row in _rows(base, "CUPTI_ACTIVITY_KIND_RUNTIME"):
        if _pid(row["globalTid"]) == rank.pid:
            name, thread = re.sub(r"_v\d+$", "", texts[row["nameId"]]), row["globalTid"] & 0xFFFFFF
            call = Call(row["start"], row["end"], thread, name, row["correlationId"])
            rank.calls.append(call)
            if (call.start, -call.end) > (lambda c: (c.start, -c.end))(calls.get(call.correlation, _NONE)):
                calls[call.correlation] = call  # the innermost counts, once
    for table in ("CUPTI_ACTIVITY_KIND_CUDA_EVENT", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"):
        for row in _rows(base, table):
            own = (_pid(row["globalPid"]), row["deviceId"]) == (rank.pid, rank.device)
            started = calls.get(row["correlationId"], _NONE).start
            if not own or started == EARLIEST:
                continue
            if "syncType" not in row.keys():  # noqa: SIM118 - a sqlite3.Row
                rank.records[row["eventSyncId"]] = row["streamId"], started
            elif row["syncType"] == 2:
                rank.waits.append((started, row["streamId"], row["eventSyncId"]))
            else:
                rank.syncs[row["correlationId"]] = row["syncType"], row["streamId"], row["eventSyncId"]
    for table in ("NVTX_EVENTS", "OSRT_API", "PROFILER_OVERHEAD"):
        rank.spans[table] = [
            Span(row["start"], row["end"], row["globalTid"] & 0xFFFFFF, text)
            for row in _rows(base, table)
            for text in [row["text"] if table == "NVTX_EVENTS" else texts[row["nameId"]]]
            if _pid(row["globalTid"]) == rank.pid and row["end"] is not None
        ]
    for row in _rows(base, "TARGET_INFO_GPU"):
        rank.sms = row["smCount"] if row["id"] == rank.device else rank.sms
    rank.works.sort(key=lambda work: (work.start, work.end, work.stream, work.correlation))
    rank.calls.sort(key=lambda call: (call.start, -call.end))
    for work in rank.works:
        work.call = calls.get(work.correlation)


_NONE = Call(EARLIEST, 0, 0, "", 0)

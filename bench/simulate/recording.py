"""A recording said in ten lines: GPU work, host calls and ranges, as nsys would have noted them.

A `Recording` holds rows by nsys table name; `bench.simulate.export.write_export` turns it into a file.
Column names and codes are those of nsys exports ("Exporting to SQLite" in NVIDIA's user guide). Times are
integer nanoseconds on the recording's own clock, sizes are bytes; nothing is checked against anything, so
that impossible recordings (an end before its start, a kernel before its launch) can be said as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypedDict, Unpack

Row = dict[str, int | float | str | None]
"""One row by column name. A text in a column declared INTEGER stands for its id in StringIds."""

COPY_CODES: Final = {
    "unknown": 0,
    "h2d": 1,
    "d2h": 2,
    "h2a": 3,
    "a2h": 4,
    "a2a": 5,
    "a2d": 6,
    "d2a": 7,
    "d2d": 8,
    "h2h": 9,
    "p2p": 10,
    "uvm_h2d": 11,
    "uvm_d2h": 12,
    "uvm_d2d": 13,
}
"""Kind of copy -> MEMCPY.copyKind. h host, d device, a CUDA array, p peer GPU, uvm managed memory."""

PAGEABLE, PINNED, DEVICE, ARRAY, MANAGED, UNKNOWN = 0, 1, 2, 3, 4, 7
_MEMORY: Final = {"h": PINNED, "d": DEVICE, "a": ARRAY, "p": DEVICE}
SYNC_CODES: Final = {"event": 1, "stream wait": 2, "stream": 3, "context": 4}
"""Kind of wait -> SYNCHRONIZATION.syncType."""
NO_STREAM: Final = 0xFFFFFFFF
"""SYNCHRONIZATION.streamId where no stream is meant."""
METRICS: Final = "GPU_METRICS"
_METRIC_TYPE: Final = 1 << 32
"""GPU_METRICS.typeId; its low byte is the GPU."""
PUSH_POP: Final = 59
"""NVTX_EVENTS.eventType of a range pushed and popped on one thread."""


class Work(TypedDict, total=False):
    """Where GPU work ran and what launched it. Left out: device 0, stream 7, process 1000, no launch row.

    With `launch_ns` a CUDA call is added on thread `tid` (left out: the main thread, whose id is the
    process's) with the same correlation id; it ends at `launch_end_ns`, or 2 µs after it began.
    `correlation_id`, left out, is one the process has not used yet.
    """

    device: int
    stream: int
    pid: int
    launch_ns: int | None
    launch_end_ns: int | None
    tid: int | None
    correlation_id: int | None
    graph_node_id: int | None


@dataclass(frozen=True, slots=True)
class RecordedGpu:
    """A GPU of the machine. `used_by` maps processes to their CUDA ordinal for it; None: ordinal = place."""

    name: str
    sm_count: int
    capability: tuple[int, int]
    memory_bytes: int
    used_by: Mapping[int, int] | None


class Recording:
    """Rows of one recording, in the order they were said. Methods that launch return the correlation id."""

    def __init__(self, *, hardware_id: int = 0, vm_id: int = 1) -> None:
        self.rows: dict[str, list[Row]] = {}
        self.gpus: list[RecordedGpu] = []
        self.hardware_id, self.vm_id = hardware_id, vm_id
        self._last_correlation: dict[int, int] = {}

    def global_id(self, pid: int, tid: int = 0) -> int:
        """Pack hardware (8 bits), VM (8), process (24) and thread (24) into a signed 64-bit id.

        Raises ValueError for a part that does not fit. `tid` 0 gives the process's own id.
        """
        for part, bits in ((self.hardware_id, 8), (self.vm_id, 8), (pid, 24), (tid, 24)):
            if not 0 <= part < 1 << bits:
                raise ValueError(f"{part} does not fit in the {bits} bits a global id has for it")
        packed = self.hardware_id << 56 | self.vm_id << 48 | pid << 24 | tid
        return packed - (1 << 64) if packed >> 63 else packed

    def kernel(
        self,
        name: str,
        start_ns: int,
        end_ns: int,
        *,
        short_name: str | None = None,
        api: str = "cudaLaunchKernel_v7000",
        grid: tuple[int, int, int] = (1, 1, 1),
        block: tuple[int, int, int] = (128, 1, 1),
        registers: int = 32,
        dynamic_shared_bytes: int = 0,
        **where: Unpack[Work],
    ) -> int:
        """A kernel by its demangled name; `short_name` left out is that name without scope and arguments.

        `registers` are per thread, dynamic shared memory is per block.
        """
        table = "CUPTI_ACTIVITY_KIND_KERNEL"
        shape = zip(("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"), (*grid, *block), strict=True)
        details: Row = {
            "demangledName": name,
            "shortName": short_name or base_name(name),
            "launchType": 1,  # regular
            "registersPerThread": registers,
            "dynamicSharedMemory": dynamic_shared_bytes,
            "gridId": len(self.rows.get(table, ())) + 1,
            "tensorSizeMinusOneElements": "[]",
            **dict(shape),
        }
        return self._gpu_work(table, api, start_ns, end_ns, where, details)

    def copy(
        self,
        kind: str,
        start_ns: int,
        end_ns: int,
        *,
        size_bytes: int,
        to_device: int | None = None,
        pageable: bool = False,
        api: str = "cudaMemcpyAsync_v3020",
        **where: Unpack[Work],
    ) -> int:
        """A copy of a kind in `COPY_CODES` (else ValueError); `to_device` names source and target GPU.

        Host memory is pinned, as in most training runs, unless said to be pageable.
        """
        if kind not in COPY_CODES:
            raise ValueError(f"no kind of copy is called {kind!r}; there are {', '.join(COPY_CODES)}")
        source, target = (
            (MANAGED, MANAGED)
            if kind.startswith("uvm")
            else (_MEMORY.get(kind[0], UNKNOWN), _MEMORY.get(kind[-1], UNKNOWN))
        )
        if pageable:
            source, target = (PAGEABLE if memory == PINNED else memory for memory in (source, target))
        details: Row = {
            "bytes": size_bytes,
            "copyKind": COPY_CODES[kind],
            "srcKind": source,
            "dstKind": target,
            "srcDeviceId": None if to_device is None else where.get("device", 0),
            "dstDeviceId": to_device,
            "copyCount": 1,
        }
        return self._gpu_work("CUPTI_ACTIVITY_KIND_MEMCPY", api, start_ns, end_ns, where, details)

    def memset(
        self,
        start_ns: int,
        end_ns: int,
        *,
        size_bytes: int,
        value: int = 0,
        api: str = "cudaMemsetAsync_v3020",
        **where: Unpack[Work],
    ) -> int:
        """Device memory set to one byte value."""
        details: Row = {"value": value, "bytes": size_bytes, "memKind": DEVICE}
        return self._gpu_work("CUPTI_ACTIVITY_KIND_MEMSET", api, start_ns, end_ns, where, details)

    def graph_replay(
        self,
        start_ns: int,
        end_ns: int,
        *,
        graph_id: int = 1,
        graph_exec_id: int = 2,
        api: str = "cudaGraphLaunch_v10000",
        **where: Unpack[Work],
    ) -> int:
        """A CUDA graph recorded whole: one row for all its kernels (nsys's default level)."""
        details: Row = {"graphId": graph_id, "graphExecId": graph_exec_id}
        return self._gpu_work("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", api, start_ns, end_ns, where, details)

    def call(
        self,
        api: str,
        start_ns: int,
        end_ns: int,
        *,
        pid: int = 1000,
        tid: int | None = None,
        correlation_id: int | None = None,
    ) -> int:
        """A CUDA runtime (cuda...) or driver (cu...) call that launches nothing, under nsys's spelling."""
        correlation = self._correlation(pid, correlation_id)
        row: Row = {
            "start": start_ns,
            "end": end_ns,
            "eventClass": 0 if api.startswith("cuda") else 1,
            "globalTid": self.global_id(pid, pid if tid is None else tid),
            "correlationId": correlation,
            "nameId": api,
        }
        self._add("CUPTI_ACTIVITY_KIND_RUNTIME", row)
        return correlation

    def event_record(
        self,
        event_id: int,
        sync_id: int,
        stream: int,
        *,
        correlation_id: int,
        pid: int = 1000,
        device: int = 0,
    ) -> None:
        """A record of an event on a stream by the call of that correlation id; `sync_id` is its own alone."""
        about = self._event(event_id, sync_id, stream, correlation_id, pid, device)
        self._add("CUPTI_ACTIVITY_KIND_CUDA_EVENT", about)

    def synchronisation(
        self,
        kind: str,
        start_ns: int,
        end_ns: int,
        *,
        correlation_id: int,
        stream: int | None = None,
        event_id: int = 0,
        sync_id: int | None = None,
        pid: int = 1000,
        device: int = 0,
    ) -> None:
        """A wait of a kind in `SYNC_CODES` (else KeyError) in the call of that correlation id."""
        about = self._event(
            event_id, sync_id, NO_STREAM if stream is None else stream, correlation_id, pid, device
        )
        times: Row = {"start": start_ns, "end": end_ns, "syncType": SYNC_CODES[kind]}
        self._add("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", {**times, **about})

    def _event(
        self, event_id: int, sync_id: int | None, stream: int, correlation_id: int, pid: int, device: int
    ) -> Row:
        return {
            "deviceId": device,
            "contextId": device + 1,
            "greenContextId": 0,
            "streamId": stream,
            "correlationId": correlation_id,
            "globalPid": self.global_id(pid),
            "eventId": event_id,
            "eventSyncId": sync_id,
        }

    def memory_use(
        self,
        start_ns: int,
        *,
        size_bytes: int,
        address: int,
        frees: bool = False,
        correlation_id: int | None = None,
        pid: int = 1000,
        device: int = 0,
    ) -> None:
        """Device memory taken or given back by cudaMalloc or cudaFree."""
        row: Row = {
            "start": start_ns,
            "globalPid": self.global_id(pid),
            "deviceId": device,
            "contextId": device + 1,
            "address": address,
            "bytes": size_bytes,
            "memKind": DEVICE,
            "memoryOperationType": int(frees),
            "correlationId": correlation_id,
        }
        self._add("CUDA_GPU_MEMORY_USAGE_EVENTS", row)

    def gpu_metrics(self, time_ns: int, percent: Mapping[str, int], *, gpu_id: int = 0) -> None:
        """A sample of hardware counters of a GPU, in per cent by the counters' names."""
        if METRICS not in self.rows:
            for number, name in enumerate(percent):
                about: Row = {"typeId": _METRIC_TYPE | gpu_id, "sourceId": 1, "typeName": "GPU Metrics"}
                self._add("TARGET_INFO_GPU_METRICS", {**about, "metricId": number, "metricName": name})
        for number, value in enumerate(percent.values()):
            row: Row = {"rawTimestamp": time_ns, "timestamp": time_ns, "typeId": _METRIC_TYPE | gpu_id}
            self._add(METRICS, {**row, "metricId": number, "value": value})

    def range(
        self,
        text: str,
        start_ns: int,
        end_ns: int | None,
        *,
        pid: int = 1000,
        tid: int | None = None,
        registered: bool = False,
        domain: int = 0,
        event_type: int = PUSH_POP,
    ) -> None:
        """An NVTX range; `registered` keeps its text in StringIds (NCCL, Python nvtx), None: never closed."""
        row: Row = {
            "start": start_ns,
            "end": end_ns,
            "eventType": event_type,
            "text": None if registered else text,
            "textId": text if registered else None,
            "globalTid": self.global_id(pid, pid if tid is None else tid),
            "domainId": domain,
        }
        self._add("NVTX_EVENTS", row)

    def sample(
        self, time_ns: int, frames: Sequence[tuple[str, str]], *, pid: int = 1000, tid: int | None = None
    ) -> None:
        """A sample of a thread: symbol and module of each frame of its stack, the innermost first."""
        number = len(self.rows.get("COMPOSITE_EVENTS", ())) + 1
        thread = self.global_id(pid, pid if tid is None else tid)
        row: Row = {"id": number, "start": time_ns, "globalTid": thread, "cpu": 0, "cpuCycles": 1}
        self._add("COMPOSITE_EVENTS", row)
        for depth, (symbol, module) in enumerate(frames):
            frame: Row = {"id": number, "symbol": symbol, "module": module, "stackDepth": depth}
            self._add("SAMPLING_CALLCHAINS", frame | {"unresolved": 0})

    def gpu(
        self,
        name: str = "NVIDIA H100 80GB HBM3",
        sm_count: int = 132,
        capability: tuple[int, int] = (9, 0),
        memory_bytes: int = 80 << 30,
        *,
        used_by: Mapping[int, int] | None = None,
    ) -> int:
        """List a GPU of the machine and give its id. Without any, the export lists none, as in containers.

        `used_by` maps process ids to the CUDA ordinal the GPU has there; left out, that is the GPU's id.
        """
        self.gpus.append(RecordedGpu(name, sm_count, capability, memory_bytes, used_by))
        return len(self.gpus) - 1

    def mpi_rank(self, pid: int, rank: int) -> None:
        """A process's MPI rank."""
        self._add("MPI_RANKS", {"globalTid": self.global_id(pid, pid), "rank": rank})

    def diagnostic(self, text: str, severity: int = 2, *, pid: int = 1000) -> None:
        """A message nsys stored about the recording; severity 1 information, 2 warning, 3 error."""
        about: Row = {"timestamp": 0, "timestampType": 1, "source": 3, "severity": severity, "text": text}
        self._add("DIAGNOSTIC_EVENT", {**about, "globalPid": self.global_id(pid)})

    def _gpu_work(self, table: str, api: str, start_ns: int, end_ns: int, where: Work, details: Row) -> int:
        pid, device, launch_ns = where.get("pid", 1000), where.get("device", 0), where.get("launch_ns")
        correlation = self._correlation(pid, where.get("correlation_id"))
        if launch_ns is not None:
            end = where.get("launch_end_ns")
            call_end_ns = launch_ns + 2_000 if end is None else end
            self.call(api, launch_ns, call_end_ns, pid=pid, tid=where.get("tid"), correlation_id=correlation)
        place: Row = {
            "start": start_ns,
            "end": end_ns,
            "deviceId": device,
            "contextId": device + 1,
            "greenContextId": 0,
            "streamId": where.get("stream", 7),
            "correlationId": correlation,
            "globalPid": self.global_id(pid),
            "graphNodeId": where.get("graph_node_id"),
        }
        self._add(table, {**place, **details})
        return correlation

    def _correlation(self, pid: int, given: int | None) -> int:
        last = self._last_correlation.get(pid, 0)
        correlation = last + 1 if given is None else given
        self._last_correlation[pid] = max(last, correlation)
        return correlation

    def _add(self, table: str, row: Row) -> None:
        self.rows.setdefault(table, []).append(row)


def base_name(name: str) -> str:
    """A kernel's demangled name without return type, scope, template arguments and parameters."""
    bare = name.replace("(anonymous namespace)", "<unnamed>")
    while (shorter := re.sub(r"<[^<>]*>", "", bare)) != bare:
        bare = shorter
    return re.split(r"[<(]", bare, maxsplit=1)[0].rpartition("::")[2].rpartition(" ")[2]

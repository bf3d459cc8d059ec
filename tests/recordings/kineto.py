"""Traces of the PyTorch profiler, said event by event or from a simulated recording."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import diagnoser
from bench.simulate.recording import COPY_CODES, Recording

Event = dict[str, Any]
GEMM = "nvjet_tst_128x256_64x4_2x1_v_bz_TNT"
SENDRECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
PID = 4200
GID = PID << 24


def event(category: str, name: str, ts: object, dur: object, pid: object = PID, **more: Any) -> Event:
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": PID, "ts": ts, "dur": dur, **more}


def on_gpu(category: str, name: str, ts: object, dur: object, correlation: int, **args: Any) -> Event:
    given = {"device": 0, "stream": 7, "context": 1, "correlation": correlation, **args}
    return event(category, name, ts, dur, pid=0, tid=given["stream"]) | {"args": given}


def call(name: str, ts: object, dur: object, correlation: int, category: str = "cuda_runtime") -> Event:
    return event(category, name, ts, dur, args={"cbid": 211, "correlation": correlation})


def write(path: Path, events: list[Event] | str, **header: Any) -> Path:
    """Write events, or a text as it is, and give the path."""
    if isinstance(events, str):
        path.write_text(events, encoding="utf-8")
    else:
        path.write_text(json.dumps({"schemaVersion": 1, **header, "traceEvents": events}), encoding="utf-8")
    return path


def one_run(**spelled: str) -> list[Event]:
    """60 us gemm, 20 of exposed sendrecv, 10 of copy, 5 of memset and 5 of nothing."""
    kind = {name: spelled.get(name, name) for name in ("kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime")}
    return [
        call("cudaLaunchKernel", 90, 2, 1, kind["cuda_runtime"]),
        call("cuLaunchKernelEx", 95, 2, 2, "cuda_driver"),
        on_gpu(kind["kernel"], GEMM, 100, 60, 1),
        on_gpu(kind["kernel"], SENDRECV, 150, 30, 2, stream=20),
        on_gpu(kind["gpu_memcpy"], "Memcpy DtoH (Device -> Pinned)", 180, 10, 3, bytes=4),
        on_gpu(kind["gpu_memset"], "Memset (Device)", 195, 5, 4, bytes=4),
    ]


def expect_one_run(path: Path) -> None:
    document = diagnoser.analyze(path).to_dict()
    (rank,) = document["ranks"]
    assert document["traces"][0]["kind"] == "kineto"
    assert (rank["process"], rank["device"], rank["totals"]["kernel_work_ns"]) == (PID, 0, 90_000)
    assert rank["budget_ns"] == {
        "window": 100_000,
        "compute": 60_000,
        "exposed_comm": 20_000,
        "exposed_copy": 15_000,
        "idle": 5_000,
    }
    assert rank["exposed_copy_by_kind_ns"] == {"memcpy_d2h": 10_000, "memset": 5_000}


class Profiled:
    """One thread that launches a kernel of 10 us every 20 us, as the profiler writes it."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def run(self, *names: str, stream: int = 7, **args: object) -> None:
        for name in names:
            at, number = 10 * len(self.events), len(self.events)
            self.events.append(call("cudaLaunchKernel", at, 2, number))
            self.events.append(on_gpu("kernel", name, at + 5, 10, number, stream=stream, **args))

    def collective(
        self,
        name: str,
        said: object,
        description: object = "undefined",
        group: object = "3",
        stream: int = 20,
    ) -> None:
        """A kernel of NCCL's with its collective and its process group, as far as these are not None."""
        keys = ("Collective name", "Process Group Name", "Process Group Description")
        about = zip(keys, (said, group, description), strict=True)
        told = {key: value for key, value in about if value is not None}
        self.run(name, stream=stream, **{"In msg nelems": 64, "Group size": 4, "dtype": "BFloat16"}, **told)


_CATEGORY = {"KERNEL": "kernel", "MEMCPY": "gpu_memcpy", "MEMSET": "gpu_memset", "RUNTIME": "cuda_runtime"}


def as_us(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03}"


def as_profiler_json(recording: Recording, frames: Iterable[Event] = ()) -> str:
    """The same run as the PyTorch profiler would have written it; `frames`: functions of its threads."""
    events = [
        _written(table.rpartition("_")[2], dict(row))
        for table, rows in recording.rows.items()
        for row in rows
    ]
    text = json.dumps({"schemaVersion": 1, "traceEvents": [*events, *frames]})
    return re.sub(r'"(ts|dur)": "([\d.]+)"', r'"\1": \2', text)


def _written(table: str, row: dict[str, Any]) -> Event:
    category = _CATEGORY.get(table, "user_annotation")
    kind = next((kind for kind, code in COPY_CODES.items() if code == row.get("copyKind")), "")
    copied = f"Memcpy {kind.replace('2', 'to').translate(str.maketrans('hdap', 'HDAP'))} (" if kind else None
    name = row.get("demangledName") or copied or row.get("text") or row.get("nameId") or "Memset ("
    thread = row.get("globalTid") or 0
    written = event(category, name, as_us(row["start"]), as_us(row["end"] - row["start"]))
    written |= {"pid": (thread >> 24) & 0xFFFFFF, "tid": thread & 0xFFFFFF}
    keys = {"correlationId": "correlation", "bytes": "bytes", "deviceId": "device", "streamId": "stream"}
    return written | {"args": {ours: row[key] for key, ours in keys.items() if key in row}}


def overlapped_step() -> list[Event]:
    """One recorded step of 20 chunks of 1 ms on 132 SMs: DeepEP hides under GEMMs, the host barely keeps up.

    Of each chunk 960 us are compute, 375 communication, 15 of it exposed, and 25 nothing. The host launches
    a chunk's work together, 6 us before it begins, and then computes until the next.
    """
    events = [event("user_annotation", "ProfilerStep#5", 90, 20_000)]
    launched = (
        (GEMM, 0, 480, 7, [132, 1, 1]),
        (GEMM, 485, 480, 7, [132, 1, 1]),
        ("void deep_ep::internode::dispatch<false, 4, false>(void*)", 605, 375, 20, [20, 1, 1]),
    )
    for chunk in range(20):
        at = 100 + 1_000 * chunk
        for place, (name, after, dur, stream, grid) in enumerate(launched):
            number = 3 * chunk + place + 1
            events.append(call("cudaLaunchKernel", at - 10 + 5 * place, 4, number))
            events.append(on_gpu("kernel", name, at + after, dur, number, stream=stream, grid=grid))
    return events


DISPATCHES = "megatron/core/transformer/moe/token_dispatcher.py(3): dispatch_preprocess"
"""A function of the program, as the profiler spells it."""


def frame(name: str, ts: int, dur: int) -> Event:
    return event("python_function", name, ts, dur)


def late_host() -> list[Event]:
    """Kernels of 10 us each 100 us: of the 90 between, 60 are the dispatcher's, 5 mm's in the training."""
    events = []
    for place in range(4):
        at = 1_000 + 100 * place
        events += [
            frame("/home/eve/train.py(12): train_step", at, 100),
            frame("torch/nn/modules/module.py(1779): _call_impl", at + 20, 70),
            frame(DISPATCHES, at + 30, 60),
            event("cpu_op", "aten::mm", at + 94, 5),
            call("cudaLaunchKernel", at + 96, 3, place + 1),
            on_gpu("kernel", GEMM, at + 100, 10, place + 1),
        ]
    return events

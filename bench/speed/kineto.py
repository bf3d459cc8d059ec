"""The kernels and calls of the made-up export as the PyTorch profiler would have written them."""

from __future__ import annotations

import gzip
import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

_KERNELS = """
    SELECT value, start, end, streamId, correlationId, gridX, gridY, gridZ, blockX, blockY, blockZ,
           registersPerThread, dynamicSharedMemory
    FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds ON id = demangledName
"""
_CALLS = """
    SELECT substr(value, 1, instr(value || '_v', '_v') - 1), start, end, globalTid % 1000, correlationId
    FROM CUPTI_ACTIVITY_KIND_RUNTIME JOIN StringIds ON id = nameId
"""


def write_kineto(export: Path, path: Path) -> None:
    """Write the trace of an export, packed by gzip."""
    header = {"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 1}, "displayTimeUnit": "ms"}
    gpu = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132, "computeMajor": 9, "computeMinor": 0}
    head = json.dumps(header | {"deviceProperties": [gpu]})[:-1]
    with (
        gzip.open(path, "wt", compresslevel=1, encoding="utf-8") as file,
        closing(sqlite3.connect(export)) as db,
    ):
        file.write(head + ', "traceEvents": [\n')
        for number, event in enumerate(_events(db)):
            file.write((",\n" if number else "") + json.dumps(event))
        file.write("\n]}\n")


def _events(db: sqlite3.Connection) -> Iterator[dict[str, object]]:
    for name, start, end, stream, number, *sizes, registers, shared in db.execute(_KERNELS):
        where = {"device": 0, "context": 1, "stream": stream, "correlation": number, "External id": number}
        shape = {"grid": sizes[:3], "block": sizes[3:], "registers per thread": registers}
        args = where | shape | {"shared memory": shared}
        yield {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream} | _times(start, end, args)
    for name, start, end, thread, number in db.execute(_CALLS):
        args = {"correlation": number, "External id": number}
        yield {"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 4711, "tid": thread} | _times(
            start, end, args
        )


def _times(start_ns: int, end_ns: int, args: dict[str, object]) -> dict[str, object]:
    return {"ts": start_ns / 1000, "dur": (end_ns - start_ns) / 1000, "args": args}


if __name__ == "__main__":
    write_kineto(Path(sys.argv[2]), Path(sys.argv[1]))

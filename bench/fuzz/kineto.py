"""Traces of the PyTorch profiler, spoiled as JSON and as text: read in parts as the reference reads them."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final
from unittest.mock import patch

from bench.fuzz.mutations import tree
from bench.fuzz.same import assert_same
from bench.fuzz.target import Target
from bench.fuzz.whole_way import diagnosed
from tests.recordings.kineto import Profiled, one_run, overlapped_step
from traces.formats import kineto_json, kineto_rows
from traces.formats.kineto import read_kineto
from traces.formats.tables import Table
from traces.gpu_work import build
from traces.progress import silent

_KEPT: Final = 3
"""Events of each category and name that are kept of a recording."""
_MOST: Final = 24
_HEADER: Final = {
    "schemaVersion": 1,
    "baseTimeNanoseconds": 1_700_000_000_000_000_000,
    "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132, "computeMajor": 9}],
    "distributedInfo": {"rank": 3, "world_size": 8, "pg_config": [{"pg_name": "3", "ranks": [0, 3]}]},
}
_SPOILED: Final = (
    "NaN",
    "nan",
    "N/A",
    "-Infinity",
    "nan(ind)",
    '"a\x01b"',
    '"a\\xb"',
    "1e999",
    "0x1",
    "-",
    "01",
    "1.",
    ",",
    "",
)


@cache
def seeds() -> tuple[dict[str, Any], ...]:
    """Documents of some two dozen events; without `MOE_DIAG_TRACES` none of them was recorded."""
    profiled = Profiled()
    profiled.run("gemm", "void cutlass::Kernel<x>()", grid=[4, 1, 1], block=[128, 1, 1])
    profiled.collective(
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(x)", "allreduce", "EXPERT_MODEL_PARALLEL_GROUP"
    )
    memory = {"Total Reserved": 1 << 30, "Device Id": 0, "Device Type": 1, "Bytes": 512, "Addr": 7}
    profiled.events.append({"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": 5, "args": memory})
    found = [
        {**_HEADER, "traceEvents": one_run()},
        {"schemaVersion": 1, "traceEvents": overlapped_step()[:_MOST]},
        {**_HEADER, "traceEvents": profiled.events},
        {"traceEvents": [], "schemaVersion": 1},
    ]
    folder = os.environ.get("MOE_DIAG_TRACES")
    for path in sorted(Path(folder).rglob("*.json.gz")) if folder else ():
        document = json.loads(gzip.decompress(path.read_bytes()), strict=False)
        if isinstance(document, dict) and isinstance(document.get("traceEvents"), list):
            found.append(document | {"traceEvents": _few(document["traceEvents"])})
    return tuple(found)


def _few(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Some events of each category, in their order."""
    seen: dict[object, int] = {}
    kept = []
    for event in events:
        kind = event.get("cat", event.get("ph"))
        seen[kind] = seen.get(kind, 0) + 1
        if seen[kind] <= _KEPT:
            kept.append(event)
    return kept[: 2 * _MOST]


def begin(rng: Random) -> Any:
    """A whole document."""
    return rng.choice(seeds())


def spoil(rng: Random, document: Any) -> Any:
    """One place of it changed: mostly among the events."""
    events = document.get("traceEvents") if isinstance(document, dict) else None
    if isinstance(events, list) and rng.random() < 0.85:
        return {**document, "traceEvents": tree(rng, events)}
    return tree(rng, document)


def written(rng: Random, document: Any) -> tuple[str, bytes]:
    """The text as profilers write it, some of them not as JSON, one in six packed."""
    separators = rng.choice(((",", ":"), (", ", ": "), (",\n", ":")))
    text = json.dumps(document, ensure_ascii=rng.random() < 0.5, separators=separators)
    if rng.random() < 0.15:
        at = rng.choice([place for place, one in enumerate(text) if one in ':,[{"'] or [0]) + 1
        end = at + rng.choice((0, 0, 1, 4))
        text = text[:at] + rng.choice(_SPOILED) + text[end:]
    content = text.encode("utf-8", "surrogatepass")
    if rng.random() < 0.05:
        content = b"\xef\xbb\xbf" + content
    if rng.random() < 1 / 6:
        return "run.json.gz", gzip.compress(content, 1, mtime=0)
    return "run.json", content


def check(path: Path, deep: bool) -> None:
    """Read in small parts it is what the standard library makes of the whole, if it is read at all."""
    part_bytes = 64 + zlib.crc32(path.read_bytes()) % 4_000
    with patch.object(kineto_json, "_PART_BYTES", part_bytes):
        told, tables = kineto_json.load(path, silent)
    header = {key: one for key, one in told.items() if key != "traceEvents"}  # a 0 stands for them
    assert_same((header, tables), _whole(path))
    build(read_kineto(path))
    if deep:
        diagnosed(path)


def _whole(path: Path) -> tuple[object, dict[str, Table]]:
    content = path.read_bytes()
    content = gzip.decompress(content) if content.startswith(kineto_json.GZIP_MAGIC) else content
    document: Any = kineto_json.parsed(content.decode("utf-8-sig", "replace"))
    header = document if isinstance(document, dict) else {}
    events = header.pop("traceEvents") if isinstance(document, dict) else document
    parts: dict[str, list[Table]] = {}
    kineto_json._added(parts, kineto_rows.rows_of(events))
    return header, kineto_json._tables(parts)


TARGET: Final = Target("kineto", begin, spoil, written, check)

"""Whole exports in which one thing of the structure is another: names, streams, devices, launches, times.

Every one of them is diagnosed, as a file of some tool or some run might look like that.
"""

from __future__ import annotations

import lzma
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

from bench.fuzz.exports import recorded
from bench.fuzz.target import Target
from bench.fuzz.whole_way import diagnosed
from bench.simulate.export import schema_versions, write_export
from diagnoser.demo import compressed
from tests.doubles.document import DISPATCH, exposed

_KERNELS: Final = "CUPTI_ACTIVITY_KIND_KERNEL"
_ACTIVITY: Final = (_KERNELS, "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET")
_CALLS: Final = "CUPTI_ACTIVITY_KIND_RUNTIME"
_TIMED: Final = (*_ACTIVITY, _CALLS, "NVTX_EVENTS", "OSRT_API")
_OPTIONAL: Final = (
    *(*_ACTIVITY[1:], _CALLS, "NVTX_EVENTS", "OSRT_API"),
    *("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "CUDA_EVENTS", "TARGET_INFO_GPU", "GPU_METRICS"),
    *("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "COMPOSITE_EVENTS", "ThreadNames"),
)
_LARGEST: Final = 600_000
"""Bytes of a recording: hundreds of diagnoses are to be made in minutes."""


@cache
def wholes() -> tuple[bytes, ...]:
    """Whole exports; without `MOE_DIAG_TRACES` none of them was recorded."""
    with TemporaryDirectory() as folder:
        simulated = Path(folder) / "run.sqlite"
        write_export(simulated, exposed(comm=DISPATCH), schema_versions()[-1])
        found = [simulated.read_bytes()]
    found += [lzma.decompress(compressed(name).read_bytes()) for name in ("healthy", "pipeline", "graphs")]
    return (*found, *(path.read_bytes() for path in recorded() if path.stat().st_size <= _LARGEST))


def begin(rng: Random) -> bytes:
    """A whole export."""
    return rng.choice(wholes())


def spoil(rng: Random, content: bytes) -> bytes:
    """One edit of the structure. What a file has no table or column for stays as it is."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.deserialize(content)
        for statement in rng.choice(_EDITS)(rng):
            with suppress(sqlite3.Error):
                db.execute(statement)
        return bytes(db.serialize())


def _names(rng: Random) -> list[str]:
    """Kernels of one name, or of two in blocks or in turn."""
    first = f"(SELECT shortName FROM {_KERNELS} LIMIT 1 OFFSET {rng.randrange(40)})"
    other = f"(SELECT shortName FROM {_KERNELS} LIMIT 1 OFFSET {rng.randrange(400)})"
    half = f"(SELECT (min(start) + max(start)) / 2 FROM {_KERNELS})"
    test = rng.choice(("1", f"start < {half}", "rowid % 2", "rowid % 7 < 3"))
    name = f"CASE WHEN {test} THEN {first} ELSE {other} END"
    return [f"UPDATE {_KERNELS} SET shortName = {name}, demangledName = shortName, mangledName = NULL"]


def _few(rng: Random) -> list[str]:
    """One kernel, two, or some in a row."""
    begin, count = rng.randrange(400), rng.choice((0, 1, 1, 2, 3, 20))
    kept = f"SELECT rowid FROM {_KERNELS} ORDER BY start LIMIT {count} OFFSET {begin}"
    return [f"DELETE FROM {_KERNELS} WHERE rowid NOT IN ({kept})"]


def _without(rng: Random) -> list[str]:
    """No launches, copies, marks or another table."""
    return [f"DELETE FROM {table}" for table in rng.sample(_OPTIONAL, rng.choice((1, 1, 2, 5)))]


def _streams(rng: Random) -> list[str]:
    """One stream, or one for each activity."""
    stream = rng.choice(("7", "rowid", "rowid % 2", "abs(random()) % 5"))
    return [f"UPDATE {table} SET streamId = {stream}" for table in _ACTIVITY]


def _devices(rng: Random) -> list[str]:
    """Two devices or hundreds, some of which no table names."""
    device = f"rowid % {rng.choice((2, 8, 300))}"
    return [f"UPDATE {table} SET deviceId = {device}" for table in _ACTIVITY]


def _processes(rng: Random) -> list[str]:
    """Several processes, by turns or one after the other."""
    process = f"(rowid % {rng.choice((2, 5, 50))} + 1) * 16777216"
    told = [f"UPDATE {table} SET globalPid = {process}" for table in _ACTIVITY]
    called = [f"UPDATE {_CALLS} SET globalTid = {process} + 1"]
    return rng.choice((told, called, told + called))


def _threads(rng: Random) -> list[str]:
    """One launching thread, or one for each call."""
    thread = rng.choice(("0", "rowid % 4096", "rowid % 3"))
    return [f"UPDATE {_CALLS} SET globalTid = globalTid / 16777216 * 16777216 + {thread}"]


def _joins(rng: Random) -> list[str]:
    """Launches and activities that do not find each other, or all the same."""
    number = rng.choice(("1", "rowid", "correlationId + 1", "NULL", "-correlationId"))
    return [f"UPDATE {rng.choice((*_ACTIVITY, _CALLS))} SET correlationId = {number}"]


def _times(rng: Random) -> list[str]:
    """All at once, of no length, backwards, far apart, or with one that holds all others."""
    last = f"(SELECT max(end) FROM {_KERNELS})"
    change = rng.choice(
        (
            "end = start",
            "start = 5, end = 5",
            f"start = {last} - end, end = {last} - start",
            "start = start * 1000, end = end * 1000",
            "end = end + 50000000",
            "start = start / 1000, end = end / 1000",
            "start = start - 200000000000, end = end - 200000000000",
        )
    )
    tables = rng.choice((_TIMED, _ACTIVITY, (_CALLS,), (_KERNELS,)))
    one = f" WHERE rowid = (SELECT min(rowid) FROM {_KERNELS})" if rng.random() < 0.3 else ""
    return [f"UPDATE {table} SET {change}{one}" for table in tables]


def _repeated(rng: Random) -> list[str]:
    """The same work again, at once or later, or half of it gone."""
    table = rng.choice(_TIMED)
    edit = rng.choice((f"INSERT INTO {table} SELECT * FROM {table}", f"DELETE FROM {table} WHERE rowid % 2"))
    return [edit, f"UPDATE {table} SET start = start + 7, end = end + 7 WHERE rowid % 2"]


_EDITS: Final[tuple[Callable[[Random], list[str]], ...]] = (
    *(_names, _few, _without, _streams, _devices),
    *(_processes, _threads, _joins, _times, _repeated),
)


def written(rng: Random, content: bytes) -> tuple[str, bytes]:
    """The file."""
    return "run.sqlite", content


def check(path: Path, deep: bool) -> None:
    """It is diagnosed, to a report."""
    diagnosed(path)


TARGET: Final = Target("structures", begin, spoil, written, check)

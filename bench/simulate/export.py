"""Recording -> nsys SQLite export, faithful to one of thirteen schema versions from 2020.3 to 3.28.1.

`export_schemas.json` holds what differs: per version the product, the name of its metadata table and its
tables, each with where its columns come from ("real file"; "as in 3.17.1" where no file of that version had
the table; "from documentation") and either the columns as declared, or the version they are the `same_as`.
REFERENCES clauses are left out. The values written are the recording's, and harmless inventions elsewhere.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from bench.simulate.recording import COPY_CODES, Recording, Row

_GRAPHS: Final = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
_GPU_TABLES: Final = (
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",
    _GRAPHS,
)
_CUDA_TABLES: Final = (*_GPU_TABLES, "CUPTI_ACTIVITY_KIND_RUNTIME")
_NULL_STREAM: Final = 7
SESSION_START_NS: Final = 1_700_000_000_000_000_000  # since 1970; one fixed moment, so that files repeat
_SESSION_START_TEXT: Final = "2023-11-14T22:13:20"
_BOOT_TO_SESSION_NS: Final = 10_000_000_000_000

_Rows = dict[str, list[Row]]


@dataclass(frozen=True, slots=True)
class _Schema:
    version: str
    product: str
    metadata_table: str | None
    tables: Mapping[str, tuple[tuple[str, str], ...]]
    """Table -> its columns in order, each a name and a declared type."""


def schema_versions() -> tuple[str, ...]:
    """Schema versions that can be written, oldest first; "none" is 2020.3, which had no number."""
    return tuple(_schemas())


def schema_tables(version: str) -> frozenset[str]:
    """Tables a schema version has. Raises ValueError for one we do not know."""
    return frozenset(_schema(version).tables)


def write_export(
    path: Path,
    recording: Recording,
    schema: str = "3.25.0",
    *,
    lazy: bool = True,
    enum_rows: bool = True,
    shuffle_seed: int | None = None,
    capture_options: Mapping[str, str] | None = None,
    session_start_ns: int = SESSION_START_NS,
) -> None:
    """Write a recording as an SQLite export that appears under its name only when whole.

    `lazy` leaves out tables without rows, as nsys does by default; ENUM tables are always there, and filled
    where `enum_rows` and the recording has CUDA rows. `shuffle_seed` shuffles the rows of every table, whose
    order nsys does not promise. `capture_options` go into META_DATA_CAPTURE. `session_start_ns` since 1970 is
    where the recording's clock is zero.

    Raises FileExistsError where `path` exists, and ValueError for a schema we do not know or one without a
    table the recording needs. Graph-level rows are dropped under 3.0.0, as nsys 2022.4 drops them.
    """
    if path.exists():
        raise FileExistsError(f"{path} exists")
    known = _schema(schema)
    rows = (
        _recorded(recording, known)
        | _derived(recording, known, session_start_ns)
        | _metadata(known, path.name, lazy)
    )
    if "META_DATA_CAPTURE" in known.tables:
        options = {"COLLECT_GPU_MEMORY_USAGE": "false", **(capture_options or {})}
        rows["META_DATA_CAPTURE"] = [{"name": key, "value": value} for key, value in options.items()]
    elif capture_options:
        raise ValueError(f"schema {schema} has no table META_DATA_CAPTURE for capture options")
    if enum_rows and any(rows.get(table) for table in _CUDA_TABLES):
        rows |= {table: list(_ENUMS[table]) for table in known.tables if table in _ENUMS}
    complete = _completed(rows, known)
    if shuffle_seed is not None:
        shuffler = random.Random(shuffle_seed)
        for table_rows in complete.values():
            shuffler.shuffle(table_rows)
    kept = [table for table in known.tables if complete[table] or not lazy or table.startswith("ENUM_")]
    _write(path, known, {table: complete[table] for table in kept})


def _write(path: Path, schema: _Schema, rows: _Rows) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with closing(sqlite3.connect(partial)) as connection:
            _fill(connection, schema, rows)
        partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)


def _fill(connection: sqlite3.Connection, schema: _Schema, rows: _Rows) -> None:
    connection.execute("PRAGMA page_size = 4096")  # before the first table, or it has no effect
    connection.execute("PRAGMA synchronous = OFF")  # a simulation need not survive a power cut
    for table in rows:
        declared = ", ".join(f"{name} {kind}" for name, kind in schema.tables[table])
        connection.execute(f"CREATE TABLE {table} ({declared})")
    for table, table_rows in rows.items():
        places = ", ".join("?" * len(schema.tables[table]))
        connection.executemany(
            f"INSERT INTO {table} VALUES ({places})", (tuple(row.values()) for row in table_rows)
        )
    connection.commit()


@cache
def _schemas() -> dict[str, _Schema]:
    stored = json.loads(files("bench.simulate").joinpath("export_schemas.json").read_text(encoding="utf-8"))
    schemas = {}
    for version, entry in stored.items():
        tables = {}
        for table, about in entry["tables"].items():
            declared = about.get("columns") or stored[about["same_as"]]["tables"][table]["columns"]
            pairs = (column.partition(" ") for column in declared.split(", "))
            tables[table] = tuple((name, kind) for name, _, kind in pairs)
        schemas[version] = _Schema(version, entry["product"], entry["metadata_table"], tables)
    return schemas


def _schema(version: str) -> _Schema:
    if version not in _schemas():
        raise ValueError(f"no schema {version!r}; there are {', '.join(schema_versions())}")
    return _schemas()[version]


def _recorded(recording: Recording, schema: _Schema) -> _Rows:
    rows = {table: list(table_rows) for table, table_rows in recording.rows.items() if table_rows}
    if schema.version == "3.0.0":
        rows.pop(_GRAPHS, None)
    for table in rows:
        if table not in schema.tables:
            having = ", ".join(version for version, other in _schemas().items() if table in other.tables)
            raise ValueError(f"schema {schema.version} has no table {table}; these have it: {having}")
    return rows


def _derived(recording: Recording, schema: _Schema, session_start_ns: int) -> _Rows:
    """What follows from the events, of the tables the schema has."""
    derived = _session(recording, schema, session_start_ns) | _machine(recording) | _streams(recording)
    return {table: rows for table, rows in derived.items() if table in schema.tables}


def _completed(rows: _Rows, schema: _Schema) -> _Rows:
    """Every table with every declared column, and StringIds with the texts met on the way."""
    strings: dict[str, int] = {}
    complete: _Rows = {
        table: [_row(row, place, columns, strings) for place, row in enumerate(rows.get(table, ()), start=1)]
        for table, columns in schema.tables.items()
    }
    complete["StringIds"] = [{"id": number, "value": text} for text, number in strings.items()]
    return complete


def _row(row: Row, place: int, columns: Sequence[tuple[str, str]], strings: dict[str, int]) -> Row:
    whole: Row = {}
    for name, kind in columns:
        value = row.get(name)
        if isinstance(value, str) and kind.startswith("INTEGER"):
            value = strings.setdefault(value, len(strings))
        if value is None and "PRIMARY KEY" in kind:
            value = place
        if value is None and "NOT NULL" in kind:
            value = "" if kind.startswith("TEXT") else 0
        whole[name] = value
    return whole


def _integers(rows: Sequence[Row], column: str) -> list[int]:
    return [value for row in rows if isinstance(value := row.get(column), int)]


def _session(recording: Recording, schema: _Schema, session_start_ns: int) -> _Rows:
    events = [row for table_rows in recording.rows.values() for row in table_rows]
    first = min(_integers(events, "start"), default=0)
    last = max((*_integers(events, "end"), *_integers(events, "start")), default=0)
    # From 3.24 on the session's start and stop count from boot instead of from the session's zero.
    from_boot = any(
        name == "systemClockNs" for name, _ in schema.tables.get("TARGET_INFO_SESSION_START_TIME", ())
    )
    boot_ns = _BOOT_TO_SESSION_NS + session_start_ns - SESSION_START_NS
    start, stop = (boot_ns, boot_ns + last) if from_boot else (first, last)
    started = datetime.fromtimestamp(session_start_ns // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    vm = recording.global_id(0)
    environment = (("CpuCores", 1, "64"), ("CpuArchitecture", 3, "x86_64"))
    return {
        "TARGET_INFO_SESSION_START_TIME": [
            {
                "utcEpochNs": session_start_ns,
                "utcTime": started,
                "localTime": started,
                "systemClockNs": boot_ns,
            }
        ],
        "ANALYSIS_DETAILS": [
            {"globalVid": vm, "duration": stop - start, "startTime": start, "stopTime": stop}
        ],
        "TARGET_INFO_SYSTEM_ENV": [
            {"globalVid": vm, "devStateName": "Local (CLI)", "name": name, "nameEnum": number, "value": value}
            for name, number, value in environment
        ],
        "PROCESSES": [
            {"globalPid": recording.global_id(pid), "pid": pid, "name": "python"}
            for pid in _processes(recording)
        ],
        "ThreadNames": [
            {"nameId": "python", "priority": 20, "globalTid": thread} for thread in _threads(recording)
        ],
    }


def _threads(recording: Recording) -> list[int]:
    return sorted({tid for rows in recording.rows.values() for tid in _integers(rows, "globalTid")})


def _processes(recording: Recording) -> list[int]:
    on_gpu = {gid for rows in recording.rows.values() for gid in _integers(rows, "globalPid")}
    return sorted({gid >> 24 & 0xFFFFFF for gid in (*on_gpu, *_threads(recording))})


def _gpu_places(recording: Recording) -> list[tuple[int, int, int]]:
    """(process id, CUDA device, stream) of all GPU work."""
    rows = [row for table in _GPU_TABLES for row in recording.rows.get(table, ())]
    columns = (_integers(rows, column) for column in ("globalPid", "deviceId", "streamId"))
    return sorted(
        {(gid >> 24 & 0xFFFFFF, device, stream) for gid, device, stream in zip(*columns, strict=True)}
    )


def _machine(recording: Recording) -> _Rows:
    """The GPUs listed, and which process used which under which CUDA ordinal."""
    used = dict.fromkeys((pid, device) for pid, device, _ in _gpu_places(recording))
    listed = [_gpu(recording, gpu_id) for gpu_id in range(len(recording.gpus))]
    by_process: list[Row] = []
    for gpu_id, gpu in enumerate(recording.gpus):
        by_place = {pid: device for pid, device in used if device == gpu_id}
        ordinals = by_place if gpu.used_by is None else gpu.used_by
        own: list[Row] = [
            {"pid": pid, "cudaId": device, "deviceId": device} for pid, device in ordinals.items()
        ]
        by_process += [listed[gpu_id] | row for row in own]
    return {
        "TARGET_INFO_GPU": listed,
        "TARGET_INFO_CUDA_DEVICE": by_process,
        "TARGET_INFO_CUDA_GPU": by_process,
    }


def _gpu(recording: Recording, gpu_id: int) -> Row:
    """One GPU under the column names of TARGET_INFO_GPU and, for 2020.3, of TARGET_INFO_CUDA_GPU."""
    gpu = recording.gpus[gpu_id]
    major, minor = gpu.capability
    by_value = (
        (gpu_id, ("id", "gpuId", "cuDevice", "pwGpuId")),
        (f"0000:{gpu_id + 1:02x}:00.0", ("busLocation", "pciBusId")),
        (gpu.sm_count, ("smCount", "numMultiprocessors")),
        (gpu.memory_bytes, ("totalMemory", "globalMemorySize")),
        (major, ("computeMajor", "smMajor", "computeCapabilityMajor")),
        (minor, ("computeMinor", "smMinor", "computeCapabilityMinor")),
        (32, ("threadsPerWarp", "numThreadsPerWarp")),
    )
    row: Row = {column: value for value, columns in by_value for column in columns}
    return row | {"vmId": recording.global_id(0), "name": gpu.name, "isDiscrete": 1}


def _streams(recording: Recording) -> _Rows:
    places = _gpu_places(recording)
    machine: Row = {"hwId": recording.hardware_id, "vmId": recording.vm_id}
    contexts: list[Row] = [
        {
            **machine,
            "nullStreamId": _NULL_STREAM,
            "streamId": _NULL_STREAM,
            "processId": pid,
            "deviceId": device,
            "contextId": device + 1,
        }
        for pid, device in dict.fromkeys((pid, device) for pid, device, _ in places)
    ]
    streams: list[Row] = [
        {
            **machine,
            "streamId": stream,
            "processId": pid,
            "contextId": device + 1,
            "flag": 3 if stream == _NULL_STREAM else 2,
        }
        for pid, device, stream in places
    ]
    return {
        "TARGET_INFO_CUDA_CONTEXT_INFO": contexts,
        "TARGET_INFO_CUDA_NULL_STREAM": contexts,
        "TARGET_INFO_CUDA_STREAM": streams,
    }


def _metadata(schema: _Schema, name: str, lazy: bool) -> _Rows:
    if schema.metadata_table is None:
        return {}
    major, minor, micro = schema.version.split(".")
    about = {
        "EXPORT_PRODUCT_NAME": "NVIDIA Nsight Systems",
        "EXPORT_PRODUCT_VERSION": schema.product,
        "EXPORT_PRODUCT_DATE": ".".join(schema.product.split(".")[:2]),
        "EXPORT_SCHEMA_VERSION": schema.version,
        "EXPORT_SCHEMA_VERSION_MAJOR": major,
        "EXPORT_SCHEMA_VERSION_MINOR": minor,
        "EXPORT_SCHEMA_VERSION_MICRO": micro,
        "EXPORT_PLATFORM": "linux-desktop",
        "EXPORT_ARCH": "x64",
        "EXPORT_TIME_UTC": _SESSION_START_TEXT,
        "EXPORT_HOST": "simulated",
        "EXPORT_USER": "simulated",
    }
    lazily = str(lazy).lower()
    if "META_DATA_CAPTURE" in schema.tables:
        about |= {
            "EXPORT_PARAM_INPUT_FILE": "simulated.nsys-rep",
            "EXPORT_PARAM_OUTPUT_FILE": name,
            "EXPORT_PARAM_LAZY": lazily,
            "EXPORT_PARAM_TIME_NORMALIZE": "false",
            "EXPORT_PARAM_TIME_SHIFT": "0",
            "EXPORT_PARAM_TABLES_TO_EXPORT": "",
            "EXPORT_PARAM_TIMES_TO_EXPORT": "",
        }
    else:  # the spelling is nsys's own
        about |= {
            "EXPORT_INPUT_FILE": "simulated.nsys-rep",
            "EXPORT_OUTUPT_FILE": name,
            "EXPORT_LAZY": lazily,
        }
    return {schema.metadata_table: [{"name": key, "value": value} for key, value in about.items()]}


def _enum(prefix: str, names: Sequence[str]) -> tuple[Row, ...]:
    return tuple(
        {"id": number, "name": f"{prefix}_{name.upper()}", "label": name.replace("_", " ").capitalize()}
        for number, name in enumerate(names)
    )


_LAUNCH_TYPES: Final = _enum(
    "CUDA_KERNEL_LAUNCH_TYPE", ("unknown", "regular", "cooperative_single_device", "cooperative_multi_device")
)
_ENUMS: Final[Mapping[str, tuple[Row, ...]]] = {
    "ENUM_CUDA_MEMCPY_OPER": _enum("CUDA_MEMCPY_KIND", [kind.replace("2", "to") for kind in COPY_CODES]),
    "ENUM_CUDA_MEM_KIND": _enum(
        "CUDA_MEMOPR_MEMORY_KIND",
        ("pageable", "pinned", "device", "array", "managed", "device_static", "managed_static", "unknown"),
    ),
    "ENUM_CUDA_KRENEL_LAUNCH_TYPE": _LAUNCH_TYPES,  # the spelling is nsys's own, up to 3.1.2
    "ENUM_CUDA_KERNEL_LAUNCH_TYPE": _LAUNCH_TYPES,
    "ENUM_CUPTI_SYNC_TYPE": _enum(
        "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE",
        ("unknown", "event_synchronize", "stream_wait_event", "stream_synchronize", "context_synchronize"),
    ),
}
"""Symbol names are nsys's; labels are only like nsys's."""

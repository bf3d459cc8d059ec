"""nsys SQLite export -> Columns: every table and column by name, of any schema from 2020.3 on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from traces.columns import (
    COPY_KINDS,
    NULL,
    PROCESS_BITS,
    Calls,
    Columns,
    Copies,
    Gpu,
    GpuRows,
    IntArray,
    Kernels,
    Ranges,
    TraceInfo,
    distinct,
    end_to_end,
)
from traces.errors import DamagedTrace
from traces.formats import known_texts, nsys_info
from traces.formats import nsys_schema as schema
from traces.formats.tables import TableColumns, Tables, empty_columns

_GPU_REQUIRED = ("start", "end", "deviceId", "streamId")
_GPU_OPTIONAL = ("correlationId", "globalPid")


def read_export(tables: Tables, path: Path, kind: str = "nsys-sqlite") -> Columns:
    """Read an export into columns.

    Raises `NotATrace` for a database that is no export, `DamagedTrace` for a failed or damaged one.
    """
    nsys_info.check_is_export(tables, str(path))
    listed = nsys_info.gpus(tables)
    kernels, kernel_names = _kernels(tables, path)
    calls, call_names = _calls(tables, path)
    ranges, range_texts = _ranges(tables, path)
    return Columns(
        info=_info(tables, path, kind, listed),
        kernels=kernels,
        copies=_copies(tables, path),
        replays=_gpu_rows(_read(tables, path, schema.GRAPHS, _GPU_REQUIRED, _GPU_OPTIONAL)),
        calls=calls,
        ranges=ranges,
        kernel_names=kernel_names,
        call_names=call_names,
        range_texts=range_texts,
        gpu_of=nsys_info.gpu_of(tables, listed),
        rank_of=nsys_info.mpi_ranks(tables),
    )


def _info(tables: Tables, path: Path, kind: str, gpus: tuple[Gpu, ...]) -> TraceInfo:
    export = nsys_info.metadata(tables)
    return TraceInfo(
        name=path.name,
        kind=kind,
        exporter_version=known_texts.version(export.get("EXPORT_PRODUCT_VERSION")),
        schema=known_texts.version(export.get("EXPORT_SCHEMA_VERSION")),
        reader=tables.reader,
        gpus=gpus,
        missing_tables=tuple(name for name in schema.USED_TABLES if not tables.columns_of(name)),
        diagnostics=nsys_info.diagnostics(tables),
    )


def _kernels(tables: Tables, path: Path) -> tuple[Kernels, tuple[str, ...]]:
    optional = (*_GPU_OPTIONAL, "graphNodeId", *schema.NAME_COLUMNS)
    table = _read(tables, path, schema.KERNELS, _GPU_REQUIRED, optional)
    column = table.integers
    name_id, names = _named(tables, [column[name] for name in schema.NAME_COLUMNS])
    return Kernels(_gpu_rows(table), name_id, column["graphNodeId"]), names


def _copies(tables: Tables, path: Path) -> Copies:
    optional = (*_GPU_OPTIONAL, "bytes", "copyKind", "srcDeviceId", "dstDeviceId")
    memcpy = _read(tables, path, schema.MEMCPY, _GPU_REQUIRED, optional)
    memset = _read(tables, path, schema.MEMSET, _GPU_REQUIRED, (*_GPU_OPTIONAL, "bytes"))
    place = {kind: index for index, kind in enumerate(COPY_KINDS)}
    kind = np.full(len(memcpy.integers["copyKind"]), place["memcpy_unknown"], dtype=np.int64)
    for code, name in schema.COPY_KIND.items():
        kind[memcpy.integers["copyKind"] == code] = place[name]
    source, target = memcpy.integers["srcDeviceId"], memcpy.integers["dstDeviceId"]
    between_gpus = (source != NULL) & (target != NULL) & (source != target)
    kind[between_gpus & (kind == place["memcpy_d2d"])] = place["memcpy_p2p"]
    kind = np.concatenate((kind, np.full(len(memset.integers["start"]), place["memset"], dtype=np.int64)))
    sizes = np.concatenate((memcpy.integers["bytes"], memset.integers["bytes"]))
    return Copies(end_to_end(_gpu_rows(memcpy), _gpu_rows(memset)), kind, sizes)


def _calls(tables: Tables, path: Path) -> tuple[Calls, tuple[str, ...]]:
    table = _read(tables, path, schema.CALLS, ("start", "end"), ("globalTid", "correlationId", "nameId"))
    column = table.integers
    name_id, names = _named(tables, [column["nameId"]])
    calls = Calls(column["start"], column["end"], column["globalTid"], column["correlationId"], name_id)
    return calls, names


def _ranges(tables: Tables, path: Path) -> tuple[Ranges, tuple[str, ...]]:
    """Closed ranges; their text stands in the row or, registered, in StringIds."""
    optional = ("eventType", "globalTid", "textId")
    table = _read(tables, path, schema.NVTX, ("start", "end"), optional, texts=("text",))
    column, text = table.integers, table.texts["text"]
    keep = (
        np.isin(column["eventType"], schema.RANGE_TYPES) & (column["end"] != NULL) & (column["start"] != NULL)
    )
    registered, names = _named(tables, [np.where(keep & (text.codes < 0), column["textId"], NULL)])
    code = np.where(text.codes >= 0, text.codes, np.where(registered >= 0, registered + len(text.values), -1))
    ranges = Ranges(column["start"][keep], column["end"][keep], column["globalTid"][keep], code[keep])
    return ranges, (*text.values, *names)


def _named(tables: Tables, ids: Sequence[IntArray]) -> tuple[IntArray, tuple[str, ...]]:
    """Of each row the first id that StringIds knows, as an index into the names used; -1 where none."""
    found = tables.strings(distinct(np.concatenate(ids)))
    known = np.array(sorted(found), dtype=np.int64)
    chosen = np.full(len(ids[0]), -1, dtype=np.int64)
    for column in reversed(ids):
        if len(known):
            at = np.minimum(np.searchsorted(known, column), len(known) - 1)
            chosen = np.where(known[at] == column, at, chosen)
    used, code = np.unique(chosen[chosen >= 0], return_inverse=True)
    chosen[chosen >= 0] = code
    return chosen, tuple(found[int(known[index])] for index in used)


def _gpu_rows(table: TableColumns) -> GpuRows:
    column = table.integers
    process = np.where(column["globalPid"] == NULL, NULL, column["globalPid"] & PROCESS_BITS)
    return GpuRows(
        column["start"],
        column["end"],
        column["deviceId"],
        column["streamId"],
        column["correlationId"],
        process,
    )


def _read(
    tables: Tables,
    path: Path,
    name: str,
    required: Sequence[str],
    optional: Sequence[str],
    texts: Sequence[str] = (),
) -> TableColumns:
    """A table's columns: absent optional ones are all NULL, an absent table has no rows."""
    here = tables.columns_of(name)
    if not here:
        return empty_columns((*required, *optional), texts)
    if absent := [column for column in required if column not in here]:
        raise DamagedTrace(
            f"{path} has no column {absent[0]} in {name}, which every export has. Export the report again."
        )
    present = [*required, *(column for column in optional if column in here)]
    table = tables.read(name, present, [column for column in texts if column in here])
    row_count = len(table.integers[required[0]])
    integers: Mapping[str, IntArray] = {
        column: table.integers.get(column, np.full(row_count, NULL, dtype=np.int64))
        for column in (*required, *optional)
    }
    no_text = empty_columns((), texts).texts
    missing_texts = {
        column: type(text)(np.full(row_count, -1, dtype=np.int64), ()) for column, text in no_text.items()
    }
    return TableColumns(integers, {**missing_texts, **table.texts})

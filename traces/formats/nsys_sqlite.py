"""nsys SQLite export -> Columns: every table and column by name, of any schema from 2020.3 on."""

from itertools import filterfalse

import numpy as np

from traces.arrays import PLACE, codes_of
from traces.columns import (
    COPY_KINDS,
    NULL,
    Calls,
    Columns,
    Copies,
    Gpu,
    GpuRows,
    Kernels,
    Ranges,
    TraceInfo,
)
from traces.formats import known_texts, nsys_columns, nsys_info
from traces.formats import nsys_schema as schema
from traces.formats.nccl_payloads import read_nccl_calls
from traces.formats.nsys_columns import named, process_ids, read_memory_use, read_present, timed
from traces.formats.nsys_metrics import read_gpu_samples
from traces.formats.nsys_stacks import read_frames
from traces.formats.sqlite_tables import SqliteTables
from traces.formats.tables import Table, copies_of, left_out
from traces.launches import distinct_shapes
from traces.names.file_names import told_path
from traces.texts import Texts

_GPU_REQUIRED = ("start", "end", "deviceId", "streamId")
_GPU_OPTIONAL = ("correlationId", "globalPid")
_LAUNCH_SHAPE = (
    "gridX",
    "gridY",
    "gridZ",
    "blockX",
    "blockY",
    "blockZ",
    "registersPerThread",
    "staticSharedMemory",
    "dynamicSharedMemory",
)


def read_export(tables: SqliteTables, kind: str = "nsys-sqlite") -> Columns:
    """Read an export into columns.

    Raises `NotATrace` for a database that is no export, `DamagedTrace` for a failed or damaged one.
    """
    nsys_info.check_is_export(tables, str(tables.path))
    listed = nsys_info.gpus(tables)
    kernels, kernel_names = _kernels(tables)
    calls, call_names, untimed = _calls(tables)
    ranges, range_texts = _ranges(tables)
    return Columns(
        kernels=kernels,
        copies=_copies(tables),
        replays=_gpu_rows(read_present(tables, schema.GRAPHS, _GPU_REQUIRED, _GPU_OPTIONAL)),
        calls=calls,
        ranges=ranges,
        events=nsys_columns.event_records(tables),
        syncs=nsys_columns.synchronisations(tables),
        os_calls=nsys_columns.host_spans(tables, schema.OS_CALLS),
        overheads=nsys_columns.host_spans(tables, schema.OVERHEADS),
        thread_names=nsys_columns.thread_names(tables),
        kernel_names=kernel_names,
        call_names=call_names,
        range_texts=range_texts,
        gpu_of=nsys_info.gpu_of(tables, listed),
        rank_of=nsys_info.mpi_ranks(tables),
        session_start_ns=nsys_info.session_start_ns(tables),
        gpu_samples=read_gpu_samples(tables),
        nccl_calls=read_nccl_calls(tables),
        memory=read_memory_use(tables),
        frames=read_frames(tables),
        info=_info(tables, kind, listed, untimed),  # last: it names the readers that ran
    )


def _info(tables: SqliteTables, kind: str, gpus: tuple[Gpu, ...], untimed: int) -> TraceInfo:
    export = nsys_info.metadata(tables)
    return TraceInfo(
        name=told_path(tables.path),
        kind=kind,
        exporter_version=known_texts.version(export.get("EXPORT_PRODUCT_VERSION")),
        schema=known_texts.version(export.get("EXPORT_SCHEMA_VERSION")),
        reader=tables.reader,
        gpus=gpus,
        missing_tables=tuple(filterfalse(tables.columns_of, schema.USED_TABLES)),
        diagnostics=(
            *nsys_info.diagnostics(tables),
            *left_out("host rows without times", untimed),
        ),
        own_names=nsys_info.own_names(tables),
    )


def _kernels(tables: SqliteTables) -> tuple[Kernels, Texts]:
    optional = (*_GPU_OPTIONAL, "graphNodeId", *_LAUNCH_SHAPE, *schema.NAME_COLUMNS)
    column = read_present(tables, schema.KERNELS, _GPU_REQUIRED, optional)
    name_id, names = named(tables, column.columns(schema.NAME_COLUMNS))
    launch = column.columns(_LAUNCH_SHAPE)
    shape, shapes = distinct_shapes(launch[:3], launch[3:6], *launch[6:])
    in_graph = column["graphNodeId"] != NULL
    return Kernels(_gpu_rows(column), name_id, in_graph, shape, shapes), names


def _copies(tables: SqliteTables) -> Copies:
    ends = ("srcKind", "dstKind", "srcDeviceId", "dstDeviceId")
    optional = (*_GPU_OPTIONAL, "bytes", "copyKind", *ends)
    memcpy = read_present(tables, schema.MEMCPY, _GPU_REQUIRED, optional)
    memset = read_present(tables, schema.MEMSET, _GPU_REQUIRED, (*_GPU_OPTIONAL, "bytes"))
    place = codes_of(COPY_KINDS)
    kind = np.full(len(memcpy), place["memcpy_unknown"])
    for code, name in schema.COPY_KIND.items():
        kind[memcpy["copyKind"] == code] = place[name]
    source, target = memcpy["srcDeviceId"], memcpy["dstDeviceId"]
    between_gpus = (source != NULL) & (target != NULL) & (source != target)
    kind[between_gpus & (kind == place["memcpy_d2d"])] = place["memcpy_p2p"]
    memory = np.where(kind == place["memcpy_d2h"], memcpy["dstKind"], memcpy["srcKind"])
    return copies_of(memcpy, memset, _gpu_rows, kind, memory)


def _calls(tables: SqliteTables) -> tuple[Calls, Texts, int]:
    optional = ("globalTid", "correlationId", "nameId")
    table = read_present(tables, schema.CALLS, ("start", "end"), optional)
    column = timed(table)
    name_id, names = named(tables, [column["nameId"]])
    calls = Calls(
        column["start"], column["end"], column["globalTid"], column["correlationId"], name_id
    )
    return calls, names, len(table) - len(calls)


def _ranges(tables: SqliteTables) -> tuple[Ranges, Texts]:
    """Closed ranges; their text stands in the row or, registered, in StringIds."""
    optional = ("eventType", "globalTid", "textId")
    closed = {"eventType": schema.RANGE_TYPES, "end": None}
    ranges, texts = list[Ranges](), list[str]()
    for table in schema.RANGES:
        column = read_present(tables, table, ("start", "end"), optional, ("text",), closed)
        column = timed(column.only(np.isin(column["eventType"], (NULL, *schema.RANGE_TYPES))))
        text, so_far = column.texts["text"], len(texts)
        texts += text.values
        registered, names = named(tables, [np.where(text.codes < 0, column["textId"], NULL)])
        code = np.where(registered < 0, -1, registered + len(texts))
        code = np.where(text.codes < 0, code, text.codes + so_far).astype(PLACE)
        start, end, thread = column.columns(("start", "end", "globalTid"))
        ranges.append(Ranges(start, end, thread, code))
        texts += names
    return Ranges.joined(*ranges), (*texts,)


def _gpu_rows(column: Table) -> GpuRows:
    names = (*_GPU_REQUIRED, *_GPU_OPTIONAL)
    start, end, device, stream, correlation, process = column.columns(names)
    return GpuRows(start, end, device, stream, correlation, process_ids(process))

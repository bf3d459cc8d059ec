"""What an export says about itself and its machine: versions, GPUs, diagnostics, ranks."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

import numpy as np

from traces.arrays import summed
from traces.columns import NULL, Columns, Gpu, SmLimits, process_of
from traces.errors import DamagedTrace, NotATrace
from traces.formats import known_texts
from traces.formats import nsys_schema as schema
from traces.formats.sqlite_tables import SqliteTables
from traces.groups import passing
from traces.limits import Limit
from traces.names.file_names import own_words
from traces.patterns import compiled
from traces.recording.traps import Trap
from traces.texts import Texts

_GPU: Final = (
    "id",
    "cuDevice",
    "name",
    "smCount",
    "computeMajor",
    "computeMinor",
    "totalMemory",
    "maxWarpsPerSm",
    "maxBlocksPerSm",
    "maxRegistersPerSm",
    "maxShmemPerSm",
)
_GPU_2020: Final = (
    "deviceId",
    "deviceId",
    "name",
    "numMultiprocessors",
    "computeCapabilityMajor",
    "computeCapabilityMinor",
    "globalMemorySize",
    "maxWarpsPerMultiprocessor",
    "maxBlocksPerMultiprocessor",
    "maxRegistersPerMultiprocessor",
    "maxSharedMemoryPerMultiprocessor",
)


ENVIRONMENT: Final = Limit(
    1_000_000, "characters", "ours: more than a kernel takes for a new process"
)
_USER: Final = compiled(r"(?:^|[\s;,])(?:USER|LOGNAME|HOSTNAME)=([A-Za-z0-9._-]{1,64})")


def check_is_export(tables: SqliteTables, path: str) -> None:
    """Raise where the database is no export (`NotATrace`) or a failed one (`DamagedTrace`).

    An export has a metadata table, or, before 2021, CUDA activity; nsys older than its report can
    leave a database with strings and processes only.
    """
    telling = (
        *schema.EXPORT_TABLES,
        schema.KERNELS,
        schema.MEMCPY,
        schema.MEMSET,
        schema.GRAPHS,
        schema.CALLS,
        schema.NVTX,
    )
    if any(map(tables.columns_of, telling)):
        return
    if tables.columns_of(schema.STRINGS):
        raise DamagedTrace(
            f"{path} holds strings but neither metadata nor events: its export failed half way. "
            "Export the report again with an nsys at least as new as the one that recorded it."
        )
    raise NotATrace(
        f"{path} is an SQLite database, but no nsys export. Export the report: "
        "nsys export --type sqlite --output run.sqlite run.nsys-rep"
    )


def metadata(tables: SqliteTables) -> Mapping[str, object]:
    """Export metadata under either name of its table; empty for exports without (2020.3)."""
    for name in schema.EXPORT_TABLES:
        if tables.columns_of(name) >= {"name", "value"}:
            return {str(key): value for key, value in tables.rows(name, ("name", "value"))}
    return {}


def diagnostics(tables: SqliteTables) -> Texts:
    """Known diagnostics nsys stored, each once, in our words."""
    texts = chain.from_iterable(tables.typed(schema.DIAGNOSTICS, {"text": str}))
    return tuple(dict.fromkeys(filter(None, map(known_texts.diagnostic, texts))))


def gpus(tables: SqliteTables) -> tuple[Gpu, ...]:
    """Every GPU of the machine the export lists, used or not."""
    if tables.columns_of(schema.GPUS):
        return tuple(map(_gpu, _present(tables, schema.GPUS, _GPU)))
    return tuple(dict.fromkeys(map(_gpu, _present(tables, schema.GPUS_2020, _GPU_2020))))


def gpu_of(tables: SqliteTables, listed: tuple[Gpu, ...]) -> dict[tuple[int, int], int]:
    """(process id, CUDA device) -> place in `listed`, where the export has the map (from
    3.20.3).
    """
    place = {gpu.gpu_id: index for index, gpu in enumerate(listed)}
    rows = tables.typed(schema.CUDA_DEVICES, {"pid": int, "cudaId": int, "gpuId": int})
    return {(pid, device): place[gpu_id] for pid, device, gpu_id in rows if gpu_id in place}


def own_names(tables: SqliteTables) -> Texts:
    """The machine's name, whole and without its domain, and the user's: for what is not to be
    told.
    """
    hosts, users = [], []
    for name, value in tables.typed(schema.SYSTEM, {"name": str, "value": str}):
        users += _USER.findall(value[: ENVIRONMENT.whole])
        if name == schema.HOST_NAME:
            hosts.append(value)
    return own_words([*hosts, *users])


def mpi_ranks(tables: SqliteTables) -> dict[int, int]:
    """Process id -> MPI rank, where MPI was traced."""
    rows = tables.typed(schema.MPI_RANKS, {"globalTid": int, "rank": int})
    return {process_of(thread): rank for thread, rank in rows}


def session_start_ns(tables: SqliteTables) -> int | None:
    """UNIX time of the trace's zero, where the export tells it."""
    return next(chain.from_iterable(tables.typed(schema.SESSION_START, {"utcEpochNs": int})), None)


def _present(tables: SqliteTables, table: str, wanted: Texts) -> list[list[object]]:
    """Rows with the wanted columns in order, None for columns the table lacks; no rows where it has
    none.
    """
    present = tables.having(table, dict.fromkeys(wanted))
    rows = []
    for row in tables.rows(table, present) if present else ():
        value_of = dict(zip(present, row, strict=True))
        rows.append([*map(value_of.get, wanted)])
    return rows


def _gpu(row: list[object]) -> Gpu:
    gpu_id, device, name, sm_count, major, minor, memory, *limits = row
    per_sm = [_whole(value) or None for value in limits]  # 0 is what the driver did not tell
    return Gpu(
        gpu_id=_whole(gpu_id),
        cuda_device=_whole(device),
        name=known_texts.gpu_name(name),
        sm_count=_whole(sm_count) or None,
        capability=f"{major}.{minor}" if _whole(major) and _whole(minor) is not None else None,
        memory_bytes=_whole(memory) or None,
        limits=SmLimits(*per_sm) if any(per_sm) else None,
    )


def _whole(value: object) -> int | None:
    if isinstance(value, int) and value >= 0:
        return value
    return None


_DOMAIN_TYPES: Final = (75, 76)
"""NVTX_EVENTS.eventType where a domain begins and ends: all that is kept of an NVTX that nsys
cannot read."""
_SESSION: Final = "ANALYSIS_DETAILS"
_CPU: Final = ("COMPOSITE_EVENTS", "SCHED_EVENTS")
_PARTIAL: Final = ("EXPORT_PARAM_TABLES_TO_EXPORT", "EXPORT_PARAM_TIMES_TO_EXPORT")
_NCCL: Final = (
    "ncclAllReduce",
    "ncclAllGather",
    "ncclReduceScatter",
    "ncclSend",
    "ncclRecv",
    "ncclAlltoAll",
)


def traps(tables: SqliteTables, columns: Columns) -> Iterator[tuple[Trap, int]]:
    """What went wrong, with the number of rows that show it. Raises `DamagedTrace` as reading
    does.
    """
    export = metadata(tables)
    if partial := sum(bool(export.get(name)) for name in _PARTIAL):
        yield Trap.PARTIAL_EXPORT, partial
    if {"eventType", "start", "end"} <= tables.columns_of(schema.NVTX):
        kept = tables.read(schema.NVTX, ("eventType", "start", "end"))
        domains = summed(np.isin(kept["eventType"], _DOMAIN_TYPES))
        if domains and not len(columns.ranges):
            yield Trap.UNREAD_RANGES, domains
        ranges = np.isin(kept["eventType"], schema.RANGE_TYPES) & (kept["start"] != NULL)
        # nsys gives the recording's own end to a range that no one closed
        ends = chain.from_iterable(tables.typed(_SESSION, {"duration": int}))
        if unclosed := summed(ranges & np.isin(kept["end"], (NULL, *ends))):
            yield Trap.OPEN_RANGES, unclosed
    of_nccl = passing(_NCCL.__contains__, columns.range_texts)[columns.ranges.text]
    if not columns.nccl_calls and of_nccl.any():
        yield Trap.NO_PAYLOADS, summed(of_nccl)
    samples = 0
    for name in _CPU:
        if "start" in tables.columns_of(name):
            samples += len(tables.read(name, ("start",)))
    if samples:
        yield Trap.CPU_SAMPLES, samples

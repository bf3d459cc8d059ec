"""What a recording may lack or hold: no table, empty columns, odd values, odd schemas, too many ranks."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import diagnoser
from bench.fuzz.exports import cut_down
from bench.simulate.export import write_export
from bench.simulate.recording import Recording
from diagnoser.running.work.measured import MOST_RANKS
from reports.result.codec import Document
from tests.agreement.untold import unexplained
from tests.doubles.document import DISPATCH, GEMM, MS, US, exposed
from tests.places import ROOT
from tests.recordings import inputs
from traces.columns import NULL
from traces.errors import InputError, MoeDiagError, NothingToDiagnose
from traces.formats.nsys_schema import KERNELS, USED_TABLES
from traces.formats.open import read_trace
from traces.gpu_work import build

READ = (
    *("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"),
    *("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_CUDA_EVENT", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"),
    *("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "CUDA_GPU_MEMORY_USAGE_EVENTS", "NVTX_EVENTS", "StringIds"),
    *("GPU_METRICS", "TARGET_INFO_GPU_METRICS", "TARGET_INFO_GPU", "TARGET_INFO_CUDA_DEVICE", "ThreadNames"),
    *("TARGET_INFO_SESSION_START_TIME", "META_DATA_EXPORT", "MPI_RANKS", "DIAGNOSTIC_EVENT"),
)
"""Every table that is read, as schema 3.25.0 names it, but those of blobs and of the profiler's own work."""


NEEDED = ((KERNELS, "start"), (KERNELS, "end"))
"""Without these no kernel has a place: there is nothing to diagnose."""


def rich() -> Recording:
    """Four steps of everything that a recording of one rank can hold."""
    recording = exposed(comm=DISPATCH)
    for step in range(4):
        at, after, call = (10 * step + 1) * MS, (10 * step + 10) * MS, 900 + step
        recording.copy("h2d", after + 10 * US, after + 20 * US, size_bytes=4096, launch_ns=at - 9 * US)
        recording.memset(after + 30 * US, after + 40 * US, size_bytes=4, launch_ns=at - 7 * US)
        recording.event_record(1, step, 7, correlation_id=call)
        recording.synchronisation("stream", at - 4 * US, at - 2 * US, correlation_id=call)
        recording.memory_use(at - 3 * US, size_bytes=1 << 20, address=4096 * (step + 1))
        recording.gpu_metrics(at, {"SMs Active [Throughput %]": 90, "SM Issue [Throughput %]": 50})
    recording.graph_replay(42 * MS, 43 * MS, launch_ns=41 * MS)
    recording.mpi_rank(1000, 3)
    recording.diagnostic("Not all NVTX events might have been collected.")
    return recording


@cache
def whole() -> bytes:
    """The same as an export in which no column has to be set."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.sqlite"
        write_export(path, rich())
        return cut_down(path)


@pytest.fixture
def changed(tmp_path: Path) -> Callable[..., Path]:
    """The export after some statements."""

    def change(*statements: str) -> Path:
        path = tmp_path / "run.sqlite"
        path.write_bytes(whole())
        return inputs.changed(path, *statements)

    return change


@cache
def columns(table: str) -> Sequence[str]:
    """Those whose names stand in the readers."""
    readers = "".join(path.read_text("utf-8") for path in (ROOT / "traces" / "formats").glob("n*.py"))
    with closing(sqlite3.connect(":memory:")) as db:
        db.deserialize(whole())
        return [row[1] for row in db.execute(f'PRAGMA table_info("{table}")') if f'"{row[1]}"' in readers]


def diagnosed(path: Path) -> Document | None:
    """The document, None where the input is refused; whatever it does not know has its reason."""
    try:
        document = diagnoser.analyze(path, ask_megatron=False).to_dict()
    except (InputError, NothingToDiagnose):
        return None
    assert "run" in document or unexplained(document) == []  # of several ranks, more need not apply
    return document


def test_the_recording_has_every_table_that_is_read(changed: Callable[..., Path]) -> None:
    assert [table for table in READ if not columns(table)] == []
    document = diagnosed(changed())
    assert document is not None
    assert document["traces"][0]["missing_tables"] == []


@pytest.mark.parametrize("table", READ)
def test_a_table_may_be_absent_or_empty(table: str, changed: Callable[..., Path]) -> None:
    absent = diagnosed(changed(f'DROP TABLE "{table}"'))
    empty = diagnosed(changed(f'DELETE FROM "{table}"'))
    for document in (absent, empty):
        assert document is not None
    if table in USED_TABLES and absent:
        assert table in absent["traces"][0]["missing_tables"]


@pytest.mark.parametrize("table", READ)
def test_a_column_may_be_empty_or_absent(table: str, changed: Callable[..., Path]) -> None:
    for column in columns(table):
        emptied = diagnosed(changed(f'UPDATE "{table}" SET "{column}" = NULL'))
        assert emptied is not None or (table, column) in NEEDED
        with suppress(InputError):
            build(read_trace(changed(f'ALTER TABLE "{table}" RENAME "{column}" TO "another"')))


ODD = (-1, 2**31, 2**53 + 1, 2**61, 2**63 - 1, NULL, "'a'", 1.5)
PLACES = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid", "globalTid", "gridX")


@pytest.mark.parametrize("value", ODD)
def test_an_odd_value_is_read_or_refused(value: object, changed: Callable[..., Path]) -> None:
    for table in (KERNELS, "CUPTI_ACTIVITY_KIND_RUNTIME"):
        for column in PLACES:
            if column in columns(table):
                diagnosed(changed(f'UPDATE "{table}" SET "{column}" = {value} WHERE rowid = 2'))


@pytest.mark.parametrize("table", [KERNELS, "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS", "StringIds"])
def test_views_triggers_indexes_and_computed_columns_change_nothing(
    table: str, changed: Callable[..., Path]
) -> None:
    plain, away = diagnosed(changed()), f'ALTER TABLE "{table}" RENAME TO away'
    column = columns(table)[1]
    ways = (
        [away, f'CREATE VIEW "{table}" AS SELECT * FROM away'],
        [f'CREATE TRIGGER t AFTER INSERT ON "{table}" BEGIN DELETE FROM "{table}"; END'],
        [f'CREATE INDEX i ON "{table}" ("{column}")', f'ALTER TABLE "{table}" ADD COLUMN "user\'s" TEXT'],
        [
            f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO away',
            f'ALTER TABLE "{table}" ADD COLUMN "{column}" AS (away)',
        ],
    )
    for statements in ways:
        assert diagnosed(changed(*statements)) == plain


def test_thousands_of_streams_are_read(tmp_path: Path) -> None:
    recording = Recording()
    for number in range(5_000):
        recording.kernel(GEMM, 100 * number, 100 * number + 90, launch_ns=100 * number - 50, stream=number)
    write_export(tmp_path / "run.sqlite", recording)
    document = diagnosed(tmp_path / "run.sqlite")
    assert document is not None
    assert document["ranks"][0]["totals"]["kernel_count"] == 5_000


@pytest.mark.parametrize("by", ["device", "pid"])
def test_more_ranks_than_a_machine_has_are_refused_unless_one_is_chosen(by: str, tmp_path: Path) -> None:
    recording = Recording()
    for number in range(int(MOST_RANKS.value) + 1):
        where = (
            {"device": number, "pid": 1000}
            if by == "device"
            else {"device": number % 2, "pid": 1000 + number}
        )
        recording.kernel(GEMM, 100, 200, launch_ns=50, device=where["device"], pid=where["pid"])
    path = tmp_path / "run.sqlite"
    write_export(path, recording)
    with pytest.raises(MoeDiagError, match="work of 513 pairs of a process and a GPU"):
        diagnoser.analyze(path, ask_megatron=False)
    if by == "device":
        chosen = diagnoser.analyze(path, gpu=7, ask_megatron=False).to_dict()
        assert [rank["device"] for rank in chosen["ranks"]] == [7]


def test_host_calls_without_times_are_left_out_and_counted(changed: Callable[..., Path]) -> None:
    calls = "CUPTI_ACTIVITY_KIND_RUNTIME"
    for broken in ("end = NULL", "start = NULL", "end = start - 5"):
        document = diagnosed(changed(f"UPDATE {calls} SET {broken} WHERE rowid = 2"))
        assert document is not None
        assert "host rows without times, left out: 1" in document["traces"][0]["capture"]["diagnostics"]


@pytest.mark.parametrize("value", [-1, 2**31, 2**62])
def test_a_grid_that_no_launch_has_counts_as_not_recorded(value: int, changed: Callable[..., Path]) -> None:
    document = diagnosed(changed(f'UPDATE "{KERNELS}" SET gridX = {value}'))
    assert document is not None
    assert {row["grid"] for row in document["ranks"][0]["kernel_table"]["rows"]} == {None}


@pytest.mark.parametrize("value", ["'a'", "x'ff'", "1e300", "1.5"])
def test_a_thread_name_of_another_type_is_none(value: str, changed: Callable[..., Path]) -> None:
    assert diagnosed(changed(f"UPDATE ThreadNames SET globalTid = {value}")) is not None
    assert diagnosed(changed(f"UPDATE ThreadNames SET nameId = {value}")) is not None

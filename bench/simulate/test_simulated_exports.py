from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from bench.simulate import export as export_module
from bench.simulate.export import schema_versions, write_export
from bench.simulate.recording import Recording, base_name
from tests.recordings.moe_pattern import moe_recording

GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
every_version = pytest.mark.parametrize("version", schema_versions())

ADDED_BY_USERS = {("2.9.1", "CUPTI_ACTIVITY_KIND_MEMCPY"): ["name"], ("2.9.1", CALLS): ["name"]}
"""Columns that users of real files added with ALTER TABLE, behind those nsys wrote."""


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        yield connection


def columns_by_table(connection: sqlite3.Connection) -> dict[str, list[str]]:
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {
        table: [name for _, name, *_ in connection.execute(f'PRAGMA table_info("{table}")')]
        for table in tables
    }


def small_recording() -> Recording:
    recording = Recording()
    recording.gpu()
    recording.kernel("void scope::work<int>(int *)", 2_000, 5_000, launch_ns=1_000)
    recording.copy("d2h", 5_000, 6_000, size_bytes=64)
    recording.memset(6_000, 7_000, size_bytes=128)
    recording.range("iteration 0", 500, 8_000)
    recording.range("ncclSend", 600, 700, registered=True, domain=1)
    return recording


def written(path: Path, recording: Recording | None = None, version: str = "3.25.0") -> Path:
    write_export(path, recording or small_recording(), version)
    return path


@every_version
def test_every_schema_version_gives_a_sound_database_as_nsys_lays_it_out(
    tmp_path: Path, version: str
) -> None:
    with opened(written(tmp_path / "run.sqlite", version=version)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        pragmas = ("page_size", "journal_mode", "user_version")
        found = [connection.execute(f"PRAGMA {pragma}").fetchone()[0] for pragma in pragmas]
        indexes = connection.execute("SELECT name FROM sqlite_master WHERE type != 'table'").fetchall()
    assert found == [4096, "delete", 0]
    assert indexes == []
    assert [path.name for path in tmp_path.iterdir()] == ["run.sqlite"]  # no journal, no partial file


@every_version
def test_all_tables_have_the_columns_of_the_stored_schema_by_name_and_order(
    tmp_path: Path, version: str
) -> None:
    stored = json.loads(Path(export_module.__file__).with_name("export_schemas.json").read_text())
    expected = {}
    for table, about in stored[version]["tables"].items():
        home = stored[about["same_as"]]["tables"][table] if "same_as" in about else about
        expected[table] = [column.split()[0] for column in home["columns"].split(", ")]
    write_export(tmp_path / "run.sqlite", small_recording(), version, lazy=False)
    with opened(tmp_path / "run.sqlite") as connection:
        assert columns_by_table(connection) == expected


def test_tables_equal_those_of_real_exports_of_the_same_version(tmp_path: Path) -> None:
    folder = os.environ.get("MOE_DIAG_TRACES")
    if folder is None:
        pytest.skip("MOE_DIAG_TRACES is unset: would have shown that real exports have the columns of ours")
    compared = 0
    for real in sorted(Path(folder).glob("*.sqlite")):
        with opened(real) as connection:
            theirs, version = columns_by_table(connection), schema_of(connection)
        if version in schema_versions():
            write_export(tmp_path / real.name, small_recording(), version, lazy=False)
            with opened(tmp_path / real.name) as connection:
                ours = columns_by_table(connection)
            shared = ours.keys() & theirs.keys()
            assert {"StringIds", "PROCESSES", "ThreadNames"} <= shared, real.name
            with_added = {table: ours[table] + ADDED_BY_USERS.get((version, table), []) for table in shared}
            assert with_added == {table: theirs[table] for table in shared}, real.name
            compared += 1
    assert compared, "MOE_DIAG_TRACES holds no SQLite export of a schema we write"


def schema_of(connection: sqlite3.Connection) -> str:
    """The schema version an export states; "none" where it states none."""
    tables = columns_by_table(connection)
    for table in ("META_DATA_EXPORT", "EXPORT_META_DATA"):
        if table in tables:
            query = f"SELECT value FROM {table} WHERE name = 'EXPORT_SCHEMA_VERSION'"
            return str(connection.execute(query).fetchone()[0])
    return "none"


def test_tables_without_rows_are_absent_unless_asked_for(tmp_path: Path) -> None:
    write_export(tmp_path / "lazy.sqlite", small_recording())
    write_export(tmp_path / "full.sqlite", small_recording(), lazy=False)
    with opened(tmp_path / "lazy.sqlite") as lazy, opened(tmp_path / "full.sqlite") as full:
        assert GRAPHS not in columns_by_table(lazy)
        assert GRAPHS in columns_by_table(full)


def test_the_text_of_a_registered_range_stands_in_the_string_table(tmp_path: Path) -> None:
    with opened(written(tmp_path / "run.sqlite")) as connection:
        rows = connection.execute(
            "SELECT n.text, s.value FROM NVTX_EVENTS n LEFT JOIN StringIds s ON s.id = n.textId "
            "ORDER BY n.start"
        ).fetchall()
    assert rows == [("iteration 0", None), (None, "ncclSend")]


def test_a_kernel_and_its_launch_share_process_and_correlation_id(tmp_path: Path) -> None:
    recording = Recording(hardware_id=254)
    for pid in (11, 12):
        recording.kernel("work", 2_000, 5_000, pid=pid, tid=pid + 1, launch_ns=1_000)
    with opened(written(tmp_path / "run.sqlite", recording)) as connection:
        pairs = connection.execute(
            "SELECT (c.globalTid >> 24) & 16777215, c.globalTid & 16777215, k.correlationId "
            f"FROM {KERNELS} k JOIN {CALLS} c "
            "ON c.correlationId = k.correlationId AND c.globalTid & ~16777215 = k.globalPid"
        ).fetchall()
        signs = connection.execute(f"SELECT max(globalPid) < 0 FROM {KERNELS}").fetchone()
    assert sorted(pairs) == [(11, 12, 1), (12, 13, 1)]
    assert signs == (1,)  # a hardware id above 127 makes the packed id negative


def test_a_process_id_that_does_not_fit_a_packed_id_is_refused() -> None:
    with pytest.raises(ValueError, match="24 bits"):
        Recording().kernel("work", 0, 1, pid=1 << 24)


def test_an_unknown_kind_of_copy_is_refused() -> None:
    with pytest.raises(ValueError, match="d2h"):
        Recording().copy("download", 0, 1, size_bytes=1)


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void scope::work<(int)4, other::type<int>>(int, T2)", "work"),
        ("void at::native::(anonymous namespace)::norm_kernel<float>(int)", "norm_kernel"),
        ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)", "ncclDevKernel_SendRecv"),
        ("void cut::off<at::native::<unnamed>::FusedOpt", "off"),
        ("_permute_kernel", "_permute_kernel"),
    ],
)
def test_a_short_name_is_the_kernel_name_without_scope_and_arguments(name: str, short: str) -> None:
    assert base_name(name) == short


def test_graph_replays_are_dropped_under_3_0_0_kept_later_and_refused_before(tmp_path: Path) -> None:
    recording = Recording()
    recording.graph_replay(2_000, 9_000, launch_ns=1_000)
    with opened(written(tmp_path / "dropped.sqlite", recording, "3.0.0")) as connection:
        assert connection.execute(f"SELECT count(*) FROM {CALLS}").fetchone() == (1,)
        assert GRAPHS not in columns_by_table(connection)
    with opened(written(tmp_path / "kept.sqlite", recording)) as connection:
        assert connection.execute(f"SELECT start, end FROM {GRAPHS}").fetchall() == [(2_000, 9_000)]
    with pytest.raises(ValueError, match=GRAPHS):
        write_export(tmp_path / "refused.sqlite", recording, "2.9.1")


def test_what_a_schema_has_no_table_for_is_refused_in_words(tmp_path: Path) -> None:
    recording = small_recording()
    recording.diagnostic("No CUDA events collected.", severity=2)
    with pytest.raises(ValueError, match=r"DIAGNOSTIC_EVENT.*3\.16\.1"):
        write_export(tmp_path / "run.sqlite", recording, "3.4.0")
    with pytest.raises(ValueError, match="META_DATA_CAPTURE"):
        write_export(tmp_path / "run.sqlite", small_recording(), "3.1.2", capture_options={"A": "b"})
    with pytest.raises(ValueError, match=r"9\.9\.9"):
        write_export(tmp_path / "run.sqlite", small_recording(), "9.9.9")
    assert list(tmp_path.iterdir()) == []


def test_each_process_of_one_file_finds_its_gpu_although_all_call_it_device_0(tmp_path: Path) -> None:
    recording = Recording()
    for rank in range(2):
        recording.gpu(used_by={100 + rank: 0})
        recording.kernel("work", 0, 1, pid=100 + rank)
        recording.mpi_rank(100 + rank, rank)
    with opened(written(tmp_path / "run.sqlite", recording)) as connection:
        devices = connection.execute("SELECT pid, cudaId, gpuId FROM TARGET_INFO_CUDA_DEVICE").fetchall()
        ranks = connection.execute("SELECT (globalTid >> 24) & 16777215, rank FROM MPI_RANKS").fetchall()
    assert devices == [(100, 0, 0), (101, 0, 1)]
    assert ranks == [(100, 0), (101, 1)]


def test_enum_tables_are_empty_without_cuda_rows_and_on_request(tmp_path: Path) -> None:
    only_ranges = Recording()
    only_ranges.range("iteration 0", 0, 1)
    written(tmp_path / "no_cuda.sqlite", only_ranges)
    write_export(tmp_path / "asked.sqlite", small_recording(), enum_rows=False)
    written(tmp_path / "full.sqlite")
    counts = []
    for name in ("no_cuda", "asked", "full"):
        with opened(tmp_path / f"{name}.sqlite") as connection:
            counts += connection.execute("SELECT count(*) FROM ENUM_CUDA_MEMCPY_OPER").fetchone()
    assert counts == [0, 0, 14]


def test_an_existing_path_is_left_as_it_is(tmp_path: Path) -> None:
    taken = tmp_path / "run.sqlite"
    taken.write_text("mine")
    with pytest.raises(FileExistsError):
        write_export(taken, small_recording())
    assert taken.read_text() == "mine"


def test_shuffling_changes_the_order_of_rows_and_nothing_else(tmp_path: Path) -> None:
    write_export(tmp_path / "plain.sqlite", moe_recording(steps=1, layers=1))
    write_export(tmp_path / "shuffled.sqlite", moe_recording(steps=1, layers=1), shuffle_seed=1)
    query = f"SELECT start, end, streamId, correlationId FROM {KERNELS}"
    with opened(tmp_path / "plain.sqlite") as plain, opened(tmp_path / "shuffled.sqlite") as shuffled:
        before, after = plain.execute(query).fetchall(), shuffled.execute(query).fetchall()
    assert before != after
    assert sorted(before) == sorted(after)

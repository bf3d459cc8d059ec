"""Exports of every schema, and the traps of reading them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

import diagnoser
from bench.simulate.export import schema_versions, write_export
from bench.simulate.recording import Recording
from tests.places import Export
from tests.recordings.inputs import GEMM, changed
from traces.errors import DamagedTrace, NothingToDiagnose

SENDRECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)"


def two_ranks() -> Recording:
    """Two processes on one GPU each, with the same correlation ids: 60 gemm, 20 exposed sendrecv, 10 copy."""
    recording = Recording()
    for pid in (1000, 2000):
        recording.kernel(GEMM, 100, 160, pid=pid, launch_ns=90, correlation_id=1)
        recording.kernel(SENDRECV, 150, 180, pid=pid, launch_ns=95, stream=20, correlation_id=2)
        recording.copy("d2h", 180, 190, size_bytes=4, pid=pid, launch_ns=97, correlation_id=3)
        recording.memset(195, 200, size_bytes=4, pid=pid, correlation_id=4)
    recording.gpu()
    return recording


def ranks(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = diagnoser.analyze(path).to_dict()["ranks"]
    return found


def expect_two_ranks(path: Path) -> None:
    found = ranks(path)
    assert [(rank["process"], rank["device"]) for rank in found] == [(1000, 0), (2000, 0)]
    for rank in found:
        assert rank["budget_ns"] == {
            "window": 100,
            "compute": 60,
            "exposed_comm": 20,
            "exposed_copy": 15,
            "idle": 5,
        }
        assert rank["compute_by_class_ns"] == {"gemm": 60}
        assert rank["exposed_comm_by_kind_ns"] == {"sendrecv_unresolved": 20}
        assert rank["exposed_copy_by_kind_ns"] == {"memcpy_d2h": 10, "memset": 5}
        totals = rank["totals"]
        assert [totals[name] for name in ("kernel_work_ns", "busy_union_ns", "exposed_comm_ns")] == [
            90,
            80,
            20,
        ]


@pytest.mark.parametrize("lazy", [True, False])
@pytest.mark.parametrize("schema", schema_versions())
def test_every_schema_gives_the_same_numbers(export: Export, schema: str, lazy: bool) -> None:
    path = export(two_ranks(), schema=schema, lazy=lazy)
    expect_two_ranks(path)
    trace = diagnoser.analyze(path).to_dict()["traces"][0]
    assert trace["schema"] == (None if schema == "none" else schema)
    assert trace["capture"]["correlation_frac"] == 1.0
    assert [gpu["sm_count"] for gpu in trace["gpus"]] == [132]


def test_empty_enum_tables_change_nothing(export: Export) -> None:
    expect_two_ranks(export(two_ranks(), enum_rows=False))


def test_a_read_only_file_in_a_read_only_folder_is_read_and_not_touched(tmp_path: Path) -> None:
    folder = tmp_path / "read only"
    folder.mkdir()
    path = folder / "run.sqlite"
    write_export(path, two_ranks())
    before = hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns
    path.chmod(0o444)
    folder.chmod(0o555)
    try:
        expect_two_ranks(path)
        assert [entry.name for entry in folder.iterdir()] == ["run.sqlite"]
    finally:
        folder.chmod(0o755)
    assert (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns) == before


@pytest.mark.parametrize(
    "name", ["a b.sqlite", "a#b.sqlite", "a?b=c.sqlite", "a%20b.sqlite", "größe 漢.sqlite", "a&b"]
)
def test_any_path_is_opened(tmp_path: Path, name: str) -> None:
    folder = tmp_path / f"in {name}"
    folder.mkdir()
    path = folder / name
    write_export(path, two_ranks())
    expect_two_ranks(path)


def test_graph_launches_whose_work_was_dropped_end_without_a_diagnosis(export: Export) -> None:
    recording = Recording()
    recording.graph_replay(100, 180, launch_ns=90)
    with pytest.raises(NothingToDiagnose, match=r"1 CUDA graph launches.*--cuda-graph-trace=node"):
        diagnoser.analyze(export(recording, schema="3.0.0"))


def test_graph_launches_at_the_edges_of_a_cut_capture_are_not_missed(export: Export) -> None:
    recording = Recording()
    recording.call("cudaGraphLaunch_v10000", 70, 80)
    recording.graph_replay(100, 160, launch_ns=90)
    recording.call("cudaGraphLaunch_v10000", 110, 120)
    recording.graph_replay(170, 190, launch_ns=130)
    recording.call("cudaGraphLaunch_v10000", 140, 150)
    missing = diagnoser.analyze(export(recording)).to_dict()["missing"]
    (gap,) = (one for one in missing if one["path"] == "traces[0].graph_launches")
    assert "1 of 5 CUDA graph launches" in gap["reason"]


def test_rows_without_a_process_among_several_say_so(export: Export) -> None:
    path = changed(export(two_ranks()), "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET globalPid = NULL")
    document = diagnoser.analyze(path).to_dict()
    assert document["ranks"][0]["process"] is None
    assert "ranks[0].process" in [gap["path"] for gap in document["missing"]]


@pytest.mark.parametrize(
    "table",
    [
        "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET",
        "NVTX_EVENTS", "TARGET_INFO_GPU", "StringIds", "META_DATA_CAPTURE", "META_DATA_EXPORT",
    ],
)  # fmt: skip
def test_an_absent_table_is_named_and_no_reason_to_fail(export: Export, table: str) -> None:
    recording = two_ranks()
    recording.range("iteration 1", 90, 200)
    path = changed(export(recording), f"DROP TABLE {table}")
    document = diagnoser.analyze(path).to_dict()
    assert len(document["ranks"]) == 2
    if not table.startswith("META"):
        assert table in document["traces"][0]["missing_tables"]


def test_kernels_without_names_are_unknown_not_lost(export: Export) -> None:
    document = diagnoser.analyze(changed(export(two_ranks()), "DROP TABLE StringIds")).to_dict()
    (first, _) = document["ranks"]
    assert first["compute_by_class_ns"] == {"other": 80}  # communication among them cannot be told
    (unknown,) = first["unknown_kernels"]
    assert (unknown["name"], unknown["frac"], unknown["busy_ns"]) == ("(no name recorded)", 0.8, 80)


def test_rows_without_times_are_left_out_and_counted(export: Export) -> None:
    recording = two_ranks()
    recording.kernel(GEMM, 0, 0)
    recording.kernel(GEMM, 170, 120)
    document = diagnoser.analyze(export(recording)).to_dict()
    assert document["ranks"][0]["totals"]["kernel_count"] == 3
    assert document["ranks"][0]["budget_ns"]["compute"] == 60
    assert any("without times, left out: 1" in warning for warning in document["warnings"])
    assert any("end before they start, counted as empty: 1" in warning for warning in document["warnings"])


@pytest.mark.parametrize(
    ("change_of", "said"),
    [*((f"start = {value}", r"CUPTI_ACTIVITY_KIND_KERNEL.start") for value in ("'soon'", "1.5", "x'00'")),
        *((f"end = {value}", "impossible times") for value in (2**63 - 1, -(2**62)))],
)  # fmt: skip
def test_times_that_cannot_be_or_are_no_whole_numbers_are_damage(
    export: Export, change_of: str, said: str
) -> None:
    path = changed(export(two_ranks()), f"UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET {change_of}")
    with pytest.raises(DamagedTrace, match=said):
        diagnoser.analyze(path)


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_an_export_that_is_being_written_is_refused(export: Export, suffix: str) -> None:
    path = export(two_ranks())
    path.with_name(path.name + suffix).write_bytes(b"x" * 512)
    with pytest.raises(DamagedTrace, match="beside it"):
        diagnoser.analyze(path)


def test_work_that_takes_no_time_is_nothing_to_diagnose(export: Export) -> None:
    recording = Recording()
    recording.kernel(GEMM, 100, 100)
    recording.kernel(GEMM, 200, 150)
    with pytest.raises(NothingToDiagnose):
        diagnoser.analyze(export(recording))


def test_flipped_bytes_in_the_schema_are_damage_not_a_bug(export: Export) -> None:
    path = export(two_ranks())
    data = bytearray(path.read_bytes())
    at = data.index(b'CREATE TABLE "CUPTI') if b'CREATE TABLE "CUPTI' in data else data.index(b"CREATE TABLE")
    data[at : at + 8] = b"\xff\xfe\xfd\xfc\xff\xfe\xfd\xfc"
    path.write_bytes(bytes(data))
    with pytest.raises(DamagedTrace):
        diagnoser.analyze(path)

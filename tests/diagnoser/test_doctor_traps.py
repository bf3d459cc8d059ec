"""`doctor` finds by itself how a recording or its export went wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.simulate.recording import Recording
from diagnoser.cli import run
from tests.places import Export
from tests.recordings.inputs import GEMM, changed
from traces.formats.open import ReadOptions, read_and_examine
from traces.progress import silent
from traces.recording.traps import Trap

MS = 1_000_000


def small(*, end_ms: int = 9) -> Recording:
    """A kernel, its launch and a step that end before the recording does, at `end_ms`."""
    recording = Recording()
    recording.kernel(GEMM, 2 * MS, 3 * MS, launch_ns=MS)
    recording.range("iteration 1", 0, 4 * MS)
    recording.call("cudaDeviceSynchronize_v3020", 3 * MS, end_ms * MS)
    return recording


def found(path: Path) -> dict[Trap, int]:
    return dict(read_and_examine(path, ReadOptions(), silent)[1])


def said(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert run(["doctor", str(path)]) == 0
    out = capsys.readouterr().out
    assert "..." not in out.partition("Wrong in how")[2].partition("Good enough")[0]  # nothing is cut
    return " ".join(out.split())


def test_a_sound_recording_has_no_trap(export: Export, capsys: pytest.CaptureFixture[str]) -> None:
    path = export(small())
    assert found(path) == {}
    assert "Wrong in how" not in said(path, capsys)


def test_domains_without_ranges_are_a_library_that_nsys_cannot_read(
    export: Export, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = Recording()
    recording.kernel(GEMM, 0, MS)
    recording.range("NCCL", 0, None, event_type=75)
    recording.range("NCCL", MS, None, event_type=76)
    path = export(recording)
    assert found(path) == {Trap.UNREAD_RANGES: 2}
    assert "2 domains of NVTX without any range" in said(path, capsys)


@pytest.mark.parametrize("end_ms", [None, 9])
def test_ranges_that_nobody_closed_are_counted(
    export: Export, capsys: pytest.CaptureFixture[str], end_ms: int | None
) -> None:
    recording = small()
    recording.range("iteration 2", 5 * MS, end_ms and end_ms * MS)  # 2022.4.2 ends them with the recording
    path = export(recording)
    assert found(path) == {Trap.OPEN_RANGES: 1}
    assert "1 NVTX ranges end with the recording" in said(path, capsys)


@pytest.mark.parametrize("what", ["TABLES", "TIMES"])
def test_a_filtered_export_is_named_without_its_filter(
    export: Export, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    name = f"EXPORT_PARAM_{what}_TO_EXPORT"
    path = changed(
        export(small()),
        f"DELETE FROM META_DATA_EXPORT WHERE name = '{name}'",
        f"INSERT INTO META_DATA_EXPORT (name, value) VALUES ('{name}', 'of_db01')",
    )
    assert found(path) == {Trap.PARTIAL_EXPORT: 1}
    text = said(path, capsys)
    assert "the export holds some tables or some of the time only" in text
    assert "db01" not in text


def test_calls_of_nccl_without_payloads_are_counted(
    export: Export, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = small()
    recording.range("ncclAllReduce", MS, 2 * MS, registered=True, domain=1)
    path = export(recording)
    assert found(path) == {Trap.NO_PAYLOADS: 1}
    assert "--include-blobs=true" in said(path, capsys)


def test_cpu_samples_are_counted_and_their_cost_is_named(
    export: Export, capsys: pytest.CaptureFixture[str]
) -> None:
    path = changed(
        export(small()),
        "CREATE TABLE COMPOSITE_EVENTS (id INTEGER, start INTEGER)",
        "CREATE TABLE SCHED_EVENTS (start INTEGER, cpu INTEGER)",
        "INSERT INTO COMPOSITE_EVENTS VALUES (1, 1)",
        "INSERT INTO SCHED_EVENTS VALUES (1, 0), (2, 0)",
    )
    assert found(path) == {Trap.CPU_SAMPLES: 3}
    assert "3 samples of the CPU or switches of threads" in said(path, capsys)


def test_graph_replays_recorded_whole_beside_kernels_are_named(
    export: Export, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = small()
    recording.graph_replay(5 * MS, 6 * MS, launch_ns=4 * MS)
    text = said(export(recording), capsys)
    assert "1 graph replays were recorded whole" in text
    assert "--cuda-graph-trace=node" in text


def test_a_report_that_nsys_never_wrote_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "run_0.nsys-rep"]) == 3
    assert "never calls cudaProfilerStart" in capsys.readouterr().err
    assert run(["doctor", "run_0.sqlite"]) == 3
    assert "cudaProfilerStart" not in capsys.readouterr().err

"""The line that records a program, and what becomes of a recording that nsys left as a raw stream."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.workload.nsys_recorded import profile_line, report_of
from traces.errors import ExportFailed
from traces.formats.nsys_tool import Nsys
from traces.recording.line import recording

IMPORTS = 'shift; cp "$1" "$3"'
REFUSES = "exit 1"


def nsys_in(folder: Path) -> Nsys:
    """An nsys as Debian's package puts it: its importer in a folder that this nsys does not look into."""
    path = folder / "lib" / "nsight-systems" / "bin" / "nsys"
    path.parent.mkdir(parents=True)
    path.touch()
    return Nsys(path, (2022, 4, 2, 1), "2022.4.2.1-df9881f")


def importer(folder: Path, does: str) -> None:
    path = folder / "QdstrmImporter"
    folder.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{does}\n", encoding="utf-8")
    path.chmod(0o755)


def work_in(folder: Path, *names: str) -> Path:
    work = folder / "work"
    work.mkdir()
    for name in names:
        (work / name).write_text("recorded", encoding="utf-8")
    return work


def test_on_a_gpu_all_is_recorded_that_doctor_asks_for_and_only_the_marked_steps(tmp_path: Path) -> None:
    line = profile_line(nsys_in(tmp_path), "cuda", "rank3", ["python", "-c", "train"])
    assert line[1:] == [
        "profile",
        "--trace=cuda,nvtx,osrt",
        "--cuda-graph-trace=node",
        "--sample=none",
        "--cpuctxsw=none",
        "--capture-range=cudaProfilerApi",
        "--capture-range-end=stop",
        "--output=rank3",
        "python",
        "-c",
        "train",
    ]
    asked = recording().nsys.replace("-c cuda", "--capture-range=cuda").split()
    newer = {"--cuda-event-trace=true"}  # not in the nsys of Debian
    assert {word for word in asked if word.startswith("--")} - newer <= set(line)


def test_a_report_is_taken_as_it_is(tmp_path: Path) -> None:
    work = work_in(tmp_path, "rank0.nsys-rep", "rank0.qdstrm")
    report = report_of(nsys_in(tmp_path), work, "rank0")
    assert (report.path, report.imported_by_hand) == (work / "rank0.nsys-rep", False)


@pytest.mark.parametrize(
    "place", ["lib/nsight-systems/host-linux-x64", "lib/nsight-systems-2022/host-linux-x64"]
)
def test_a_raw_stream_is_imported_by_the_importer_around_nsys(tmp_path: Path, place: str) -> None:
    work, nsys = work_in(tmp_path, "rank0.qdstrm"), nsys_in(tmp_path)
    importer(tmp_path / place, IMPORTS)
    report = report_of(nsys, work, "rank0")
    assert report.imported_by_hand
    assert report.path.read_text(encoding="utf-8") == "recorded"


def test_a_stream_that_no_importer_takes_is_named_with_what_to_do(tmp_path: Path) -> None:
    work, nsys = work_in(tmp_path, "rank0.qdstrm"), nsys_in(tmp_path)
    importer(tmp_path / "lib" / "nsight-systems" / "host-linux-x64", REFUSES)
    with pytest.raises(
        ExportFailed, match=r"2022\.4\.2 left only a raw stream .* QdstrmImporter .* --nsys PATH"
    ):
        report_of(nsys, work, "rank0")


def test_a_recording_of_nothing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ExportFailed, match="recorded nothing"):
        report_of(nsys_in(tmp_path), work_in(tmp_path), "rank0")

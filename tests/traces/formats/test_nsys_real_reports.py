"""Real reports through the real nsys; skipped where either is not at hand."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.recordings.nsys import contents
from traces.errors import DamagedTrace
from traces.formats.export_cache import collector_version, exported
from traces.formats.nsys_tool import find_nsys, session_start_ns
from traces.progress import silent

NSYS = shutil.which("nsys")
FOLDER = os.environ.get("MOE_DIAG_TRACES")

pytestmark = [
    pytest.mark.skipif(
        NSYS is None,
        reason="no nsys on PATH: would have shown that it exports, refuses and leaves what we expect",
    ),
    pytest.mark.skipif(
        FOLDER is None,
        reason="MOE_DIAG_TRACES names no folder of reports: would have shown that they are exported once",
    ),
]


def copied(name: str, folder: Path) -> Path:
    """A real report under a name that needs quoting everywhere."""
    source = Path(FOLDER or "") / name
    runs = folder / "läufe #1 100%p ?x"
    runs.mkdir()
    report = runs / f"ä b#c%q{{HOME}}?{source.suffix}"
    shutil.copyfile(source, report)
    return report


def export(report: Path, folder: Path) -> Path:
    return exported(report, nsys=NSYS, cache_dir=folder / "cache é%", progress=silent)


def patch_version(report: Path, version: bytes) -> None:
    data = report.read_bytes()
    old = (collector_version(report) or "").encode()
    report.write_bytes(data[:-4096] + data[-4096:].replace(old, version.ljust(len(old), b"0")))


@pytest.mark.parametrize(("name", "collector"), [
    ("jax_3090_2022.nsys-rep", "2022.1.3.3"), ("rtx6000_2021.qdrep", "2021.2.1.58"),
    ("tiny.nsys-rep", "2022.4.2.1"),
])  # fmt: skip
def test_a_real_report_is_exported_once_and_nothing_else_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, collector: str
) -> None:
    report = copied(name, tmp_path)
    elsewhere = tmp_path / "working folder"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    before = contents(report.parent)
    assert collector_version(report) == collector
    first = export(report, tmp_path)
    written_ns = first.stat().st_mtime_ns
    assert export(report, tmp_path).stat().st_mtime_ns == written_ns
    assert contents(report.parent) == before
    assert not list(elsewhere.iterdir())
    assert len(list(first.parent.iterdir())) == 2


def test_the_session_start_is_the_same_in_report_and_export(tmp_path: Path) -> None:
    report = copied("tiny.nsys-rep", tmp_path)
    with closing(sqlite3.connect(export(report, tmp_path))) as database:
        (told,) = database.execute("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME").fetchone()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    assert session_start_ns(find_nsys(NSYS), report, scratch) == told


def test_damaged_events_are_told_as_damage_and_leave_nothing(tmp_path: Path) -> None:
    report = copied("jax_3090_2022.nsys-rep", tmp_path)
    data = bytearray(report.read_bytes())
    data[230_000:230_200] = bytes(200)
    report.write_bytes(data)
    with pytest.raises(DamagedTrace, match="is damaged"):
        export(report, tmp_path)
    assert not list((tmp_path / "cache é%").iterdir())


def test_a_report_of_a_newer_patch_is_exported_all_the_same(tmp_path: Path) -> None:
    report = copied("tiny.nsys-rep", tmp_path)
    year, quarter = find_nsys(NSYS).version[:2]
    patch_version(report, f"{year}.{quarter}.9.1".encode())
    assert export(report, tmp_path).is_file()

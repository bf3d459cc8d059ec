"""What an export knows of people and machines stays in it."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from diagnoser.cli import run
from tests.moe_pattern import moe_recording
from traces.simulate.export import schema_versions, write_export

SECRET = "hunter2_sesame"
PUBLIC = {"demangledName", "shortName", "mangledName", "textId"}
"""Columns whose StringIds texts a report may print: kernel and NVTX names."""


def plant(path: Path) -> int:
    """Overwrite every text but kernel and NVTX names with the secret; how many cells were."""
    with closing(sqlite3.connect(path)) as db:
        tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        public = " UNION ".join(public_ids(db, tables)) or "SELECT 0 WHERE 0"
        changed = db.execute(f"UPDATE StringIds SET value = ? WHERE id NOT IN ({public})", [SECRET]).rowcount
        for table in tables:
            for column in columns(db, table):
                if (table, column) in {("StringIds", "value"), ("NVTX_EVENTS", "text")}:
                    continue
                changed += db.execute(
                    f'UPDATE "{table}" SET "{column}" = ? WHERE typeof("{column}") IN (\'text\', \'blob\')',
                    [SECRET],
                ).rowcount
        db.execute("INSERT OR IGNORE INTO StringIds VALUES (999999, ?)", [SECRET])
        db.commit()
    return changed


def columns(db: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]


def public_ids(db: sqlite3.Connection, tables: list[str]) -> Iterator[str]:
    for table in tables:
        for column in PUBLIC & set(columns(db, table)):
            if table in ("CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS"):
                yield f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL"


def printed(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    code = run(["analyze", str(path), *options])
    assert code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("schema", schema_versions())
def test_a_secret_in_any_text_or_folder_name_is_never_printed(
    tmp_path: Path, schema: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / SECRET
    folder.mkdir()
    path = folder / "run.sqlite"
    recording = moe_recording(steps=2, layers=1)
    recording.gpu()
    write_export(path, recording, schema, lazy=False)
    assert plant(path) >= 10
    for form in ("text", "json"):
        out = printed(path, capsys, "-f", form)
        assert "grouped_gemm" in out
        assert SECRET not in out


def test_a_secret_in_a_real_recording_is_never_printed(
    recordings: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / SECRET
    folder.mkdir()
    for name in ("a100_llm_2_7B_nvtx.sqlite", "edge_2026_tiny.sqlite", "pipit_saxpy_mpi.sqlite"):
        path = folder / name
        shutil.copy(recordings / name, path)
        path.chmod(0o644)
        assert plant(path) > 100
        for form in ("text", "json"):
            assert SECRET not in printed(path, capsys, "-f", form)


def test_a_known_diagnostic_is_told_in_our_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording = moe_recording(steps=2, layers=1)
    recording.diagnostic(f"CUPTI buffer overflow at /home/{SECRET}: 17 records were lost")
    path = tmp_path / "run.sqlite"
    write_export(path, recording)
    out = printed(path, capsys)
    assert "the profiler lost events" in out
    assert SECRET not in out


def test_only_product_names_and_versions_pass() -> None:
    from traces.formats.known_texts import gpu_name, version

    known = [
        "NVIDIA H100 80GB HBM3",
        "NVIDIA A100-SXM4-80GB",
        "NVIDIA A100 80GB PCIe",
        "NVIDIA H200",
        "NVIDIA B200",
        "NVIDIA GB200",
        "NVIDIA GB300",
        "NVIDIA B300 SXM6 AC",
        "NVIDIA GH200 480GB",
        "NVIDIA GeForce RTX 4060 Ti",
        "NVIDIA GeForce RTX 3080 Laptop GPU",
        "NVIDIA RTX 6000 Ada Generation",
        "NVIDIA RTX PRO 6000 Blackwell Server Edition",
        "NVIDIA L40S",
        "Tesla V100-SXM2-32GB",
        "Tesla T4",
        "Quadro RTX 6000",
        "NVIDIA A100-PG509-200",
        "NVIDIA A100-SXM4-40GB MIG 3g.20gb",
        "NVIDIA TITAN V",
        "NVIDIA H100 NVL",
        "NVIDIA H20",
    ]
    assert [name for name in known if gpu_name(name) != name] == []
    strangers = [
        SECRET,
        f"NVIDIA {SECRET}",
        "NVIDIA H100 on db01",
        "1234",
        "NVIDIA",
        "root",
        7,
        None,
        "A100\n",
    ]
    assert [name for name in strangers if gpu_name(name)] == []
    assert version("2026.2.1.210") == "2026.2.1.210"
    assert [version(text) for text in ("2026.2-rc", SECRET, "2026", "1.2.3.4.5.6.7", None)] == [None] * 5

"""Inputs of the command, one that is right and others that are not."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from bench.simulate.export import write_export
from bench.simulate.recording import Recording

GEMM = "nvjet_tst_128x256_64x4_2x1_v_bz_TNT"


def simple(path: Path) -> Path:
    recording = Recording()
    for step in range(3):
        recording.range(f"iteration {step}", 1_000 * step, 1_000 * step + 900)
        recording.kernel(GEMM, 1_000 * step + 100, 1_000 * step + 800, launch_ns=1_000 * step + 50)
    write_export(path, recording)
    return path


def changed(path: Path, *statements: str) -> Path:
    """An export, or another file of SQLite, after some statements."""
    with closing(sqlite3.connect(path)) as database:
        for statement in statements:
            database.executescript(statement)
    return path


def missing(folder: Path) -> Path:
    return folder / "none.sqlite"


def empty(folder: Path) -> Path:
    path = folder / "empty.sqlite"
    path.touch()
    return path


def text(folder: Path) -> Path:
    path = folder / "notes.nsys-rep"
    path.write_text("hello\n" * 99, encoding="utf-8")
    return path


def a_folder(folder: Path) -> Path:
    path = folder / "runs"
    path.mkdir()
    return path


def truncated(folder: Path) -> Path:
    path = simple(folder / "run.sqlite")
    path.write_bytes(path.read_bytes()[:-4096])
    return path


def scrambled(folder: Path) -> Path:
    path = simple(folder / "run.sqlite")
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(bytes(data))
    return path


def no_kernels(folder: Path) -> Path:
    recording = Recording()
    recording.range("iteration 1", 0, 100)
    path = folder / "run.sqlite"
    write_export(path, recording)
    return path

"""Files that hold a PyTorch profiler trace, nearly hold one, or hold something else."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

import diagnoser
from tests.recordings.kineto import event, expect_one_run, one_run, write
from traces.errors import DamagedTrace, NotATrace, NothingToDiagnose
from traces.formats.open import read_trace


def test_content_decides_what_a_file_is(tmp_path: Path) -> None:
    plain = write(tmp_path / "run.sqlite", one_run())
    packed = tmp_path / "run.nsys-rep"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    marked = write(tmp_path / "run", "\ufeff\n " + plain.read_text(encoding="utf-8"))
    for path in (plain, packed, marked):
        expect_one_run(path)


@pytest.mark.parametrize(
    "junk",
    ["NaN", "nan", "-nan", "-Infinity", "N/A", '"a\nb\x01"', r'"C:\data\train.py"', r'"\"nan\\"'],
)
def test_json_that_the_profiler_spoils_is_read_over(tmp_path: Path, junk: str) -> None:
    whole = json.dumps({"schemaVersion": 1, "spoiled": "HERE", "traceEvents": one_run()})
    expect_one_run(write(tmp_path / "run.json", whole.replace('"HERE"', junk)))


def truncated(folder: Path) -> Path:
    path = write(folder / "run.json", one_run())
    path.write_bytes(path.read_bytes()[:-40])
    return path


def truncated_gzip(folder: Path) -> Path:
    path = write(folder / "run.json.gz", one_run())
    path.write_bytes(gzip.compress(path.read_bytes())[:-40])
    return path


def spoiled_gzip(folder: Path) -> Path:
    path = write(folder / "run.json.gz", one_run())
    packed = bytearray(gzip.compress(path.read_bytes()))
    packed[30:60] = bytes(30)
    path.write_bytes(packed)
    return path


def other_gzip(folder: Path) -> Path:
    path = folder / "run.tar.gz"
    path.write_bytes(gzip.compress(b"SQLite format 3\0"))
    return path


BAD: list[tuple[Callable[[Path], Path], type[Exception], str]] = [
    (truncated, DamagedTrace, "breaks off or is damaged"),
    (truncated_gzip, DamagedTrace, "is truncated"),
    (spoiled_gzip, DamagedTrace, "gzip data cannot be unpacked"),
    (other_gzip, NotATrace, "unpack it first"),
    (lambda folder: write(folder / "a", "{"), DamagedTrace, "at character 1 of 1"),
    (lambda folder: write(folder / "a", "[" * 100_000), DamagedTrace, "no JSON"),
    (lambda folder: write(folder / "a", '{"a": 1' + "0" * 5000 + "}"), DamagedTrace, "no JSON"),
    (lambda folder: write(folder / "a", '{"budget_ns": {}}'), NotATrace, "export_chrome_trace"),
    (lambda folder: write(folder / "a", '{"traceEvents": []}'), NotATrace, "export_chrome_trace"),
    (lambda folder: write(folder / "a", '{"schemaVersion": 1}'), NotATrace, "export_chrome_trace"),
    (lambda folder: write(folder / "a", "[]"), NotATrace, "export_chrome_trace"),
]


@pytest.mark.parametrize(("make", "error", "said"), BAD)
def test_a_file_that_is_no_whole_trace_is_told_in_one_line(
    tmp_path: Path, make: Callable[[Path], Path], error: type[Exception], said: str
) -> None:
    path = make(tmp_path)
    with pytest.raises(error, match=said) as raised:
        read_trace(path)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_trace_without_gpu_work_has_nothing_to_diagnose(tmp_path: Path) -> None:
    for events in ([], [event("cpu_op", "aten::mm", 0, 1)]):
        with pytest.raises(NothingToDiagnose):
            diagnoser.analyze(write(tmp_path / "run.json", events))


def test_half_a_character_becomes_a_mark_that_can_be_written(tmp_path: Path) -> None:
    whole = json.dumps({"schemaVersion": 1, "traceEvents": one_run()})
    for spoiled in (
        whole.replace("nvjet", "\\ud800", 1),
        whole.replace('"correlation"', '"\\udc00": 1, "correlation"', 1),
    ):
        columns = read_trace(write(tmp_path / "run.json", spoiled))
        assert len(columns.kernels) == 2
        "".join(columns.kernel_names).encode()

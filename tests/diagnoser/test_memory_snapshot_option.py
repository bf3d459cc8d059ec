"""`--memory-snapshot` beside a recording or a configuration, and what is none."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from diagnoser.cli import run
from tests.recordings.kineto import one_run, write
from tests.recordings.memory_snapshot import MIB, one_step


def snapshot(path: Path) -> Path:
    path.write_bytes(pickle.dumps(one_step()))
    return path


def test_a_snapshot_beside_a_recording_gives_its_peak(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace, dump = write(tmp_path / "run.json", one_run()), snapshot(tmp_path / "snapshot.pickle")
    assert run(["analyze", str(trace), "--memory-snapshot", str(dump), "-f", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (device,) = document["memory_snapshot"]["devices"]
    assert device["at_peak_bytes"]["optimizer"] == 40 * MIB
    assert document["ranks"][0]["memory"]["peak_bytes"] == device["peak_reserved_bytes"] == 100 * MIB
    assert run(["analyze", str(trace), "--memory-snapshot", str(dump), "--full"]) == 0
    shown = capsys.readouterr().out
    assert "MEMORY OVER TIME" in shown
    assert "torch/optim/adam.py: _init_group < (own code)" in shown
    assert "someone" not in shown
    page = tmp_path / "page.html"
    assert run(["analyze", str(trace), "--memory-snapshot", str(dump), "-o", str(page)]) == 0
    assert 'class="plane filled"' in page.read_text(encoding="utf-8")

"""`doctor`: what a recording lacks, and what that makes impossible."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.simulate.recording import Recording
from diagnoser.cli import run
from tests.places import Export
from tests.recordings.inputs import GEMM


def said(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert run(["doctor", str(path)]) == 0
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines() if not line.startswith("  "))
    return " ".join(out.replace("\\\n", "").split())


def test_what_is_missing_says_what_it_makes_impossible(
    export: Export, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = Recording()
    recording.kernel(GEMM, 0, 100)
    text = said(export(recording), capsys)
    assert "no CUDA calls: without launches it is unknown why no compute ran" in text
    assert "no NVTX ranges: steps are found by their pattern" in text


def test_a_recording_without_gpu_work_is_examined_not_refused(
    export: Export, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no kernels: nothing can be diagnosed" in said(export(Recording()), capsys)


def test_hidden_graph_work_and_clocks_apart_are_named(
    export: Export, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = Recording()
    recording.kernel(GEMM, 0, 100, launch_ns=300_000_000)
    recording.call("cudaGraphLaunch_v10000", 10, 20)
    text = said(export(recording), capsys)
    assert "clocks may differ by about -300 ms" in text
    assert "1 of 1 CUDA graph launches show no work" in text


def test_one_kernel_is_no_recording_to_judge(export: Export, capsys: pytest.CaptureFixture[str]) -> None:
    """The diagnosis has the last word, whatever tables the recording holds."""
    recording = Recording()
    recording.gpu()
    recording.kernel(GEMM, 0, 1_000_000, grid=(132, 1, 1), launch_ns=-9_000, launch_end_ns=-5_000)
    text = said(export(recording), capsys)
    assert "NOT FIT FOR A DIAGNOSIS" in text
    assert "1 kernel and no step: too few to judge a run by" in text

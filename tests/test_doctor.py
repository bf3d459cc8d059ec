"""`doctor`: what a recording holds, lacks, and how to record it better."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from diagnoser.cli import run
from tests.moe_pattern import moe_recording
from traces.simulate.recording import Recording

Export = Callable[..., Path]
GEMM = "nvjet_tst_128x256_64x4_2x1_v_bz_TNT"


def said(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert run(["doctor", str(path)]) == 0
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    return " ".join(out.split())


def test_a_good_recording_lists_what_it_holds(export: Export, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(export(moe_recording()), capsys)
    assert "100.0 % of the kernels have their launch recorded" in text
    assert "no kernels" not in text
    assert "no GPU counter samples" in text
    assert "nsys profile --trace=cuda,nvtx,osrt --cuda-graph-trace=node" in text


def test_what_is_missing_says_what_it_makes_impossible(
    export: Export, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = Recording()
    recording.kernel(GEMM, 0, 100)
    text = said(export(recording), capsys)
    assert "no CUDA calls: why no compute ran cannot be told" in text
    assert "no NVTX ranges: steps must be found without names" in text


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
    assert "clocks may be apart, by about -300 ms" in text
    assert "1 of 1 CUDA graph launches show no work" in text


def test_notes_of_the_profiler_are_told_in_our_words(
    export: Export, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = moe_recording(steps=2, layers=1)
    recording.diagnostic("Not all CUDA events might have been collected on host db01.")
    text = said(export(recording), capsys)
    assert "some CUDA events may be missing" in text
    assert "db01" not in text

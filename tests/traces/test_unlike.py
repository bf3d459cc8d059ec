"""Recordings of other GPUs or programs are refused by name; ranks of one run are not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import diagnoser
from bench.simulate.export import write_export
from bench.simulate.recording import Recording
from diagnoser.running.measured import MeasuredTrace, TraceTask, measure_trace
from traces.errors import UnlikeRuns
from traces.formats.open import ReadOptions
from traces.measurements import RankMeasurements
from traces.steps.selection import Selection
from traces.unlike import refuse_unlike

GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_tn"
OTHER = "volta_sgemm_128x64_nn"
MS = 1_000_000


def recorded(path: Path, kernel: str) -> Path:
    """Two hundred kernels of one name, of 1 ms each."""
    recording = Recording()
    recording.gpu()
    for at in range(200):
        recording.kernel(
            kernel,
            at * MS,
            (at + 1) * MS,
            grid=(132, 1, 1),
            launch_ns=at * MS - 9_000,
            launch_end_ns=at * MS - 5_000,
        )
    write_export(path, recording)
    return path


def measured(path: Path) -> RankMeasurements:
    found = measure_trace(TraceTask(path, Selection(), ReadOptions(), None, only_data_parallel=False))
    assert isinstance(found, MeasuredTrace)
    return found.ranks[0]


def test_two_programs_are_refused_with_their_names(tmp_path: Path) -> None:
    paths = [recorded(tmp_path / "a.sqlite", GEMM), recorded(tmp_path / "b.sqlite", OTHER)]
    with pytest.raises(UnlikeRuns, match=r"different programs, .* a\.sqlite \(.*\); b\.sqlite \("):
        diagnoser.analyze(paths)


def test_two_models_of_gpu_are_refused_and_what_no_trace_tells_is_not(tmp_path: Path) -> None:
    one = measured(recorded(tmp_path / "a.sqlite", GEMM))
    assert one.gpu is not None
    other = replace(one, trace="b.sqlite", gpu=replace(one.gpu, name="NVIDIA GB200"))
    with pytest.raises(UnlikeRuns, match=r"different GPUs, .* b\.sqlite \(GB200\)"):
        refuse_unlike([one, other])
    refuse_unlike([one, replace(other, gpu=None)])
    refuse_unlike([one, replace(other, trace="a.sqlite")])  # two GPUs of one recording
    refuse_unlike([one, replace(one, trace="c.sqlite")])

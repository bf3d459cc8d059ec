"""Recordings of other GPUs or programs are refused by name; ranks of one run are not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.by_hand.run import Run
from traces.errors import UnlikeRuns
from traces.measurements import RankMeasurements
from traces.unlike import refuse_unlike


def measured(kernel: str) -> RankMeasurements:
    run = Run()
    run.work(kernel, 0, 1_000)
    return replace(run.measured(), trace="a.sqlite")


def test_two_programs_are_refused_with_their_names() -> None:
    one, other = measured("gemm"), replace(measured("norm"), trace="b.sqlite")
    with pytest.raises(UnlikeRuns, match=r"different programs, .* a\.sqlite \(.*\); b\.sqlite \("):
        refuse_unlike([one, other])


def test_two_models_of_gpu_are_refused_and_what_no_trace_tells_is_not() -> None:
    one = measured("gemm")
    assert one.gpu is not None
    other = replace(one, trace="b.sqlite", gpu=replace(one.gpu, name="NVIDIA GB200"))
    with pytest.raises(UnlikeRuns, match=r"different GPUs, .* b\.sqlite \(GB200\)"):
        refuse_unlike([one, other])
    refuse_unlike([one, replace(other, gpu=None)])
    refuse_unlike([one, replace(other, trace="a.sqlite")])  # two GPUs of one recording
    refuse_unlike([one, replace(one, trace="c.sqlite")])

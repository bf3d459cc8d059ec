"""One step in the order of its launches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.simulate.recording import Recording
from tests.recordings.launches import ADAM, GEMM, NORM, rank_of
from traces.measure.sequence import measure_sequence
from traces.missing import Missing, known
from traces.sections.tables import Sequence
from traces.steps.found import Step, Steps, from_steps, one_window

Export = Callable[..., Path]


def _sequence(export: Export, recording: Recording, steps: Steps) -> Sequence:
    found = measure_sequence(rank_of(export(recording)), steps)
    assert not isinstance(found, Missing)
    return found


def _one(start_ns: int, end_ns: int) -> Steps:
    return from_steps("nvtx", "iteration N", (Step(0, start_ns, end_ns),))


def test_layers_are_a_loop_whose_runs_hold_the_work_of_all_passes(export: Export) -> None:
    recording = Recording()
    for layer in range(4):
        at = 1_000 + 100 * layer
        recording.kernel(GEMM, at, at + 30, launch_ns=at - 500)
        recording.kernel(NORM, at + 40, at + 50, launch_ns=at - 490)
    recording.kernel(ADAM, 1_500, 1_700, launch_ns=1_200)
    found = _sequence(export, recording, _one(0, 2_000))
    assert [found.kinds[of].name for of in found.of] == [GEMM, NORM, ADAM]
    assert found.work_ns == (4 * 30, 4 * 10, 200)
    assert (found.loops.first_run, found.loops.run_count, found.loops.times) == ((0,), (2,), (4,))
    assert found.step == 0


def test_kernels_stand_in_the_order_of_their_launches_whenever_they_run(export: Export) -> None:
    recording = Recording()
    recording.kernel(GEMM, 1_000, 1_100, launch_ns=500, stream=7)
    recording.kernel(NORM, 900, 950, launch_ns=600, stream=20)
    found = _sequence(export, recording, _one(0, 2_000))
    assert [found.kinds[of].name for of in found.of] == [GEMM, NORM]


def test_only_time_in_the_step_is_work(export: Export) -> None:
    recording = Recording()
    recording.kernel(GEMM, 0, 100)
    recording.kernel(GEMM, 100, 200)
    recording.kernel(GEMM, 300, 400)
    found = _sequence(export, recording, _one(50, 150))
    assert (found.run_length, found.work_ns) == ((2,), (100,))


def test_copies_have_their_kind_and_bytes(export: Export) -> None:
    recording = Recording()
    recording.copy("h2d", 0, 10, size_bytes=1_000)
    recording.copy("h2d", 10, 20, size_bytes=24)
    recording.kernel(GEMM, 20, 30)
    found = _sequence(export, recording, _one(0, 100))
    (copies,) = [kind for kind in found.kinds if kind.name is None]
    assert (copies.key, copies.size_bytes) == ("copy.memcpy_h2d", 1_024)
    assert {kind.size_bytes for kind in found.kinds if kind.name} == {None}


def test_without_steps_it_is_of_the_window(export: Export) -> None:
    recording = Recording()
    recording.kernel(GEMM, 0, 10)
    found = _sequence(export, recording, one_window("none", "", 0, 100))
    assert isinstance(found.step, Missing)
    assert found.work_ns == (10,)


def test_a_step_that_repeats_nothing_is_missing(export: Export, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traces.measure.sequence.RUNS", type("Few", (), {"value": 2}))
    recording = Recording()
    for place, name in enumerate((GEMM, NORM, ADAM)):
        recording.kernel(name, 10 * place, 10 * place + 5)
    found = measure_sequence(rank_of(export(recording)), _one(0, 100))
    assert known(found) is None

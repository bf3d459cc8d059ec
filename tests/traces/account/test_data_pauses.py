"""A pause before the input copies of a step is data loading; other pauses are not."""

from __future__ import annotations

from pathlib import Path

import pytest

import diagnoser
from bench.simulate.export import write_export
from bench.simulate.recording import Recording
from diagnoser.running.measured import MeasuredTrace, TraceTask, measure_trace
from tests.recordings.loading import MS, loading
from traces.formats.open import ReadOptions
from traces.replay.changes.costs import Costs
from traces.steps.selection import Selection


@pytest.mark.parametrize(("equal", "cause"), [(True, "data"), (False, "python")])
def test_a_pause_before_a_copy_that_recurs_is_a_wait_for_data(
    tmp_path: Path, equal: bool, cause: str
) -> None:
    """Three pauses of 10 ms lie between the launches; the fourth is before anything of the window."""
    path = tmp_path / "run.sqlite"
    write_export(path, loading(10, equal=equal))
    starved = diagnoser.analyze(path).to_dict()["ranks"][0]["absent_ns"]["launch_starved"]
    assert {one: ns for one, ns in starved.items() if one != "launch"} == {cause: 30 * MS}


def test_a_helper_thread_that_decodes_in_a_pause_does_not_cut_what_it_costs(tmp_path: Path) -> None:
    """Three pauses of 10 ms, of which the GPU computes 1 ms each for the other thread: 27 ms."""
    recording = loading(10)
    for step in range(4):
        at = (step * 36 + 5) * MS
        name = "void dali::kernels::transforms::SliceFlipNormalizePermutePadKernel<float, unsigned char, 3>()"
        recording.kernel(
            name, at, at + MS, stream=9, tid=2000, launch_ns=at - 9_000, launch_end_ns=at - 5_000
        )
    path = tmp_path / "run.sqlite"
    write_export(path, recording)
    document = diagnoser.analyze(path).to_dict()
    assert document["verdict"]["kind"] == "data"
    (host,) = (wall for wall in document["walls"] if wall["id"] == "host_overhead")
    assert host["cost_by_kind_ns"]["data"] == pytest.approx(27 * MS, rel=0.01)


def test_a_step_that_is_one_graph_begins_with_its_wait_for_the_batch(tmp_path: Path) -> None:
    """Four steps of 40 ms: 10 ms of pause, 1 of input copy, 28 of one graph and 1 of a copy to the host."""
    recording = Recording()
    recording.gpu()
    for begin in range(0, 160 * MS, 40 * MS):
        at = begin + 10 * MS
        recording.copy("h2d", at, at + MS, size_bytes=1 << 20, launch_ns=at, launch_end_ns=at + MS)
        recording.graph_replay(
            at + MS, at + 29 * MS, launch_ns=at + MS - 9_000, launch_end_ns=at + MS - 5_000
        )
        end = at + 30 * MS
        recording.copy("d2h", end - MS, end, size_bytes=64, launch_ns=at + MS, launch_end_ns=end)
    path = tmp_path / "run.sqlite"
    write_export(path, recording, "3.25.0")
    rank = diagnoser.analyze(path).to_dict()["ranks"][0]
    assert rank["steps"]["source"] == "graph"
    begins = [step["start_ns"] for step in rank["steps"]["used"]]
    assert begins == [10 * MS, 40 * MS, 80 * MS, 120 * MS]  # the first one with its batch: nothing was before
    assert rank["absent_ns"]["launch_starved"]["data"] == 30 * MS


def test_more_workers_save_a_quarter_of_the_waits_to_all_of_them(tmp_path: Path) -> None:
    """Three waits of 10 ms lie in the window."""
    path = tmp_path / "run.sqlite"
    write_export(path, loading(10))
    measured = measure_trace(TraceTask(path, Selection(), ReadOptions(), None, only_data_parallel=False))
    assert isinstance(measured, MeasuredTrace)
    costs = measured.ranks[0].costs
    assert isinstance(costs, Costs)
    (change,) = [one for one in costs.changes if one.kind == "batches_in_time"]
    assert change.low_ns is not None
    assert change.high_ns == pytest.approx(30 * MS, abs=0.1 * MS)
    assert change.low_ns == pytest.approx(7.5 * MS, abs=0.1 * MS)

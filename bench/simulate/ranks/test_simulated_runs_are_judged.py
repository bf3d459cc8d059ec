"""Simulated runs with one known cause, on clocks of their own: who is late, why, and what it costs."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from bench.simulate.ranks.clocks import draw_clocks
from bench.simulate.ranks.described import Cause
from bench.simulate.ranks.drawn import draw_run
from bench.simulate.ranks.recorded import Capture, Files, write_ranks
from bench.simulate.ranks.truth import Truth
from tests.recordings.ranks import analyse_run, summaries_in
from traces.sections.run import Late, Run, RunWithout

SEED, TWICE = 21, 22
"""In the first run a batch comes late once, which is no habit; in the other in two steps of five."""


@cache
def simulated(cause: Cause) -> Truth:
    return draw_run(TWICE if cause is Cause.DATA_LOADER else SEED, cause)


def judged(truth: Truth, folder: Path, capture: Capture) -> Run:
    written = write_ranks(truth.done, folder, draw_clocks(truth.run), capture)
    return analyse_run([summary for one in written for summary in summaries_in(one.path)])


@pytest.mark.parametrize("cause", [cause for cause in Cause if cause is not Cause.PIPELINE_IMBALANCE])
def test_cause_rank_and_wait_are_those_of_the_simulator(cause: Cause, tmp_path: Path) -> None:
    truth = simulated(cause)
    run = judged(truth, tmp_path, Capture(mpi=True))
    assert isinstance(run.late, Late)
    assert (run.late.cause.value, run.late.rank) == (cause.value, truth.late_rank)
    assert run.clocks.aligned
    if cause is not Cause.NONE:
        late = truth.ranks or range(truth.run.layout.world_size)
        skipped = truth.run.knobs.step_count - run.steps
        wait_ns = sum(
            sum(one.waits_ns().values())
            for one in truth.done.instances()
            if one.late in late and one.step >= skipped
        )
        assert run.late.wait_ns == pytest.approx(wait_ns, rel=0.06)
        assert isinstance(run.without, RunWithout)
        saved_frac = 1 - truth.mended.whole_ns / truth.done.whole_ns
        assert run.without.saved_frac == pytest.approx(saved_frac, abs=0.03)


def test_a_stage_with_more_layers_is_found_and_what_even_stages_save(tmp_path: Path) -> None:
    truth = simulated(Cause.PIPELINE_IMBALANCE)
    run = judged(truth, tmp_path, Capture(mpi=True))
    assert isinstance(run.late, Late)
    assert run.late.cause.value == Cause.PIPELINE_IMBALANCE.value
    assert run.late.group is not None
    assert tuple(run.ranks[place].rank for place in run.groups[run.late.group].ranks) == truth.ranks
    assert isinstance(run.without, RunWithout)
    saved_frac = 1 - truth.mended.whole_ns / truth.done.whole_ns
    assert run.without.saved_frac == pytest.approx(saved_frac, abs=0.03)


@pytest.mark.parametrize("files", Files)
def test_one_file_or_several_say_the_same(files: Files, tmp_path: Path) -> None:
    truth = simulated(Cause.SLOW_DEVICE)
    one = judged(truth, tmp_path, Capture(mpi=True, files=files))
    assert isinstance(one.late, Late)
    assert (one.late.cause.value, one.late.rank) == (Cause.SLOW_DEVICE.value, truth.late_rank)
    assert one.late.wait_ns == pytest.approx(truth.wait_ns, rel=0.01)

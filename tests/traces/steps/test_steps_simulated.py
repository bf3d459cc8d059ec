"""Steps of simulated runs, found from what was recorded, against where they truly lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.score.truth import optimizer_borders_ns, shown_borders_ns, step_borders_ns
from bench.simulate.export import write_export
from bench.simulate.knobs import Knobs
from bench.simulate.recorded import START_NS, View, record, recorded_steps
from bench.simulate.run import Run, run
from traces.formats.open import read_trace
from traces.steps.choose import choose_steps
from traces.steps.found import Steps
from traces.steps.selection import parse_selection
from traces.timeline import build

NEAR = 0.01
"""Borders that far from the true ones, as part of a step, are the true ones."""


def found_in(simulated: Run, view: View, path: Path) -> Steps:
    write_export(path, record(simulated, view), view.schema)
    (rank,) = build(read_trace(path)).ranks
    return choose_steps(rank, parse_selection())


def true_steps(simulated: Run, view: View) -> list[tuple[int, int]]:
    """Whole recorded steps: by their range, else from optimizer to optimizer."""
    way = step_borders_ns if view.ranges != "none" else optimizer_borders_ns
    borders = shown_borders_ns(view, way, simulated)
    return [
        (START_NS + borders[step], START_NS + borders[step + 1]) for step in recorded_steps(simulated, view)
    ]


WHOLE, CUT, EDGES = (0.0, 0.0), (0.6, 0.3), (1.0, 1.0)


@pytest.mark.parametrize("ranges", ["none", "steps"])
@pytest.mark.parametrize("cut", [WHOLE, CUT, EDGES], ids=["whole", "cut", "at edges"])
@pytest.mark.parametrize("optimizers", ["adam", "two_adams", "muon_adam"])
@pytest.mark.parametrize("accumulation", [1, 8])
def test_every_whole_step_is_used_and_nothing_else(
    ranges: str, cut: tuple[float, float], optimizers: str, accumulation: int, tmp_path: Path
) -> None:
    simulated = run(Knobs(step_count=4, layer_count=2, microbatch_count=accumulation, optimizers=optimizers))
    view = View(ranges=ranges, begin_frac=cut[0], end_frac=cut[1])
    steps = found_in(simulated, view, tmp_path / "run.sqlite")
    assert steps.source == ("optimizer" if ranges == "none" else "nvtx")
    expected = true_steps(simulated, view)
    assert len(steps.used) == len(expected)
    for found, (start_ns, end_ns) in zip(steps.used, expected, strict=True):
        near_ns = NEAR * (end_ns - start_ns)
        assert found.start_ns == pytest.approx(start_ns, abs=near_ns)
        assert found.end_ns == pytest.approx(end_ns, abs=near_ns)


def test_thirty_two_microbatches_are_one_step(tmp_path: Path) -> None:
    simulated = run(Knobs(step_count=3, layer_count=1, microbatch_count=32, optimizers="two_adams"))
    steps = found_in(simulated, View(ranges="none"), tmp_path / "run.sqlite")
    assert [step.index for step in steps.used] == [0, 1, 2]


def test_one_named_step_recorded_alone_is_a_step(tmp_path: Path) -> None:
    simulated = run(Knobs(step_count=3, layer_count=2))
    steps = found_in(simulated, View(begin_frac=1.0, end_frac=1.0), tmp_path / "run.sqlite")
    assert (steps.source, len(steps.used)) == ("nvtx", 1)

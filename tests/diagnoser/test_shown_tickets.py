"""Tickets that are shown are made again."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import diagnoser
from bench.simulate.export import write_export
from bench.simulate.knobs import Knobs
from bench.simulate.recorded import View, record
from bench.simulate.run import run
from bench.simulate.scenarios import SCENARIOS
from reports.result.codec import Document
from tests.places import ROOT, Reviewed
from tests.read_back import rendering

TICKETS = ROOT / "docs" / "tickets"
BEFORE = Knobs(seed=1, step_count=10, layer_count=3, python_us=9.0, dispatcher="deepep", dispatch_us=150.0)
AFTER = Knobs(seed=2, step_count=10, layer_count=3, python_us=9.0, dispatcher="alltoall", dispatch_us=400.0)
RECORDED = "a100_llm_2_7B_nvtx.sqlite"


def written(path: Path, knobs: Knobs) -> Path:
    write_export(path, record(run(knobs), View()), View().schema)
    return path


def analyzed(path: Path, config: Path | None = None) -> Document:
    told = diagnoser.analyze(path, config=config, ask_megatron=False).to_dict()
    return {**told, "command": f"moe-diag analyze {path.name}"}


@cache
def simulated(scenario: str, steps: int = 4) -> Document:
    """The diagnosis of a scenario of the demo."""
    with TemporaryDirectory() as folder:
        knobs = replace(SCENARIOS[scenario], step_count=steps)
        return analyzed(written(Path(folder) / f"simulated_{scenario}.sqlite", knobs))


@cache
def regression() -> Document:
    with TemporaryDirectory() as folder:
        before = written(Path(folder) / "simulated_before.sqlite", BEFORE)
        after = written(Path(folder) / "simulated_after.sqlite", AFTER)
        told = diagnoser.compare(before, after).to_dict()
        return {**told, "command": f"moe-diag compare {before.name} {after.name}"}


@pytest.mark.parametrize("scenario", ["communication", "host_overhead"])
def test_a_simulated_ticket_that_is_shown_is_what_is_written(scenario: str, reviewed: Reviewed) -> None:
    text = rendering.text(simulated(scenario), "markdown")
    assert text == reviewed(TICKETS / f"simulated_{scenario}.md", text)


def test_the_regression_that_is_shown_is_what_is_written(reviewed: Reviewed) -> None:
    text = rendering.text(regression(), "markdown")
    assert text == reviewed(TICKETS / "simulated_regression.md", text)


def test_the_recorded_ticket_that_is_shown_is_what_is_written(recordings: Path, reviewed: Reviewed) -> None:
    text = rendering.text(analyzed(recordings / RECORDED), "markdown")
    assert text == reviewed(TICKETS / "recorded_inference.md", text)

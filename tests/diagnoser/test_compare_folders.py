"""A side of a comparison may be a folder, or a pattern, of the recordings of all ranks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import diagnoser
from bench.simulate.ranks.described import Cause
from bench.simulate.ranks.happened import simulate
from bench.simulate.ranks.recorded import Capture
from diagnoser.diagnosis import Diagnosis
from tests.read_back.rendering import text
from tests.recordings.sets import RUN, written
from traces.errors import TraceNotFound


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two runs: as it was, and with a slow GPU."""
    home = tmp_path_factory.mktemp("runs")
    for name, run in (("before", replace(RUN, cause=Cause.NONE, rank=None)), ("after", RUN)):
        written(simulate(run), home / name, Capture(mpi=True))
    return home


def compared(base: Path | Diagnosis, new: Path | Diagnosis) -> dict[str, Any]:
    """The comparison, without the line that makes it again."""
    document = diagnoser.compare(base, new).to_dict()
    return {key: value for key, value in document.items() if key != "command"}


def test_folders_patterns_and_results_of_all_ranks_compare_alike(runs: Path) -> None:
    before, after = runs / "before", runs / "after"
    by_folder = compared(before, after)
    assert by_folder["run"]["late"]["new"]["rank"] == 1
    assert compared(before / "*.sqlite", after / "*.sqlite") == by_folder
    assert compared(diagnoser.analyze(before), diagnoser.analyze(after)) == by_folder


def test_the_report_names_how_many_recordings_each_side_has(runs: Path) -> None:
    document = diagnoser.compare(runs / "before", runs / "after").to_dict()
    report = text(document, "text")
    assert "and 3 more ->" in report
    assert "moe-diag analyze NEW/" in report


def test_a_folder_without_recordings_is_named_with_its_side(runs: Path) -> None:
    with pytest.raises(TraceNotFound, match=r"^new: .*has no recordings"):
        diagnoser.compare(runs / "before", runs)

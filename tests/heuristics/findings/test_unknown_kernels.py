"""A kernel no rule names: its figures, and that it is said where it fills much of the window."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import diagnoser
from bench.simulate.recording import Recording
from reports.content.blocks import Detail
from tests.read_back.rendering import text
from tests.read_back.visible_text import visible

Export = Callable[..., Path]
US = 1_000


def two_steps(mystery_us: int) -> Recording:
    """Two steps of 100 us: three kernels of no known name, together that long, then a GEMM to the end."""
    recording = Recording()
    for step in range(2):
        at = (100 + 100 * step) * US
        recording.range(f"iteration {step}", at - 20 * US, at + 70 * US)
        for place, grid in enumerate(((64, 2, 1), (64, 2, 1), (8, 1, 1))):
            start = at + place * mystery_us * US // 3
            length = mystery_us * US // 3
            recording.kernel("mystery<int>()", start, start + length, grid=grid, launch_ns=at - 9 * US)
        recording.kernel("nvjet_tst_128x256", at + mystery_us * US, at + 100 * US, launch_ns=at - 8 * US)
    return recording


def shown(path: Path, form: str, detail: Detail = Detail.FIRST) -> str:
    """What a reader of a format sees of the diagnosis, on one line."""
    said = text(diagnoser.analyze(path).to_dict(), form, detail)
    return " ".join(visible(form, said).replace("\u00a0", " ").split())


def test_its_figures_are_told(export: Export) -> None:
    document = diagnoser.analyze(export(two_steps(30))).to_dict()
    (found,) = document["ranks"][0]["unknown_kernels"]
    assert found == {
        "name": "mystery<int>()",
        "frac": 0.3,
        "busy_ns": 60 * US,
        "count": 6,
        "mean_ns": 10 * US,
        "grid": [64, 2, 1],
        "per_step_ns": 30 * US,
        "finding": True,
        "probably_communication": False,
    }
    assert document["verdict"]["wall"] is None  # a finding, and no wall


@pytest.mark.parametrize("form", ["markdown", "jira", "html"])
def test_one_of_over_a_twentieth_is_said_beside_the_verdict_and_in_full_with_its_figures(
    export: Export, form: str
) -> None:
    path = export(two_steps(30))
    assert "mystery 30 %: counted as compute, purpose unknown." in shown(path, form)
    whole = shown(path, form, Detail.FULL)
    assert "Kernels of unknown purpose: no rule names them" in whole
    row = r"mystery\W+6\W+0\.03\W+30 %\W+10\.0 us\W+64 x 2 x 1"  # count, ms per step, share, mean, grid
    assert re.search(row, whole)


def test_one_of_less_is_no_finding(export: Export) -> None:
    document = diagnoser.analyze(export(two_steps(3))).to_dict()
    assert document["ranks"][0]["unknown_kernels"][0]["finding"] is False
    assert "purpose unknown" not in shown(export(two_steps(3), "again.sqlite"), "text")

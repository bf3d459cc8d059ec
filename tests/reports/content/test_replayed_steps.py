"""Of a long recording the document and the text say which steps costs and savings rest on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import diagnoser
import traces.steps.sample as sample
from bench.simulate.recording import Recording
from tests.doubles.pages import flat, whole_text
from traces.limits import Limit

US = 1_000
NAME = "nvjet_tst_128x256_64x4_2x1_v_bz_TNT"


def analyzed(export: Callable[..., Path], launched: bool = True) -> Any:
    """Six steps of 100 us with one kernel of 60 us each."""
    recording = Recording()
    for step in range(6):
        begin = (1_000 + 100 * step) * US
        recording.range(f"iteration {step}", begin, begin + 99 * US)
        launch_ns = begin + US if launched else None
        recording.kernel(NAME, begin + 10 * US, begin + 70 * US, launch_ns=launch_ns)
    return diagnoser.analyze(export(recording))


def replayed(found: Any) -> list[int]:
    indexes: list[int] = found.to_dict()["ranks"][0]["steps"]["replayed"]
    return indexes


def test_few_steps_are_all_replayed_and_nothing_is_said(export: Callable[..., Path]) -> None:
    found = analyzed(export)
    assert replayed(found) == [0, 1, 2, 3, 4, 5]
    assert "were replayed" not in flat(whole_text(found.to_dict()))


def test_of_many_steps_it_is_said_how_many_were_replayed(
    export: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample, "MOST", Limit(3, "steps", "a test's"))
    found = analyzed(export)
    assert replayed(found) == [1, 3, 5]
    assert len(found.to_dict()["ranks"][0]["steps"]["used"]) == 6
    assert "3 of 6 steps were replayed" in flat(whole_text(found.to_dict()))


def test_without_launches_nothing_was_replayed(export: Callable[..., Path]) -> None:
    assert replayed(analyzed(export, launched=False)) == []

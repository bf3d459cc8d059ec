"""Hiccups have a line of their own on the first screen, and runs without any have none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import diagnoser
from bench.simulate.recording import Recording
from tests.doubles.pages import first_screen, flat

MS = 1_000_000


@pytest.mark.parametrize(
    ("slow", "said"),
    [
        ((), ""),
        ((6,), "Left out: 1 far longer step (hiccups), 30.0 ms beyond the median together."),
        ((6, 9), "Left out: 2 far longer steps (hiccups), 60.0 ms beyond the median together."),
    ],
)
def test_hiccups_are_said_with_what_they_cost(
    export: Callable[..., Path], slow: tuple[int, ...], said: str
) -> None:
    """12 steps of 10 ms, of which some take 40: 30 ms more each."""
    recording, at = Recording(), MS
    recording.gpu()
    for step in range(12):
        took_ns = (40 if step in slow else 10) * MS
        recording.range(f"iteration {step}", at, at + took_ns)
        recording.kernel(
            "elementwise_kernel", at + 5_000, at + took_ns, grid=(132, 1, 1), launch_ns=at + 1_000
        )
        at += took_ns
    text = flat(first_screen(diagnoser.analyze(export(recording)).to_dict()))
    assert said in text
    assert ("hiccup" in text) is bool(said)

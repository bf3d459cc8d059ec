"""Kernels that no rule names: never clear of communication, and probably it where streams say so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import diagnoser
from tests.doubles.pages import first_screen, flat
from tests.recordings.unnamed import MAIN, Exchanging

Export = Callable[..., Path]


def analysed(export: Export, run: Exchanging) -> dict[str, Any]:
    return diagnoser.analyze(export(run.made())).to_dict()


def wall(document: dict[str, Any], id_: str) -> dict[str, Any]:
    return next(one for one in document["walls"] if one["id"] == id_)


@pytest.mark.parametrize("blocks", [8, 24, 132])
@pytest.mark.parametrize("names", [("exchange_kernel",), ("put_rows", "await_rows")])
@pytest.mark.parametrize("events", [True, False])
def test_what_has_its_own_stream_and_holds_compute_up_is_probably_communication(
    export: Export, blocks: int, names: tuple[str, ...], events: bool
) -> None:
    run = Exchanging(names, blocks, events=events, steps=3 if events else 8)
    document = analysed(export, run)
    assert [one["probably_communication"] for one in document["ranks"][0]["unknown_kernels"]] == [True] * len(
        names
    )
    communication = wall(document, "communication")
    assert (communication["outcome"], communication["cost_frac"]) == ("unmeasurable", None)
    assert communication["at_most_frac"] == pytest.approx(0.2, abs=0.03)
    assert (wall(document, "compute")["outcome"], wall(document, "compute")["cost_ns"]) == ("clear", 0)
    screen = flat(first_screen(document))
    assert any(f"MAY BE SLOWED BY {name}" in screen for name in names)
    assert "probably communication: " in screen
    assert "too small to fill the GPU" not in screen
    assert "CMP-4" not in screen


def test_a_stream_of_the_models_own_unknown_kernels_is_none(export: Export) -> None:
    """Nine tenths of all are of unknown class, and what is known waits for them."""
    run = Exchanging(names=("my_model_kernel",), exchange_us=225)
    document = analysed(export, run)
    assert [one["probably_communication"] for one in document["ranks"][0]["unknown_kernels"]] == [False]


def test_what_compute_hides_is_not_said_to_be_communication(export: Export) -> None:
    document = analysed(export, Exchanging(ahead=True))
    assert [one["probably_communication"] for one in document["ranks"][0]["unknown_kernels"]] == [False]


@pytest.mark.parametrize("blocks", [24, 528])
def test_what_runs_on_the_stream_of_compute_may_be_either_and_its_shape_moves_no_advice(
    export: Export, blocks: int
) -> None:
    document = analysed(export, Exchanging(blocks=blocks, stream=MAIN))
    assert [one["probably_communication"] for one in document["ranks"][0]["unknown_kernels"]] == [False]
    assert wall(document, "communication")["outcome"] == "unmeasurable"
    assert document["verdict"]["confidence"] != "high"
    assert "CMP-4" not in [one["id"] for one in document["fixes"]]


def test_a_twentieth_and_more_does_not_though_it_is_no_wall_either(export: Export) -> None:
    document = analysed(export, Exchanging(some=3))  # 150 us of 2 ms
    communication = wall(document, "communication")
    assert communication["outcome"] == "unmeasurable"
    assert 0.05 < communication["at_most_frac"] < 0.1
    assert "of the time) is probably communication" in flat(first_screen(document))

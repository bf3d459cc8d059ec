"""The first screen: what is to be typed is whole in any terminal, and figures together are of a replay."""

from __future__ import annotations

from typing import Any

import pytest

from diagnoser.demo import RECORDINGS, SEVERAL
from heuristics.comparison.enough import enough_steps
from heuristics.result.result import Result
from reports.content.analysis import page
from reports.content.blocks import Command, Plan
from reports.content.page import Detail, View
from reports.result.codec import decode
from reports.result.read import of_one_run, typed
from reports.write.text import write_text
from tests.doubles.pages import first_screen, flat
from tests.recordings.simulated import scenario

WIDTHS = (60, 80, 120, 200)


@pytest.mark.parametrize("rows", [40, 60, 100])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", [name for name in RECORDINGS if name not in SEVERAL])
def test_what_is_to_be_typed_is_whole_in_a_terminal_of_any_size(name: str, width: int, rows: int) -> None:
    shown = page(decode(scenario(name), Result), Detail.FIRST, rows)
    text = flat(write_text(shown, View(width, rows)).replace("\\\n", ""))
    (plan,) = (block for block in shown.blocks if isinstance(block, Plan))
    (command,) = (block for block in shown.blocks if isinstance(block, Command))
    assert flat(command.line) in text
    for step in plan.steps:
        if f"[{step.id}]" in text:
            assert all(flat(line) in text for one in step.in_use for line in one.code.lines)


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_last_line_is_the_next_command(name: str) -> None:
    """Where no change is planned, here for pauses whose cause nothing shows, there is none to compare.

    Where steps are too few or vary too much for a comparison, more are recorded first, unless only logs hold
    enough.
    """
    document = scenario(name)
    found = enough_steps(of_one_run(typed(document)))
    command = (
        ("compare" if found.decides or found.record is None else "capture")
        if document["fixes"] or document["levers"]
        else "doctor"
    )
    assert f"moe-diag {command}" in flat(first_screen(document))[-120:]


def test_routing_that_is_forced_even_is_said_with_what_it_hides() -> None:
    document = {**scenario("healthy"), "given": {"routing": "force_balance"}}
    text = flat(first_screen(document))
    assert "Routing is forced to balance" in text
    assert "32 % MFU balanced, 15 % with its learned router (marin#7668)" in text
    assert "Routing is forced" not in first_screen(scenario("healthy"))


def apart(document: dict[str, Any]) -> dict[str, Any]:
    """With fixes of which each acts on a kind of its own, so that each is a step."""
    return {**document, "fixes": [{**fix, "acts_on": {}} for fix in document["fixes"]]}


def test_listed_steps_have_one_replayed_figure_together_and_never_a_sum() -> None:
    document = apart(scenario("memory"))
    ids = [fix["id"] for fix in document["fixes"][:3]]
    combined = {**document, "combined": [{"ids": ids, "gain_frac": [0.1, 0.25]}]}
    assert "All three together save 10-25 %." in first_screen(combined)
    assert "together" not in first_screen(document).partition("DO THIS")[2]

"""A known trouble on the first screen: above the plan where the log shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from diagnoser import analyze
from diagnoser.demo import unpack
from heuristics.result.configured import Incident
from reports.content.analysis import page
from reports.content.blocks import Detail, View
from reports.write.text import write_text


@pytest.mark.parametrize(
    ("fix", "state", "above"), [("COM-2", "met", False), ("MEM-1", "met", False), ("MEM-1", "seen", True)]
)
def test_a_known_trouble_stands_above_the_plan_where_the_log_shows_it(
    fix: str, state: Any, above: bool, tmp_path: Path
) -> None:
    unpack(tmp_path / "run.sqlite", "communication")
    trouble = Incident("X#1", state, "slow", "It is slow.", "Change it.", fix, {}, (), (), (), (), "a thread")
    found = replace(analyze(tmp_path / "run.sqlite").result, incidents=(trouble,))
    text = write_text(page(found, Detail.FIRST), View(100, 100))
    assert (text.index("X#1") < text.index("DO THIS")) is above

"""Public threads whose cause is known: what the first screen holds of each, and what it must not."""

from __future__ import annotations

import re
from typing import Final

import pytest

from diagnoser.cli import run
from tests.configurations.field_cases import ANSWERS, command
from tests.places import DATA

CASES: Final = DATA / "field_cases"
NUMBERS: Final = re.compile(r"^(Throughput|Memory|Workflow)\b", re.MULTILINE)
"""Where the numbers of a first screen begin: what stands before them is read first."""


@pytest.mark.parametrize("name", ANSWERS)
def test_the_cause_of_a_thread_stands_on_the_first_screen(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command(CASES / name)) == 0
    text = capsys.readouterr().out
    begins = NUMBERS.search(text)
    before = " ".join(text[: begins.start() if begins else len(text)].split())
    whole = " ".join(text.split())
    assert [one for one in ANSWERS[name]["must"] if not re.search(one, before)] == []  # type: ignore[attr-defined]
    assert [one for one in ANSWERS[name]["never"] if re.search(one, whole)] == []  # type: ignore[attr-defined]

"""Configurations that a reader of the guides wrote: what the first screen must have, and what it must not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.configurations.config_cases import CASES, expected, screen


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_is_judged_as_a_reader_of_the_guides_does(
    case: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    says = expected(case)
    code, text = screen(case, capsys)
    assert code == says["code"]
    assert [one for one in says["must"] if one not in text] == []
    assert [one for one in says["never"] if one in text] == []
    step = re.search(r" 1 [^\[\]]*\[([A-Z]+-\d+)\]", text.partition("DO THIS")[2])
    assert (step[1] if step else "") in (says["first"] or [""])

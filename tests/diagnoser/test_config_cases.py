"""Configurations that a reader of the guides wrote: what the first screen must have, and what it must not."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from diagnoser.cli import run
from tests.places import DATA

CASES = sorted(one for one in (DATA / "config_cases").iterdir() if one.is_dir())


def screen(case: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    """The exit code, and the output with its lines joined."""
    files = {one.stem: one for one in case.iterdir()}
    file = files.get("config") or files["run"]
    given = [*expected(case)["options"], "--no-megatron", *options]
    if "symptoms" in files:
        given += ["--symptoms", str(files["symptoms"])]
    code = run(["check-config", str(file), *given])
    return code, " ".join(capsys.readouterr().out.split())


def expected(case: Path) -> dict[str, Any]:
    return tomllib.loads((case / "expected.toml").read_text(encoding="utf-8"))


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

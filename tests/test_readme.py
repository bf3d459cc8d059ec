"""The README cannot lie about what the program prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from diagnoser.cli import run

README = Path(__file__).resolve().parent.parent / "README.md"


def test_the_readme_shows_the_demos_real_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo"]) == 0
    blocks = re.findall(r"```\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert capsys.readouterr().out in blocks


@pytest.mark.parametrize("command", ["analyze", "demo"])
def test_every_command_is_in_the_readme_and_has_help(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        f"moe-diag {command}" in README.read_text(encoding="utf-8") or f"make {command}" in README.read_text()
    )
    assert run([command, "--help"]) == 0
    assert "Usage:" in capsys.readouterr().out

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


def test_the_readme_shows_what_compare_really_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for scenario in ("graphs", "graphs_lost"):
        assert run(["demo", scenario, "--keep", f"{scenario}.sqlite"]) == 0
    capsys.readouterr()
    assert run(["compare", "graphs.sqlite", "graphs_lost.sqlite", "--gate", "3%"]) == 1
    (shown,) = re.findall(
        r"\$ moe-diag compare graphs.*\n((?:.*\n)*?)\[\.\.\.\]\n", README.read_text(encoding="utf-8")
    )
    assert len(shown.splitlines()) > 30
    assert capsys.readouterr().out.startswith(shown)


@pytest.mark.parametrize(
    "command",
    ["analyze", "compare", "report", "history", "check-config", "doctor", "explain", "demo"],
)
def test_every_command_is_in_the_readme_and_has_help(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        f"moe-diag {command}" in README.read_text(encoding="utf-8") or f"make {command}" in README.read_text()
    )
    assert run([command, "--help"]) == 0
    assert "Usage:" in capsys.readouterr().out

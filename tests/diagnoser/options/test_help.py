"""The help of each command: one screen, and everything where all is asked for."""

from __future__ import annotations

import re

import pytest

from diagnoser.cli import COMMANDS, run
from diagnoser.options import by_title

SCREEN = 40
LONG = ("analyze", "check-config", "compare", "plan", "report", "merge", "demo")


@pytest.fixture(autouse=True)
def _eighty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run([*words]) == 0
    return capsys.readouterr().out


def flags(text: str) -> set[str]:
    """Options that a help lists, by their first word."""
    return set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", text, re.MULTILINE))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_is_one_screen(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(said(capsys, name, "--help").splitlines()) <= SCREEN


@pytest.mark.parametrize("name", LONG)
def test_all_of_the_help_has_each_option_once(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    screen, whole = said(capsys, name, "--help"), said(capsys, name, "--help-all")
    found = re.search(rf"^All (\d+) options: moe-diag {name} --help-all$", screen, re.MULTILINE)
    assert found
    assert len(flags(whole)) == int(found[1])
    assert flags(screen) < flags(whole)
    assert flags(screen)
    titles = re.findall(r"^(\w[\w ]*):$", whole, re.MULTILINE)
    assert titles == [one for one in by_title() if one in titles]


def test_all_help_is_that_of_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help-all"]) == 0
    text = capsys.readouterr().out
    for name in COMMANDS:
        assert f"Usage: moe-diag {name} " in text
    assert "Usage: moe-diag history add " in text
    assert run(["history", "--help-all"]) == 0
    assert capsys.readouterr().out in text

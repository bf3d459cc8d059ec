"""The help of each command: one screen, and everything where all is asked for."""

from __future__ import annotations

import re

import pytest

from diagnoser.cli import COMMANDS, run
from diagnoser.options import help
from heuristics.config.about import OPTIONS, option_of

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
    assert titles == [one for one in ("Arguments", *help._GROUPS) if one in titles]


def test_all_of_the_help_has_every_fact_of_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert {option_of(field) for field in OPTIONS} <= flags(said(capsys, "analyze", "--help-all"))


def test_every_option_of_a_group_is_one_of_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    shown = set[str]()
    for name in LONG:
        shown |= flags(said(capsys, name, "--help-all"))
    named = {one for names in help._GROUPS.values() for one in names}
    spelled = {"form": "format", "ask_megatron": "megatron"}
    assert {f"--{spelled.get(one, one).replace('_', '-')}" for one in named} <= shown


def test_a_command_with_few_options_shows_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--help-all" not in said(capsys, "doctor", "--help")
    assert "--timeout" in said(capsys, "doctor", "--help")


def test_all_help_is_that_of_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help-all"]) == 0
    text = capsys.readouterr().out
    for name in COMMANDS:
        assert f"Usage: moe-diag {name} " in text
    assert "Usage: moe-diag history add " in text
    assert run(["history", "--help-all"]) == 0
    assert capsys.readouterr().out in text


@pytest.mark.parametrize("name", ["analyze", "check-config", "plan"])
def test_the_number_of_gpus_has_one_word_in_every_command(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert re.search(r"--gpus N", said(capsys, name, "--help-all"))

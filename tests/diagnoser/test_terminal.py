"""What a person sees in a terminal: the words of the plain text, in colours, and never an escape as text."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnoser.cli import run
from tests.read_back.terminal import COMMANDS, HISTORY, Tty, a_place, reads_as_text, seen

PLAIN = {"analyze -f markdown", "demo list", "history list", "--help", "analyze --help", "a wrong option"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return a_place(tmp_path_factory.mktemp("place"))


@pytest.fixture
def here(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder as the current one, no habits of whoever runs the tests, and no bar however slow it is."""
    monkeypatch.setattr("diagnoser.output.progress._PATIENCE_S", float("inf"))
    monkeypatch.chdir(place)
    monkeypatch.setenv("MOE_DIAG_HISTORY", str(place / HISTORY))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return place


def sent(words: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    screen = Tty()
    with monkeypatch.context() as patched:
        patched.setattr("sys.stdout", screen)
        patched.setattr("sys.stderr", screen)
        run(words)
    return screen.got()


@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_seen_is_the_plain_text_in_colours(
    name: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coloured = seen(sent(COMMANDS[name], monkeypatch), 80)
    monkeypatch.setenv("NO_COLOR", "1")
    plain = sent(COMMANDS[name], monkeypatch)
    assert "\x1b" not in plain
    assert coloured.lines == seen(plain, 80).lines
    reads_as_text(coloured)
    assert (len(coloured.colours) > 1) == (name not in PLAIN)

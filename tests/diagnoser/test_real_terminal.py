"""The program in a real pseudo-terminal of three widths, with colours and without."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.places import ROOT
from tests.terminal_doubles import COMMANDS, HISTORY, a_place, in_terminal, reads_as_text, seen


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return a_place(tmp_path_factory.mktemp("place"))


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("name", COMMANDS)
def test_in_a_real_terminal_the_same_is_seen_without_colours(name: str, columns: int, place: Path) -> None:
    around = {"MOE_DIAG_HISTORY": str(place / HISTORY), "PYTHONPATH": str(ROOT)}
    code, coloured = in_terminal(COMMANDS[name], columns, place, around)
    assert code in (0, 1, 2)
    shown = seen(coloured, columns)
    reads_as_text(shown)
    for variable, value in (("NO_COLOR", "1"), ("TERM", "dumb"))[: 2 if columns == 80 else 1]:
        same_code, plain = in_terminal(COMMANDS[name], columns, place, {**around, variable: value})
        assert same_code == code
        assert variable == "NO_COLOR" or "\x1b" not in plain  # a progress bar may move the cursor
        bare = seen(plain, columns)
        assert bare.lines == shown.lines
        assert bare.colours == {"default"}

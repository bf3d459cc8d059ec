"""The program in a real pseudo-terminal of three widths, with colours and without."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.places import ROOT
from tests.terminal_doubles import COMMANDS, HISTORY, a_place, in_terminal, reads_as_text, seen

PLAIN = {"NO_COLOR": "1"}, {"TERM": "dumb"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return a_place(tmp_path_factory.mktemp("place"))


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_in_a_real_terminal_the_same_is_seen_without_colours(columns: int, place: Path) -> None:
    around = {"MOE_DIAG_HISTORY": str(place / HISTORY), "PYTHONPATH": str(ROOT)}
    coloured = in_terminal(columns, place, around)
    assert [*coloured] == [*COMMANDS]
    for variables in PLAIN[: 2 if columns == 80 else 1]:
        plain = in_terminal(columns, place, around | variables)
        for name, (code, sent) in coloured.items():
            shown, bare = seen(sent, columns), seen(plain[name][1], columns)
            reads_as_text(shown)
            assert code == plain[name][0] in (0, 1, 2)
            assert "NO_COLOR" in variables or "\x1b" not in plain[name][1]  # a bar may move the cursor
            assert bare.lines == shown.lines, name
            assert bare.colours == {"default"}, name

"""The program in a real pseudo-terminal, with colours and without; `test_terminal_widths.py` has more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.read_back.terminal import a_place, seen_alike


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return a_place(tmp_path_factory.mktemp("place"))


def test_in_a_real_terminal_the_same_is_seen_without_colours(place: Path) -> None:
    seen_alike(80, place, {"NO_COLOR": "1"})

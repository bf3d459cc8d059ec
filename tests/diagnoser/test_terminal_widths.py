"""The program in real pseudo-terminals that are narrow, wide, or know no colours."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.read_back.terminal import a_place, seen_alike


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return a_place(tmp_path_factory.mktemp("place"))


@pytest.mark.parametrize(
    ("columns", "variables"), [(60, {"NO_COLOR": "1"}), (80, {"TERM": "dumb"}), (120, {"NO_COLOR": "1"})]
)
def test_in_any_terminal_the_same_is_seen_without_colours(
    columns: int, variables: dict[str, str], place: Path
) -> None:
    seen_alike(columns, place, variables)

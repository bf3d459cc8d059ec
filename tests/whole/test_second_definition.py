"""Documents of small random runs hold what a second definition, from the page of definitions alone, gives."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest

from tests.second_definition.compare import compared
from tests.second_definition.drawn import draw
from traces.limits import Limit


@pytest.mark.parametrize("first", range(0, 48, 8))
def test_small_random_runs_are_told_as_the_page_defines_them(tmp_path: Path, first: int) -> None:
    with patch("traces.account.account.AT_ONCE", Limit(2, "pieces", "a test's")):
        runs = {seed: compared(draw(seed), tmp_path) for seed in range(first, first + 8)}
    assert {seed: one.differences for seed, one in runs.items() if one.differences} == {}
    assert sum(one.figures for one in runs.values()) > 8 * 12

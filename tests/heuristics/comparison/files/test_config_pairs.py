"""Pairs of published threads with a known cause: the explaining difference first, as their truths say."""

from __future__ import annotations

from pathlib import Path

import pytest

from heuristics.comparison.files.comparison import compare_files
from heuristics.result.compared_files import ComparedFiles
from tests.configurations.pairs import PAIRS, sides, truth
from traces.missing import known

NAMES = [pair.name for pair in PAIRS]


def first_of(compared: ComparedFiles) -> str | None:
    return compared.explanations[0].id if compared.explanations else None


@pytest.mark.parametrize("pair", PAIRS, ids=NAMES)
def test_the_explaining_difference_stands_first(pair: Path) -> None:
    expected, compared = truth(pair), compare_files(*sides(pair))
    assert first_of(compared) in expected["first"]
    assert compared.verdict == expected["verdict"]
    log_of_new = known(compared.new.log)
    if "drift" in expected:
        assert log_of_new is not None
        drift = known(log_of_new.drift)
        assert drift is not None
        assert drift.state == expected["drift"]

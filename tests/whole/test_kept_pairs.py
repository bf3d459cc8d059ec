"""No figure in a document of two runs changes unseen."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.compare_score.causes import CAUSES
from tests.kept import sources
from tests.kept.kept import hold


@pytest.mark.parametrize("first", range(0, len(CAUSES), sources.FEW))
def test_documents_of_pairs_of_one_cause_are_what_they_were(
    request: pytest.FixtureRequest, first: int
) -> None:
    hold(f"one cause from {first}", sources.pairs_of_one_cause(first), request)


def test_documents_of_pairs_of_other_kinds_are_what_they_were(request: pytest.FixtureRequest) -> None:
    hold("pairs of other kinds", sources.pairs_of_other_kinds(), request)


@pytest.mark.parametrize("first", range(0, 160, sources.EACH))
def test_documents_of_pairs_of_small_runs_are_what_they_were(
    tmp_path: Path, request: pytest.FixtureRequest, first: int
) -> None:
    hold(f"pairs of small runs from {first}", sources.pairs_of_small_runs(tmp_path, first), request)

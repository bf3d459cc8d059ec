"""No figure in a document of several ranks changes unseen."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.third.handicaps import Kind
from tests.kept import sources
from tests.kept.kept import hold

THIRD = (Kind.HEALTHY, Kind.SLOW_GEMM, Kind.SLOW_HOST, Kind.SLOW_NIC, Kind.HOT, Kind.JITTER, Kind.TWO)


@pytest.mark.parametrize("place", range(len(sources.HANDICAPS)))
def test_documents_of_simulated_ranks_are_what_they_were(
    tmp_path: Path, request: pytest.FixtureRequest, place: int
) -> None:
    hold(f"ranks {place}", sources.many_ranks(tmp_path, place), request)


@pytest.mark.parametrize("kind", THIRD, ids=lambda kind: kind.value)
def test_documents_of_the_third_simulator_are_what_they_were(
    tmp_path: Path, request: pytest.FixtureRequest, kind: Kind
) -> None:
    hold(f"third {kind.value}", sources.third_simulator(tmp_path, kind), request)


@pytest.mark.parametrize("first", range(0, 300, 2 * sources.MANY))
def test_what_is_judged_of_sets_of_ranks_is_what_it_was(request: pytest.FixtureRequest, first: int) -> None:
    for start in (first, first + sources.MANY):
        hold(f"sets of ranks from {start}", sources.sets_of_ranks(start), request)

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

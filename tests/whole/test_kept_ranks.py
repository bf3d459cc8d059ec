"""No figure in a document of several ranks changes unseen."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.third.handicaps import Kind
from tests.kept import sources
from tests.kept.kept import Source, families, hold

THIRD = (Kind.HEALTHY, Kind.SLOW_GEMM, Kind.SLOW_HOST, Kind.SLOW_NIC, Kind.HOT, Kind.JITTER, Kind.TWO)


@families(
    ("ranks {}", sources.many_ranks, range(len(sources.HANDICAPS))),
    ("third {.value}", sources.third_simulator, THIRD),
    ("pipelines from {}", sources.pipelines, range(0, 300, sources.MANY)),
    ("sets of ranks from {}", sources.sets_of_ranks, range(0, 300, sources.MANY)),
)
def test_documents_of_ranks_are_what_they_were(
    tmp_path: Path, request: pytest.FixtureRequest, family: str, source: Source, first: int | Kind
) -> None:
    hold(family, source(tmp_path, first), request)

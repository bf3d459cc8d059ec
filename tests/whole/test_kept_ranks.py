"""No figure in a document of several ranks changes unseen."""

from __future__ import annotations

from bench.third.handicaps import Kind
from tests.kept import sources
from tests.kept.kept import families_are_kept

THIRD = (Kind.HEALTHY, Kind.SLOW_GEMM, Kind.SLOW_HOST, Kind.SLOW_NIC, Kind.HOT, Kind.JITTER, Kind.TWO)


test_documents_of_ranks_are_what_they_were = families_are_kept(
    ("ranks {}", sources.many_ranks, range(len(sources.HANDICAPS))),
    ("third {.value}", sources.third_simulator, THIRD),
    ("pipelines from {}", sources.pipelines, range(0, 300, sources.MANY)),
    ("sets of ranks from {}", sources.sets_of_ranks, range(0, 300, sources.MANY)),
)

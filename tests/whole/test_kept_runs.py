"""No figure in a document of one recording changes unseen."""

from __future__ import annotations

from tests.kept import sources
from tests.kept.kept import families_are_kept

test_documents_of_recordings_are_what_they_were = families_are_kept(
    ("demo", sources.demo, [0]),
    ("small runs from {}", sources.small_runs, range(1000, 1060, sources.EACH)),
    ("exceptions from {}", sources.exceptions, range(3000, 3060, sources.EACH)),
    ("exchanges from {}", sources.exchanges, range(0, 60, sources.EACH)),
    ("profiled runs", sources.profiled, [0]),
    ("simulated runs from {}", sources.simulated, range(900, 900 + 2 * sources.FEW, sources.FEW)),
    ("facts of exchanges from {}", sources.facts_of_exchanges, range(6000, 6200, sources.EACH)),
    ("facts of exceptions from {}", sources.facts_of_exceptions, range(8000, 8140, sources.EACH)),
    ("facts of profiles from {}", sources.facts_of_profiles, range(0, 160, sources.EACH)),
    ("facts of trainings from {}", sources.facts_of_trainings, range(0, 140, sources.EACH)),
)

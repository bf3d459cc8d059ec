"""No figure in a document of two runs changes unseen."""

from __future__ import annotations

from bench.compare_score.causes import CAUSES
from tests.kept import sources
from tests.kept.kept import families_are_kept

test_documents_of_pairs_are_what_they_were = families_are_kept(
    ("one cause from {}", sources.pairs_of_one_cause, range(0, len(CAUSES), sources.FEW)),
    ("pairs of other kinds", sources.pairs_of_other_kinds, [0]),
    ("pairs of small runs from {}", sources.pairs_of_small_runs, range(0, 60, sources.EACH)),
    ("pairs of trainings from {}", sources.pairs_of_trainings, range(0, 40, sources.EACH)),
)

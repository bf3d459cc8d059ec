"""No figure in a document without a trace changes unseen."""

from __future__ import annotations

from tests.kept import cards, sources
from tests.kept.kept import families_are_kept

test_documents_of_configurations_are_what_they_were = families_are_kept(
    ("configurations from {}", sources.drawn_configurations, range(0, 120, sources.EACH)),
    ("cards from {}", cards.cards, range(0, 400, cards.EACH)),
    ("files", sources.configurations, [0]),
    ("pairs of files", sources.pairs_of_files, [0]),
    ("layouts", sources.layouts, [0]),
    ("settings from {}", sources.altered_settings, range(0, 1000, sources.MANY)),
    ("logs from {}", sources.altered_logs, range(0, 1000, sources.MANY)),
    ("altered files from {}", sources.altered_files, range(0, 160, sources.EACH)),
    ("altered pairs from {}", sources.altered_pairs, range(0, 160, sources.EACH)),
)

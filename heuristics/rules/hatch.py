"""Facts of rules that only code can tell, by the names that conditions use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from heuristics.config.facts import Fact

HATCH: Final[Mapping[str, Fact]] = {
    "hybrid_model": Fact(lambda c: c.on("is_hybrid_model"), ("is_hybrid_model",), words="Mamba layers"),
    "padded_packs": Fact(
        lambda c: c.on("dataset.pad_to_max_length"),
        ("dataset.pad_to_max_length",),
        words="dataset.pad_to_max_length",
    ),
}
"""By name, as in `heuristics.config.facts`."""

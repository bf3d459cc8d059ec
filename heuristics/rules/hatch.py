"""Facts of rules that only code can tell, by the names that conditions use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from heuristics.config.facts import Fact

HATCH: Final[Mapping[str, Fact]] = {}
"""By name, as in `heuristics.config.facts`."""

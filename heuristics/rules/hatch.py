"""Facts of rules that only code can tell, by the names that conditions use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from heuristics.config.facts import Fact
from heuristics.rules.stage_facts import STAGE_FACTS

HATCH: Final[Mapping[str, Fact]] = {**STAGE_FACTS}
"""By name, as in `heuristics.config.facts`."""

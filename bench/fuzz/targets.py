"""Every target by its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bench.fuzz import configurations, kineto, logs, long_texts, nsys, pages, results, structures, summaries
from bench.fuzz.target import AnyTarget

_ALL: Final[tuple[AnyTarget, ...]] = (
    pages.TARGET,
    nsys.TARGET,
    kineto.TARGET,
    logs.TARGET,
    configurations.TARGET,
    results.TARGET,
    structures.TARGET,
    summaries.TARGET,
    *long_texts.TARGETS,
)
TARGETS: Final[Mapping[str, AnyTarget]] = {target.name: target for target in _ALL}

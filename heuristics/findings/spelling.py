"""Names and values of a configuration that no framework takes as they stand, as findings."""

from __future__ import annotations

from collections.abc import Iterable

from heuristics.findings.finding import ConfigFinding
from traces.settings.configuration import Problem


def misspelled(problems: Iterable[Problem]) -> tuple[ConfigFinding, ...]:
    """A finding for each problem that has a right spelling, numbered in the order of the file."""
    mended = [problem for problem in problems if problem.instead]
    return tuple(
        ConfigFinding(f"CFG-misspelled-{number}", "misspelled", one.text, f"in {one.where}", one.instead)
        for number, one in enumerate(mended, 1)
    )

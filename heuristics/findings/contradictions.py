"""Every contradiction of a run, in a fixed order."""

from collections.abc import Iterable
from typing import Final

from heuristics.findings import (
    compute,
    counts,
    dispatcher,
    graphs,
    host,
    idle_overlaps,
    logged,
    memory,
    memory_estimate,
    overlap,
)
from heuristics.findings.finding import ConfigFinding, Detector, Recognised, case_of
from heuristics.findings.spelling import misspelled
from heuristics.run.run import Run
from traces.settings.settings import Problem

DETECTORS: Final[tuple[Detector, ...]] = (
    *counts.DETECTORS,
    *dispatcher.DETECTORS,
    *overlap.DETECTORS,
    *idle_overlaps.DETECTORS,
    *graphs.DETECTORS,
    *compute.DETECTORS,
    *memory.DETECTORS,
    *memory_estimate.DETECTORS,
    *host.DETECTORS,
    *logged.DETECTORS,
)


def find_contradictions(
    run: Run, failures: Iterable[Recognised] = (), problems: Iterable[Problem] = ()
) -> tuple[ConfigFinding, ...]:
    """Where configuration, log and trace disagree: not of one run first, then what is misspelled.

    The run's settings are those that were written, and what it shows is what its trace shows, neither filled
    in from the other. What one of them cannot tell makes no contradiction.
    """
    case = case_of(run, failures)
    found = [one for detect in DETECTORS if (one := detect(case)) is not None]
    differ = [one for one in found if one.state == "counted_otherwise"]
    return (*differ, *misspelled(problems), *(one for one in found if one not in differ))

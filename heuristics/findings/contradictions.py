"""Every contradiction of a run, in a fixed order; misspelled names; a recording that perturbs.

Names and values of a configuration that no framework takes as they stand are findings, and so is a profiler
that made the steps longer: the recording then does not stand for the run.
"""

from collections.abc import Iterable
from typing import Final

from heuristics.findings import compute, counts, dispatcher, host, idle_overlaps, logged, memory, overlap
from heuristics.findings.finding import Detector, Recognised, case_of
from heuristics.result.configured import ConfigFinding
from heuristics.run.run import Run
from traces.limits import Limit
from traces.settings.configuration import Problem
from traces.spelling import chosen, percent


def misspelled(problems: Iterable[Problem]) -> tuple[ConfigFinding, ...]:
    """A finding for each problem that has a right spelling, numbered in the order of the file.

    An older name that the release takes is none; a flag of a later release is named by its knob, so that a
    rule can tell the same. At what Megatron-LM's parser stops, training does not start
    (training/arguments.py, parse_args: unknown arguments are errors unless ignore_unknown_args).
    """
    mended = [problem for problem in problems if problem.instead and problem.effect != "older_name"]
    return tuple(
        ConfigFinding(
            f"CFG-newer-{one.newer.replace('_', '-')}" if one.newer else f"CFG-misspelled-{number}",
            "illegal" if one.effect == "stops" else "misspelled",
            one.text,
            f"in {one.where}",
            one.instead,
        )
        for number, one in enumerate(mended, 1)
    )


PERTURBED: Final = Limit(
    0.10,
    "of the unprofiled step",
    "ours: as much as a wall; a published pair of 34.60 s profiled against 29.39 s was judged unusable for "
    "absolute times (Megatron-Bridge, evals of skill perf-nsys-analysis)",
)


def perturbed(perturbation_frac: float | None) -> tuple[ConfigFinding, ...]:
    """CAP-1 where the profiled step is longer than the unprofiled one by more than `PERTURBED`."""
    if perturbation_frac is None or perturbation_frac <= PERTURBED.value:
        return ()
    return (
        ConfigFinding(
            "CAP-1",
            "not_representative",
            f"the profiled step is {percent(perturbation_frac)} longer than one without the profiler: shares "
            "and order hold at best, times and gains do not",
            f"median profiled step against the steady step of the log; limit {chosen(PERTURBED.value)}",
            "record again with fewer traced events (-t cuda,nvtx, no sampling) and fewer steps",
        ),
    )


DETECTORS: Final[tuple[Detector, ...]] = (
    *counts.DETECTORS,
    *dispatcher.DETECTORS,
    *overlap.DETECTORS,
    *idle_overlaps.DETECTORS,
    *host.OF_GRAPHS,
    *compute.DETECTORS,
    *memory.DETECTORS,
    *memory.OF_ESTIMATE,
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

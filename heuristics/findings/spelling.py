"""Names and values of a configuration that no framework takes as they stand, as findings."""

from collections.abc import Iterable

from heuristics.findings.finding import ConfigFinding
from traces.settings.settings import Problem


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

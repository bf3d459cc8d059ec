"""Recordings that were given and are part of no figure, as warnings."""

from msgspec import UnsetType

from traces.sections.run import Run


def left_out(run: Run | UnsetType | None) -> list[str]:
    """A warning for each problem of the set whose recordings are not used."""
    if not run:
        return []
    return [
        f"{', '.join(problem.traces)}: left out, {problem.reason}"
        for problem in run.problems
        if problem.left_out
    ]

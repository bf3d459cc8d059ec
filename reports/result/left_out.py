"""Recordings that were given and are part of no figure, as warnings."""

from msgspec import UNSET, UnsetType

from traces.sections.run import Run


def left_out(run: Run | UnsetType) -> list[str]:
    """A warning for each problem of the set whose recordings are not used."""
    problems = () if run is UNSET else run.problems
    return [f"{', '.join(one.traces)}: left out, {one.reason}" for one in problems if one.left_out]

"""Recordings that were given and are part of no figure, as warnings."""

from msgspec import UnsetType

from traces.sections.run import Run


def left_out(run: Run | UnsetType | None) -> list[str]:
    """A warning for each problem of the set whose recordings are not used."""
    if not run:
        return []
    return [
        f"{', '.join(one.traces)}: left out, {one.reason}" for one in run.problems if one.left_out
    ]

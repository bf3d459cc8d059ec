"""What could not be told, as a value: missing is never zero."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Missing:
    """One gap of a result.

    `path` is its place in the JSON document (`ranks[0].totals`; a parent covers what is under it), `reason`
    why it could not be told, `cure` what to record or type so that it can.
    """

    path: str
    reason: str
    cure: str

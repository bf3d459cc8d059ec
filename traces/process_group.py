"""A process group, as a recording names it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """A process group: a fingerprint of its name and its ranks, the same on each of them.

    `size` and `members`, global ranks, are None where the trace does not say, or not of all.
    """

    key: int
    size: int | None
    members: tuple[int, ...] | None

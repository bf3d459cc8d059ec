"""What one rank says of its collectives, whoever wrote it down."""

from collections.abc import Mapping

from traces.frozen import frozen
from traces.sections.hang import WitnessSource

GroupKey = tuple[str, tuple[int, ...]]
"""The name of a process group and its ranks, as far as it tells them."""


@frozen
class Entered:
    """A collective that the rank entered. `elements`: what it gave, as `4096 Float`, empty where
    unknown.

    `created_ns` is on the host's own clock, `duration_ns` None where it was not timed.
    """

    group: GroupKey
    sequence: int
    operation: str
    elements: str
    finished: bool
    created_ns: int
    duration_ns: int | None


@frozen
class GroupSaid:
    """A process group: what it is called where we know that name, and its number of ranks if told.

    `last_entered`: the last sequence number that the rank entered, None where only entries tell.
    """

    description: str
    size: int | None = None
    last_entered: int | None = None


@frozen
class Dump:
    """All that a file says of one rank."""

    rank: int
    source: WitnessSource
    groups: Mapping[GroupKey, GroupSaid]
    entered: tuple[Entered, ...]

"""How a command ends, by what it found: the one list of exit codes.

`diagnoser.cli` ends with them, pages name them, and docs/usage.md explains each.
"""

from enum import IntEnum


class Exit(IntEnum):
    """An exit code. `NO`: a gate that does not let pass, or an illegal configuration."""

    DONE = 0
    NO = 1
    USAGE = 2
    INPUT = 3
    NOTHING = 4
    UNDECIDED = 5
    NOT_COMPARABLE = 6
    BUG = 70
    INTERRUPTED = 130

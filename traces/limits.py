"""A threshold: its value, its unit and why it is what it is. Each one has one home, beside its use."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Limit:
    """A named threshold. `because` gives its source; a limit nobody published says "ours"."""

    value: float
    unit: str
    because: str


MOST_RANKS: Final = Limit(1 << 20, "ranks", "ours: more than any run has; a process id may be larger")
"""A rank or a number of ranks above is none: what is missing of so many is listed rank by rank."""

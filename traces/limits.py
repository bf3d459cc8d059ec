"""A threshold: its value, its unit and why it is what it is. Each one has one home, beside its use."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Limit:
    """A named threshold. `because` gives its source; a limit nobody published says "ours"."""

    value: float
    unit: str
    because: str


MOST: Final = Limit(0.5, "fraction of the whole", "by the word: most of something is more than half of it")
WALL: Final = Limit(
    0.10,
    "fraction of the windows",
    "ours, NVIDIA publishes none: less than a tenth of the step is no wall",
)
HALF_A_WALL: Final = Limit(
    0.05, "fraction of the whole", "ours: two that are left out of sight are together no more than a wall"
)
MOST_RANKS: Final = Limit(1 << 20, "ranks", "ours: more than any run has; a process id may be larger")
"""A rank or a number of ranks above is none: what is missing of so many is listed rank by rank."""

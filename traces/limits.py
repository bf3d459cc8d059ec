"""A threshold: its value, its unit and why it is what it is. Each one has one home: beside its use,
or here where several ask it.
"""

from typing import Final

from traces.frozen import frozen


@frozen
class Limit:
    """A named threshold. `because` gives its source; a limit nobody published says "ours"."""

    value: float
    unit: str
    because: str

    @property
    def whole(self) -> int:
        """The value as a whole number."""
        return int(self.value)


MOST: Final = Limit(
    0.5, "fraction of the whole", "by the word: most of something is more than half of it"
)
WALL: Final = Limit(
    0.10,
    "fraction of the windows",
    "ours, NVIDIA publishes none: less than a tenth of the step is no wall",
)
HALF_A_WALL: Final = Limit(
    0.05,
    "fraction of the whole",
    "ours: two that are left out of sight are together no more than a wall; whole steps of one run "
    "differ by less (measurement.md)",
)
NEARLY_ALL: Final = Limit(
    0.9,
    "fraction of the whole",
    "what is left is less than a wall, whatever it is: cut off at an edge, or odd",
)
LATENCY: Final = Limit(
    5_000,
    "ns",
    "measured on real recordings: dependent work begins 0.5 to 4.2 us after what it waited for; a "
    "kernel as short is a matter of its launch (measurement.md)",
)
FEWEST: Final = Limit(
    3,
    "of a kind",
    "by counting: of two neither is the exception, and one odd value moves their median",
)
ENOUGH: Final = Limit(
    16,
    "in a row",
    "what has an even chance each time happens as often in a row once in 65,536 times",
)
LITTLE: Final = Limit(
    0.01,
    "fraction of the whole",
    "what costs under 1 % of the step is no finding (the walls' definition); clocks alone move as "
    "much",
)
QUARTER: Final = Limit(
    0.25,
    "fraction of the whole",
    "recordings of unrelated programs share up to 0.16 of their kernels, one program with full "
    "recompute, another dispatcher or FP8 0.47 and more; NeMo RL issue 917 calls 25 % of idle time "
    "the first to act on",
)
MESSAGE: Final = Limit(4096, "bytes", "ours: a line of a log or a message of a chat takes it whole")
MOST_RANKS: Final = Limit(
    1 << 20, "ranks", "ours: more than any run has; a process id may be larger"
)
"""A rank or a number of ranks above is none: what is missing of so many is listed rank by rank."""

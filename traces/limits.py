"""A threshold: its value, its unit and why it is what it is. Each one has one home, beside its use."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limit:
    """A named threshold. `because` gives its source; a limit nobody published says "ours"."""

    value: float
    unit: str
    because: str

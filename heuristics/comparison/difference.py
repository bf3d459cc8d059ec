"""One reason why two runs are not alike, as said to the reader."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

State = Literal["yes", "with_differences", "no"]


@dataclass(frozen=True, slots=True)
class Difference:
    """One reason: what differs, what each side has, whether it forbids the comparison, and why it matters.

    `source`: where the rule comes from; "ours" where nobody published it.
    """

    what: str
    base: str
    new: str
    state: State
    because: str
    source: str = "ours"

    def swapped(self) -> Difference:
        """The same with base and new the other way round."""
        return replace(self, base=self.new, new=self.base)

"""Something a fix needs, and whether a run has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["met", "unmet", "unknown"]


@dataclass(frozen=True, slots=True)
class Precondition:
    """Something a fix needs.

    `met_by`: what would meet it, a fix id or a change; `told_by`: an option, knob or recording that would
    tell. `blocks`: the fix is not to be tried while it is unknown. `source`: of the rule that asks for it.
    """

    text: str
    state: State
    met_by: str = ""
    told_by: str = ""
    blocks: bool = False
    source: str = ""

    @property
    def stops(self) -> bool:
        """Whether it keeps the fix out of a plan."""
        return self.state == "unmet" or (self.blocks and self.state == "unknown")

    @property
    def cure(self) -> str:
        """What to do about it: to learn it where it is unknown, else to meet it."""
        return (self.state == "unknown" and self.told_by) or self.met_by

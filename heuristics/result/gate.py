"""The answer of a limit on slowing down."""

from typing import Literal

from msgspec import UNSET, UnsetType

from traces.sections.section import Section
from traces.texts import Said

GateState = Literal["passed", "tripped", "undecided"]
GateAnswer = Literal["pass", "fail"]


class Gate(Section):
    """A limit on slowing down. `answer`: whether it lets pass; of an undecided state as it was
    asked to.
    """

    limit_frac: float
    state: GateState
    because: Said
    answer: GateAnswer | UnsetType = UNSET

    @property
    def lets_pass(self) -> bool:
        """Whether it lets pass; an earlier result, which has no answer, does so where its state is
        passed.
        """
        if self.answer is UNSET:
            return self.state == "passed"
        return self.answer == "pass"

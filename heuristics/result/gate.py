"""The answer of a limit on slowing down."""

from typing import Final, Literal

from msgspec import UNSET, UnsetType

from heuristics.result.exits import Exit
from traces.sections.section import Section

GateState = Literal["passed", "tripped", "undecided"]
GateAnswer = Literal["pass", "fail"]


class Gate(Section, frozen=True):
    """A limit on slowing down. `answer`: whether it lets pass; of an undecided state as it was asked to."""

    limit_frac: float
    state: GateState
    because: str
    answer: GateAnswer | UnsetType = UNSET

    @property
    def lets_pass(self) -> bool:
        """Whether it lets pass; an earlier result, which has no answer, does so where its state is passed."""
        return self.state == "passed" if self.answer is UNSET else self.answer == "pass"


_OPEN: Final = {"undecided": Exit.UNDECIDED, "not_comparable": Exit.NOT_COMPARABLE}
"""What a comparison ends with where its verdict leaves the question open."""


def exit_of(verdict: str, gate: Gate | None) -> Exit:
    """What a comparison ends with: of a gate its answer alone, else whether there is a verdict."""
    if gate is not None:
        return Exit.DONE if gate.lets_pass else Exit.NO
    return _OPEN.get(verdict, Exit.DONE)

"""What a gate answers: passed or tripped by its limit; what it takes undecided for is chosen by who asks."""

from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from heuristics.comparison.size import Judged, judge_gate
from heuristics.result.compared import ComparedSize
from heuristics.result.gate import Gate, GateAnswer, GateState

_ANSWERS: Final[dict[GateState, GateAnswer]] = {"passed": "pass", "tripped": "fail"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A limit on slowing down, and what the gate answers where it cannot be judged, by why it cannot."""

    limit_frac: float
    undecided: GateAnswer = "fail"
    not_comparable: GateAnswer = "fail"


def gate_of(size: ComparedSize, judged: Judged, asked: Asked) -> Gate:
    return answered(judge_gate(size, judged, asked.limit_frac), judged, asked)


def answered(gate: Gate, judged: Judged, asked: Asked) -> Gate:
    """The gate with its answer, which decides how the command ends."""
    open_ = asked.not_comparable if judged.verdict == "not_comparable" else asked.undecided
    return replace(gate, answer=_ANSWERS.get(gate.state, open_))

"""What a gate answers: passed or tripped by its limit; what it takes undecided for is chosen by who
asks.
"""

from typing import Final

from heuristics.comparison.size import Judged, counts_in_words, ends_in_words
from heuristics.result.compared import ComparedSize
from heuristics.result.gate import Gate, GateAnswer, GateState
from heuristics.words import say
from traces.frozen import frozen
from traces.spelling import chosen
from traces.statistics.interval import LEAST

_ANSWERS: Final[dict[GateState, GateAnswer]] = {"passed": "pass", "tripped": "fail"}


@frozen
class Asked:
    """A limit on slowing down, and what the gate answers where it cannot be judged, by why it
    cannot.
    """

    limit_frac: float
    undecided: GateAnswer = "fail"
    not_comparable: GateAnswer = "fail"


def gate_of(size: ComparedSize | None, judged: Judged, request: Asked) -> Gate:
    """The gate with its answer, which decides how the command ends. `size`: None where there is
    none.
    """
    open_ = request.undecided
    if judged.verdict == "not_comparable":
        open_ = request.not_comparable
    state, because = _judged(size, judged, request.limit_frac)
    return Gate(request.limit_frac, state, because, _ANSWERS.get(state, open_))


def _judged(size: ComparedSize | None, judged: Judged, limit_frac: float) -> tuple[GateState, str]:
    """Tripped where the lower end of the interval, as part of the base's mean step, is above the
    limit.
    """
    limit = chosen(limit_frac)
    if judged.same:
        return "passed", say("comparison.gate-of-one-recording")
    if judged.verdict == "not_comparable":
        return "undecided", say("comparison.gate-not-comparable", limit=limit)
    if size is None:
        return "undecided", judged.because[0]
    if (ends := size.ends_ns) is None or not size.base_mean_ns:
        return "undecided", say(
            "comparison.gate-few", counts=counts_in_words(size), least=LEAST, limit=limit
        )
    low, high = ends_in_words(size, ends)
    limit_ns = limit_frac * size.base_mean_ns
    if ends[0] > limit_ns:
        return "tripped", say("comparison.gate-tripped", low=low, limit=limit)
    if ends[1] <= limit_ns:
        return "passed", say("comparison.gate-passed", high=high, limit=limit)
    if judged.verdict == "undecided":
        return "undecided", say(
            "comparison.gate-straddled-with-zero", low=low, high=high, limit=limit
        )
    return "passed", say("comparison.gate-straddled", low=low, high=high, limit=limit)

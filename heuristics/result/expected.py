"""What fixes were to gain, and what the step gained."""

from typing import Literal

from traces.missing import OrMissing
from traces.sections.section import Section
from traces.texts import Keys, Said, Sentences

PredictedEnds = tuple[OrMissing[int], int]
"""Lower and upper end of a prediction, the lower where there is one."""
Ends = tuple[int, int]
"""Lower and upper end of an interval, as in `compared`."""
ExpectedBy = Literal["configuration", "trace", "given"]
ExpectedOutcome = Literal["met", "missed", "more", "undecided"]
Conclusion = Literal[
    "as_predicted",
    "more_than_predicted",
    "less_than_predicted",
    "came_back_elsewhere",
    "part_unchanged",
    "not_active",
    "changed_together",
    "no_prediction",
    "too_few_steps",
    "within_noise",
    "other_extent",
    "not_comparable",
]
"""What an outcome means: of one that is met or more the first two, of one that missed the next
four."""


class ExpectedPart(Section):
    """Rows of the step that a fix acts on, per step: what they were and by how much they fell."""

    rows: Keys
    base_ns: int
    gained_ns: int
    ci95_ns: OrMissing[Ends]


class ExpectedExtent(Section):
    """A setting of a fix of which the new run has other values than planned.

    `ranged`: whether the prediction is for what the new run has; else it is for what was planned.
    """

    what: Said
    planned: Sentences
    now: Sentences
    ranged: bool


class Expected(Section):
    """A fix that the new side has and base lacks: what it was to gain of a step, and what the step
    gained.

    `fixes`: several only where the plan of base has a range for them together. `by`: how the new
    side is known to have it. `predicted_ns`: by the plan of base or as given; `outcome`: by the
    step alone, as time that a fix takes away from its `part` may come back in the rows that `grew`.
    `together_with`: what else changed and can explain what moved: a fix is not judged beside it.
    `extent`: where the new run has other values of its setting than planned.
    """

    fixes: Keys
    by: ExpectedBy
    predicted_ns: OrMissing[PredictedEnds]
    gained_ns: int
    ci95_ns: OrMissing[Ends]
    part: ExpectedPart | None
    outcome: ExpectedOutcome
    conclusion: Conclusion
    together_with: Keys
    grew: Keys
    extent: ExpectedExtent | None = None

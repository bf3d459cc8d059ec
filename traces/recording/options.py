"""Questions to a recording and the options each needs: the readers of `questions.toml` and
`options.toml`.
"""

from enum import StrEnum
from functools import cache
from typing import Final

from msgspec.structs import replace

from traces.toml_tables import TableRow, read_table


class Question(StrEnum):
    """What a recording is to answer."""

    WALLS = "walls"
    HOST = "host"
    MEMORY = "memory"
    METRICS = "metrics"
    RANKS = "ranks"
    REGRESSION = "regression"


class TrainedWith(StrEnum):
    """The framework whose flags mark the steps."""

    MEGATRON_LM = "megatron-lm"
    BRIDGE = "bridge"
    PYTORCH = "pytorch"


class Section(StrEnum):
    """Whose options, besides those of a framework."""

    NSYS = "nsys"
    EXPORT = "export"


class RecordingRow(TableRow):
    """One question: how many steps it takes (0: no range of steps), of which ranks, what to type
    afterwards.

    `because`: why so many steps. `one`: whether rank 0 alone starts nsys. `beside`: what of it nsys
    does not record, and what does.
    """

    asks: str
    steps: int
    one: bool
    ranks: str
    next: str
    because: str = ""
    beside: str = ""


class Option(TableRow):
    """One option: as it is typed, its reason and its cost. `since`: the release that brought it, ""
    for all.

    `older` is what to type before that release, "" for nothing. `questions`: those that need it.
    """

    why: str
    cost: str
    source: str
    text: str = ""
    since: str = ""
    older: str = ""
    questions: tuple[Question, ...] = tuple(Question)


SPARE: Final = 2
"""Recorded steps that may be left out: a first one that warms up, a last one that is cut."""
START: Final = 10
"""The first recorded step: where a Megatron run is warm, its own default."""


@cache
def asked(question: Question) -> RecordingRow:
    """The row of a question."""
    return read_table("traces.recording", "questions.toml", dict[Question, RecordingRow])[question]


def options(whose: Section | TrainedWith, question: Question, variable: str) -> tuple[Option, ...]:
    """The options of nsys, of its export or of a framework that a question needs, in order.

    `variable` holds the number of a rank.
    """
    steps = asked(question).steps
    values = {
        "<variable>": variable,
        "<start>": str(START),
        "<end>": str(START + steps),
        "<steps>": str(steps),
    }

    def filled(text: str) -> str:
        for place, value in values.items():
            text = text.replace(place, value)
        return text

    return tuple(
        replace(option, text=filled(text), why=filled(option.why), cost=filled(option.cost))
        for text, option in _options()[whose].items()
        if question in option.questions
    )


@cache
def _options() -> dict[str, dict[str, Option]]:
    return read_table("traces.recording", "options.toml", dict[str, dict[str, Option]])

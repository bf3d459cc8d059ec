"""Questions to a recording and the options each needs: the readers of `questions.toml` and `options.toml`."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any, Final, cast


class Question(StrEnum):
    """What a recording is to answer."""

    WALLS = "walls"
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


@dataclass(frozen=True, slots=True)
class Asked:
    """One question: how many steps it takes (0: no range of steps), of which ranks, what to type afterwards.

    `one`: whether rank 0 alone starts nsys.
    """

    asks: str
    steps: int
    one: bool
    ranks: str
    next: str


@dataclass(frozen=True, slots=True)
class Option:
    """One option: as it is typed, its reason and its cost. `since`: the release that brought it, "" for all.

    `older` is what to type before that release, "" for nothing.
    """

    text: str
    why: str
    cost: str
    since: str = ""
    older: str = ""


START: Final = 10
"""The first recorded step: where a Megatron run is warm, its own default."""


@cache
def asked(question: Question) -> Asked:
    """The row of a question."""
    return Asked(**_table("questions.toml")[question])


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
    rows = cast("list[dict[str, Any]]", _table("options.toml")[whose])
    return tuple(_option(row, values) for row in rows if question in row.get("questions", Question))


def _option(row: Mapping[str, Any], values: Mapping[str, str]) -> Option:
    fields = {name: row[name] for name in Option.__slots__ if name in row}
    for name, text in fields.items():
        for place, value in values.items():
            text = text.replace(place, value)
        fields[name] = text
    return Option(**fields)


@cache
def _table(name: str) -> dict[str, Any]:
    return tomllib.loads(files("traces.recording").joinpath(name).read_text(encoding="utf-8"))

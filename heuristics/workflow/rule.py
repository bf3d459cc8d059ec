"""A rule of the workflow, what it says of a run, and the shortest ways to say it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from heuristics.run.run import Run

Phase = Literal["fit", "scale", "folding", "prerequisites", "profile"]
RuleState = Literal["met", "violated", "unknown", "not_applicable"]


@dataclass(frozen=True, slots=True)
class Judged:
    """What a rule says of a run.

    `because`: the reason, with its figures. `advice`: what to do, empty where nothing is. `fix`: the
    catalogue's id of that change, empty where it has none. `tells`: where unknown, what to give to be told.
    """

    state: RuleState
    because: str
    advice: str = ""
    fix: str = ""
    tells: str = ""


@dataclass(frozen=True, slots=True)
class WorkflowRule:
    """One rule. `seed`: the number of the document it is from, then its section.

    `guide_only`: a guide asks for it, so that a run which differs is as legal. `moe`: it is about experts.
    """

    id: str
    phase: Phase
    title: str
    seed: str
    judge: Callable[[Run], Judged]
    guide_only: bool = True
    moe: bool = False


def met(because: str, advice: str = "") -> Judged:
    """The run does what the rule asks."""
    return Judged("met", because, advice)


def violated(because: str, advice: str, fix: str = "") -> Judged:
    """The run does what the rule warns of."""
    return Judged("violated", because, advice, fix)


def unknown(because: str, tells: str, advice: str = "") -> Judged:
    """Nothing tells; `tells` is what would."""
    return Judged("unknown", because, advice, tells=tells)


def not_applicable(because: str) -> Judged:
    """The rule is about something that the run does not have."""
    return Judged("not_applicable", because)

"""Runs of the workflow said in one line, and rows: a rule, what it says, and of which run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.result.configured import RuleState
from heuristics.run.run import Run
from heuristics.workflow.walk import RULES, JudgedRule, WorkflowRule
from traces.settings.settings import Framework, Value, settings
from traces.training_log.log import Iteration, LoggedMemory, Message, OutOfMemory, TrainingLog

BY_ID: Mapping[str, WorkflowRule] = {rule.id: rule for rule in RULES}
GIB = 1 << 30
Config = dict[str, Value]
"""Knobs and their values."""


def log_of(
    *messages: str | Message,
    steps: int = 0,
    peak_gib: int | None = None,
    oom: int = 0,
    versions: Mapping[str, str] | None = None,
) -> TrainingLog:
    """A log of as many steps of one second, messages in its first lines."""
    return TrainingLog(
        "train.log",
        100,
        iterations=tuple(Iteration(index, 1_000_000_000, 10 + index) for index in range(steps)),
        versions=versions or {},
        memory=() if peak_gib is None else (LoggedMemory(5, 0, peak_allocated_bytes=peak_gib * GIB),),
        out_of_memory=tuple(OutOfMemory(20 + index, "forward") for index in range(oom)),
        messages=tuple(
            one if isinstance(one, Message) else Message(one, 1 + index) for index, one in enumerate(messages)
        ),
    )


def run_with(
    knobs: Mapping[str, Value] | None = None,
    *,
    shown: Mapping[str, object] | None = None,
    given: Mapping[str, object] | None = None,
    log: TrainingLog | None = None,
    ep_share: float | None = None,
    framework: Framework | None = None,
    **run: object,
) -> Run:
    """A run of a configuration file; its GPU has 100 GiB, its windows 100 ns where it has a trace."""
    shows = replace(Observed(memory_bytes=100 * GIB), **(shown or {}))  # type: ignore[arg-type]
    says = replace(Given(), **(given or {}))  # type: ignore[arg-type]
    costs = {} if ep_share is None else {"communication": {"ep_a2a": round(100 * ep_share)}}
    whole = Run(
        shows,
        says,
        costs,  # type: ignore[arg-type]
        0 if ep_share is None else 100,
        settings=settings(knobs or {}, "config.yaml:1", framework),
        log=log,
    )
    return replace(whole, **run)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Row:
    """A rule of a document, the state it must be in, and the run."""

    seed: str
    rule: str
    state: RuleState
    run: Run = field(default_factory=run_with)

    @property
    def id(self) -> str:
        """Name of the test: the document first."""
        return f"seed {self.seed}: {self.rule} is {self.state}"

    @property
    def judged(self) -> JudgedRule:
        """What the rule says."""
        return BY_ID[self.rule].judge(self.run)

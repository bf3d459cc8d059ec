"""The workflow walked: every rule on one run, in the order of the documents."""

from typing import Final

from heuristics.result.configured import WorkflowStep
from heuristics.run.run import Run
from heuristics.workflow.fit_rules import FIT_RULES
from heuristics.workflow.folding_rules import FOLDING_RULES
from heuristics.workflow.prerequisites import prerequisites
from heuristics.workflow.profile_rules import PROFILE_RULES
from heuristics.workflow.rule import Judged, WorkflowRule, not_applicable, unknown
from heuristics.workflow.scale_rules import SCALE_RULES

RULES: Final[tuple[WorkflowRule, ...]] = (
    *FIT_RULES,
    *SCALE_RULES,
    *FOLDING_RULES,
    *prerequisites(),
    *PROFILE_RULES,
)
"""All rules: fit, scale, folding, prerequisites, profile."""


FIT_BY_RUNNING: Final = frozenset({"fit-first", "profile-order"})
"""Rules that a run meets by having run. One that the framework refuses never did."""


def walk(run: Run, refused: bool = False) -> tuple[WorkflowStep, ...]:
    """Every rule and what it says of a run as the framework understands it, in workflow order.

    `refused`: the framework rejects the configuration, so that what ran was another one.
    """
    return tuple(_step(rule, _judged(rule, run, refused)) for rule in RULES)


def _step(rule: WorkflowRule, judged: Judged) -> WorkflowStep:
    return WorkflowStep(
        id=rule.id,
        phase=rule.phase,
        title=rule.title,
        seed=rule.seed,
        state=judged.state,
        because=judged.because,
        advice=judged.advice,
        fix=judged.fix,
        tells=judged.tells,
        guide_only=rule.guide_only,
    )


def _judged(rule: WorkflowRule, run: Run, refused: bool) -> Judged:
    judged = rule.judge(run)
    if rule.moe and run.config.moe() is False and (rule.guide_only or judged.state != "violated"):
        return not_applicable("the model has no experts")
    if refused and judged.state == "met" and rule.id in FIT_BY_RUNNING:
        return unknown("the framework rejects this configuration: what ran was another one", "a legal one")
    return judged

"""Prerequisites of features, as the guides list them: rules of the tables, and the room that graphs take."""

from collections.abc import Iterator
from typing import Final

from heuristics.config.facts import version
from heuristics.config.view import Config
from heuristics.fixes.preconditions import head_room
from heuristics.guides.memory_use import fits, is_tight
from heuristics.rules.rules import Rule, has_rule, in_force, rules
from heuristics.run.run import Run
from heuristics.workflow.rule import Judged, WorkflowRule, met, not_applicable, unknown, violated

GIB: Final = 1 << 30
_OF_EXPERTS: Final = ("moe_", "expert_", "num_moe_", "overlap_moe_", "delay_wgrad_")
_NEEDED_BYTES: Final = 7 * GIB
"""About 7 GB on DeepSeek-V3, GB200 (arXiv 2603.07685)."""


def prerequisites() -> Iterator[WorkflowRule]:
    """A step for each rule that a guide lists, then the room for CUDA graphs."""
    yield from (_step(rule) for rule in rules().values() if rule.guide)
    yield WorkflowRule(
        "graphs-memory",
        "prerequisites",
        "CUDA graphs: several GB of memory for them",
        "003, CUDA Graphs For MoE",
        _judge_room,
    )


def _step(rule: Rule) -> WorkflowRule:
    def judge(run: Run) -> Judged:
        config = run.validated
        releases = version(config.core), version(config.bridge)
        if not in_force(rule, *releases) or has_rule(rule, *releases, config.framework) is False:
            return not_applicable("not a rule of these releases")
        asked, holds = rule.asked(config), rule.holds(config)
        if asked is False or (asked is None and holds is not True):
            figures = rule.feature.figures(config) if rule.feature else ""
            return unknown(figures, _tells(rule, config)) if asked is None else not_applicable(figures)
        figures = ", ".join(one.figures(config) for one in (rule.needs, rule.forbids) if one)
        if holds is None:
            return unknown(figures, _tells(rule, config))
        return met(figures) if holds else violated(figures, rule.cure_of(config), rule.fix)

    return WorkflowRule(
        rule.id, "prerequisites", rule.text, rule.guide, judge, rule.level == "guide", _about_experts(rule)
    )


def _about_experts(rule: Rule) -> bool:
    """Whether it reads a knob of experts."""
    return any(knob.startswith(_OF_EXPERTS) for knob in rule.knobs)


def _tells(rule: Rule, config: Config) -> str:
    return ", ".join(rule.asks(config)) or "the configuration"


def _judge_room(run: Run) -> Judged:
    impl = run.config.graph_impl
    if impl is None:
        return unknown("CUDA graphs are not known", "cuda_graph_impl of the configuration")
    if impl == "none":
        return not_applicable("CUDA graphs off")
    room = _room(run)
    if room is None:
        return unknown(
            "no shortage of memory is known", "--memory-tight, or a log with the trainer's memory report"
        )
    return (
        met("no shortage of memory is known")
        if room
        else violated("memory is short", "a narrower scope, or selective recompute first", "MEM-2")
    )


def _room(run: Run) -> bool | None:
    if (tight := is_tight(run)) is not None:
        return not tight
    found = head_room(run, _NEEDED_BYTES).state
    return True if found == "met" else False if fits(run) is False else None

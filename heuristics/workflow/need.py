"""One need of a feature, as a row, and the rule that it makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from heuristics.config.facts import version as release
from heuristics.config.versions import Package
from heuristics.config.view import Config
from heuristics.rules.rule import Rule, has_rule, in_force
from heuristics.run.run import Run
from heuristics.workflow.rule import Judged, WorkflowRule, met, not_applicable, unknown, violated


@dataclass(frozen=True, slots=True)
class Need:
    """A row. `asked`: whether the run asks for the feature; `holds`: whether the need is met, None: unknown.

    `says` is the figure that decides, for the sentence. `advice` and `fix` where it is not met, `tells` where
    it is unknown.
    """

    id: str
    feature: str
    title: str
    seed: str
    asked: Callable[[Run], bool | None]
    holds: Callable[[Run], bool | None]
    says: Callable[[Run], str]
    advice: str
    tells: str
    fix: str = ""


def rule_of(need: Need) -> WorkflowRule:
    """The rule that a row makes."""

    def judge(run: Run) -> Judged:
        asked = need.asked(run)
        if asked is None:
            return unknown(f"whether the run asks for {need.feature} is not known", "the configuration")
        if not asked:
            return not_applicable(f"the run asks for no {need.feature}")
        holds, says = need.holds(run), need.says(run)
        if holds is None:
            return unknown(f"{need.feature}: {says}", need.tells)
        return (
            met(f"{need.feature}: {says}")
            if holds
            else violated(f"{need.feature}: {says}", need.advice, need.fix)
        )

    return WorkflowRule(need.id, "prerequisites", need.title, need.seed, judge)


def prerequisite(rule: Rule) -> WorkflowRule:
    """The step that a rule is, where a published guide lists it."""

    def judge(run: Run) -> Judged:
        config = run.validated
        releases = release(config.core), release(config.bridge)
        if not in_force(rule, *releases) or has_rule(rule, *releases, config.framework) is False:
            return not_applicable("not a rule of these releases")
        asked, holds = rule.asked(config), rule.holds(config)
        if asked is False or (asked is None and holds is not True):
            figures = rule.feature.figures(config) if rule.feature else ""
            return unknown(figures, _tells(rule, config)) if asked is None else not_applicable(figures)
        figures = ", ".join(one.figures(config) for one in (rule.needs, rule.forbids) if one)
        if holds is None:
            return unknown(figures, _tells(rule, config))
        return met(figures) if holds else violated(figures, rule.cure, rule.fix)

    return WorkflowRule(rule.id, "prerequisites", rule.text, rule.guide, judge)


def _tells(rule: Rule, config: Config) -> str:
    return ", ".join(rule.asks(config)) or "the configuration"


def negation(asked: Callable[[Run], bool | None]) -> Callable[[Run], bool | None]:
    """The opposite of a fact; unknown stays unknown."""

    def holds(run: Run) -> bool | None:
        found = asked(run)
        return None if found is None else not found

    return holds


def from_release(package: Package, release: str) -> Callable[[Run], bool | None]:
    """Whether a package is of a release or later."""
    return negation(lambda run: run.config.before(package, release))


def says_version(package: Package, name: str) -> Callable[[Run], str]:
    """A package and its version, in words."""

    def says(run: Run) -> str:
        found = run.config.version(package)
        return f"{name} {'of unknown version' if found is None else '.'.join(map(str, found))}"

    return says


def switch(state: bool | None) -> str:
    """A switch in words."""
    return "not known" if state is None else "on" if state else "off"

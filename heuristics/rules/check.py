"""A configuration against all rules of its versions; and a configuration after a change, judged whole."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from heuristics.config.facts import version
from heuristics.config.versions import Version
from heuristics.rules.rule import Level, Rule, has_rule, verdict
from heuristics.rules.rules import rules
from heuristics.run.run import Run


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule that a configuration breaks, in words for a report."""

    rule: Rule
    text: str
    level: Level


@dataclass(frozen=True, slots=True)
class Undecided:
    """A rule that could not be told. `asks`: unknown knobs and options that may tell."""

    rule: Rule
    asks: tuple[str, ...]


def check_rules(run: Run) -> tuple[Broken, ...]:
    """What a run's configuration breaks for certain: errors, then warnings, then what is ignored."""
    config = run.validated
    broken = [rule for rule in _rules_of(config.core, config.bridge, config.framework) if rule.broken(config)]
    order: tuple[Level, ...] = ("error", "warning", "ignored")
    return tuple(Broken(rule, rule.text, level) for level in order for rule in broken if rule.level == level)


@cache
def _rules_of(core: Version | None, bridge: Version | None, framework: str | None) -> tuple[Rule, ...]:
    """Those that are certain to apply."""
    releases = version(core), version(bridge)
    return tuple(rule for rule in rules().values() if has_rule(rule, *releases, framework))


def undecided(run: Run) -> tuple[Undecided, ...]:
    """Rules that could not be told, of those that a setting that is on speaks of."""
    config = run.validated
    return tuple(
        Undecided(rule, asks)
        for rule in rules().values()
        if rule.level != "guide"
        and any(config.on(knob) for knob in rule.knobs)
        and verdict(rule, config) is None
        and (asks := rule.asks(config))
    )

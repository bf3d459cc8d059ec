"""A configuration against all rules of its versions; and a configuration after a change, judged whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from heuristics.config.configured import FIELD_KNOBS, given_of
from heuristics.config.facts import version
from heuristics.config.view import Config, Version
from heuristics.rules.rule import Level, Rule, has_rule, verdict
from heuristics.rules.rules import rules
from heuristics.run.run import Run
from traces.settings.settings import Value

CHANGED: Final = "change"
"""Where a merged setting was said."""


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
    config = Config(run)
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
    config = Config(run)
    return tuple(
        Undecided(rule, asks)
        for rule in rules().values()
        if rule.level != "guide"
        and any(config.on(knob) for knob in rule.knobs)
        and verdict(rule, config) is None
        and (asks := rule.asks(config))
    )


def merged(run: Run, changes: Mapping[str, Value]) -> Run:
    """The run with a set of changes merged into its whole configuration, what was given as well.

    What the trace shows is of the run as it was: nothing of it is taken away.
    """
    settings = run.settings.changed(changes, CHANGED)
    outdated = {name: None for name, knobs in FIELD_KNOBS.items() if any(knob in changes for knob in knobs)}
    given = replace(run.given, **outdated)  # type: ignore[arg-type]
    return replace(run, settings=settings, given=given_of(settings, given, {}))

"""A configuration against all rules of its versions; and a configuration after a change, judged whole."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from heuristics.config.versions import OPTIONS, Version
from heuristics.config.view import Config
from heuristics.rules.rule import Level, Rule, has_rule, verdict
from heuristics.rules.rules import RULES
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
    return tuple(rule for rule in RULES if has_rule(rule, core, bridge, framework))


def undecided(run: Run) -> tuple[Undecided, ...]:
    """Rules that could not be told, of those that a setting that is on speaks of."""
    config = run.validated
    return tuple(
        Undecided(rule, asks)
        for rule in RULES
        if any(config.on(knob) for knob in rule.knobs)
        and verdict(rule, config) is None
        and (asks := _asks(rule, config))
    )


def _asks(rule: Rule, config: Config) -> tuple[str, ...]:
    """Its unknown knobs; then the versions it reads, the GPU and the configuration file."""
    knobs = tuple(knob for knob in rule.knobs if not config.known(knob))
    options = tuple(option for fact, option in _facts(rule, config) if fact)
    return (*knobs, *options)


def _facts(rule: Rule, config: Config) -> tuple[tuple[bool, str], ...]:
    spoken = f"{rule.text} {rule.cure}"
    framework = rule.says in ("megatron_lm", "megatron_bridge") and config.framework is None
    return (
        (framework, "--config"),
        (config.core is None and bool(rule.until), OPTIONS["core"]),
        (config.te is None and "Transformer Engine" in spoken, OPTIONS["te"]),
        (config.torch is None and "PyTorch" in spoken, OPTIONS["torch"]),
        (config.capability is None and _speaks_of_gpu(spoken), "--gpu-model"),
    )


def _speaks_of_gpu(text: str) -> bool:
    return any(word in text for word in ("Blackwell", "compute capability", "NVL72", "NVLink"))

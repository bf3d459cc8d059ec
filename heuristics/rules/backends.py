"""Limits of the backends of the flex dispatcher: the rules that forbid one, asked before anybody sets it."""

from functools import cache

from heuristics.config.facts import version
from heuristics.config.view import Config
from heuristics.rules.rule import Rule, in_force
from heuristics.rules.rules import rows, rules


@cache
def limits(backend: str) -> tuple[Rule, ...]:
    """Rules that forbid a backend: errors of the flex table whose feature names it."""
    return tuple(
        rule
        for row in rows("flex")
        if (rule := rules()[row.id]).level == "error"
        and rule.feature
        and "flex_backend" in rule.feature.names
        and backend in rule.feature.words
    )


def past_limit(rule: Rule, config: Config) -> bool | None:
    """Whether a run would be past a limit with that backend, whatever its framework; None where unknown."""
    forced, holds = in_force(rule, version(config.core), version(config.bridge)), rule.holds(config)
    if forced is False or holds:
        return False
    return None if holds is None or forced is None else True

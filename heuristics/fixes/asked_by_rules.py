"""What a change asks for by itself: releases that have its knobs, and rules about what it switches
on.
"""

from dataclasses import replace
from functools import cache

from heuristics.fixes.change import Change
from heuristics.fixes.needs import needed, release
from heuristics.fixes.precondition import Needs, Release, holds
from heuristics.rules.rules import Rule, releases_of, rules
from heuristics.run.run import Run
from traces.settings.knobs import FIRST, knobs
from traces.settings.knobs import release as numbers_of
from traces.settings.settings import Values


def asked_by_rules(run: Run, fix: str, change: Change) -> Needs:
    values = change.in_run(run)
    on = frozenset(knob for knob, value in values.items() if value not in (None, False, ()))
    of_knobs = frozenset[str]() if change.by_release and run.config.core is None else on
    known = _known_since(run, of_knobs, change.since)
    return (*_unseen_recipe(run, values), *_judged(run, fix, values, _rules_about(on)), *known)


def _unseen_recipe(run: Run, values: Values) -> Needs:
    """A check where a recipe of Bridge's scripts, not all of which is known, may have the values
    already.
    """
    if run.config.word("launcher.recipe") is None:
        return ()
    known = [*filter(run.config.known, values)]
    if len(known) == len(values) or any(run.config.value(knob) != values[knob] for knob in known):
        return ()
    return tuple(replace(need, late=True) for need in needed("recipe_has_it_off", run))


def _known_since(run: Run, on: frozenset[str], needed: str) -> Needs:
    since = max(
        [numbers_of(needed) or FIRST, *(knobs()[knob].since for knob in on if knob in knobs())]
    )
    if since == FIRST and not needed:
        return ()
    return (release(run, "core", ".".join(map(str, since))),)


@cache
def _rules_about(on: frozenset[str]) -> tuple[Rule, ...]:
    """Errors about features that some of these knobs may switch on."""
    return tuple(
        rule
        for rule in rules().values()
        if rule.level == "error" and rule.feature and on & {*rule.feature.knobs}
    )


def _judged(run: Run, fix: str, values: Values, about: tuple[Rule, ...]) -> Needs:
    """The rules, judged on the changed run; those that no guide names only where they are
    broken.
    """
    before, config = run.checked, run.changed(values).checked
    releases = releases_of(config)
    needs = []
    for rule in about:
        was_on = rule.feature is not None and rule.feature.holds(before)
        applies = rule.applies(releases)
        if was_on or applies is False or not rule.asked(config):
            continue
        held = rule.holds(config)
        # a rule of the other framework, perhaps
        fact = None if held is False and not applies else held
        if fact and {name for asks in rule.conditions[1:] for name in asks.names} <= {*values}:
            continue  # the change itself sees to it
        if fact is False or rule.guide:
            met_by = rule.cure if rule.fix == fix else rule.met_by
            need = holds(rule.text, fact, met_by, ", ".join(rule.asks(config)))
            needs.append(
                replace(
                    need,
                    source=rule.source,
                    release=Release(*rule.needs_release) if rule.needs_release else None,
                )
            )
    return tuple(needs)

"""A configuration against all rules of its versions; and a configuration after a change, judged
whole.
"""

from collections.abc import Iterator
from functools import cache
from typing import Final, get_args

from heuristics.config.about import option_of
from heuristics.config.logic import all_of, negated
from heuristics.config.versions import PACKAGES
from heuristics.config.view import Config
from heuristics.facts.dictionary import fact
from heuristics.result.configured import RuleLevel, UndecidedRule
from heuristics.rules.rules import Releases, Rule, Rules, releases_of, rows, rules
from heuristics.run.run import Run
from traces.frozen import frozen
from traces.settings.knobs import VIRTUAL_STAGES, knobs, release
from traces.settings.settings import Values
from traces.texts import Texts

OF_MACHINE: Final = frozenset(
    map(
        option_of,
        ("gpu", "nvlink_domain", "container", *(f"{package}_version" for package in PACKAGES)),
    )
)
"""Options of facts that a configuration rests on and no file of it says."""


@frozen
class RuleAfterChange:
    """What a rule asks of a run after a change.

    `applies`: whether the run has what it is about; `holds`: whether it is met; None where unknown.
    """

    rule: Rule
    applies: bool | None
    holds: bool | None


def asked_by(run: Run, changes: Values) -> tuple[RuleAfterChange, ...]:
    """What rules about the changed knobs ask of a run once it is changed, those that speak of such
    a run.
    """
    config, asked_rules = run.changed(changes).checked, []
    releases = releases_of(config)
    for rule in _rules_about(frozenset(changes)):
        applies = rule.asked(config)
        if applies is not False and rule.applies(releases) is not False:
            asked_rules.append(RuleAfterChange(rule, applies, negated(rule.verdict(config))))
    return tuple(asked_rules)


@cache
def _binding() -> Rules:
    """All but those that only a guide asks for."""
    return tuple(rule for rule in rules().values() if rule.level != "guide")


@cache
def _rules_about(knobs: frozenset[str]) -> Rules:
    return tuple(rule for rule in _binding() if knobs & {*rule.knobs})


def check_rules(run: Run) -> Rules:
    """What a run's configuration breaks for certain: errors, then warnings, then what is
    ignored.
    """
    rules_broken: Rules = run.tells("broken_rules")
    return rules_broken


@fact
def broken_rules(run: Run) -> Rules:
    """The same, looked up once a run."""
    config = run.checked
    return tuple(rule for rule in _rules_of(releases_of(config)) if rule.broken(config))


def errors(run: Run) -> Rules:
    """Of what it breaks for certain that for which it is refused."""
    return tuple(rule for rule in check_rules(run) if rule.level == "error")


def broken(run: Run) -> set[str]:
    """Ids of the errors of a run's configuration."""
    return {rule.id for rule in errors(run)} if run.settings.by_knob else set()


@cache
def _rules_of(releases: Releases) -> Rules:
    """Those that are certain to apply, by level."""
    certain = [rule for rule in _binding() if rule.applies(releases)]
    return tuple(sorted(certain, key=lambda rule: get_args(RuleLevel).index(rule.level)))


def undecided(run: Run) -> Iterator[UndecidedRule]:
    """Rules that could not be told, of those that a setting that is on speaks of."""
    config = run.checked
    for rule in _binding():
        is_spoken_of = any(map(config.on, rule.knobs))
        if is_spoken_of and rule.verdict(config) is None and (asks := rule.asks(config)):
            yield _undecided(run, rule, asks)


def _undecided(run: Run, rule: Rule, asks: Texts) -> UndecidedRule:
    """With what it is by defaults: broken, or hanging on facts that no file tells.

    Of Bridge's performance scripts none is broken so: they set more than their flags say.
    """
    now = run.checked
    if rule.level != "error" or rule.asked(now) is not True:
        return UndecidedRule(rule.id, rule.text, asks, False, ())
    then = _with_defaults(run, asks)
    verdict = rule.verdict(then)
    facts = tuple(
        option for option in rule.asks(then) if OF_MACHINE.issuperset(option.split(" or "))
    )
    broken = verdict is True and not now.known("launcher.recipe")
    return UndecidedRule(rule.id, rule.text, asks, broken, facts if verdict is None else ())


def _with_defaults(run: Run, asks: Texts) -> Config:
    """By defaults that are off or nothing: what a model is made of, its recipe sets."""
    core = release(run.config.core_text)
    off = {}
    for knob in asks:
        row = knobs().get(knob)
        default = row.default_in(core) if row else ()
        if knob == VIRTUAL_STAGES:  # the table has none: in Megatron-LM it follows from others
            default = (None,)
        if default in ((None,), (False,)):
            off[knob] = default[0]
    return run.changed(off).checked


@cache
def limits(backend: str) -> Rules:
    """Rules that forbid a backend: errors of the flex table whose feature names it."""
    forbidding = []
    for rule in rows("flex").values():
        of = rule.feature
        if of and rule.level == "error" and "flex_backend" in of.names and backend in of.words:
            forbidding.append(rule)
    return tuple(forbidding)


def past_limit(rule: Rule, config: Config) -> bool | None:
    """Whether a run would be past a limit with that backend, whatever its framework; None where
    unknown.
    """
    return all_of(rule.in_force(releases_of(config)), negated(rule.holds(config)))

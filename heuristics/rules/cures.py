"""A rule's cure in one run: judged again with the whole configuration, until it breaks nothing
new.
"""

from typing import Final

from heuristics.rules.check import broken, errors
from heuristics.rules.rules import Rule, Rules
from heuristics.run.run import Run
from traces.frozen import frozen
from traces.settings.settings import Values
from traces.settings.spelling import in_section, with_twins

_PLAIN_RECIPE: Final = {"mixed_precision": "bf16_mixed"}


@frozen
class Cure:
    """Settings that meet a rule in a run. `beside`: the part of them that the rule itself does not
    name.

    `then`: rules that its settings would break and no setting meets; `set` is then empty.
    """

    set: Values
    beside: Values
    then: Rules = ()


def cure_in(run: Run, rule: Rule) -> Cure:
    """The rule's own settings, with those that other rules ask for then."""
    own = _in_run(run, rule.set)
    values, before = dict(own), broken(run) - {rule.id}
    while values and (
        new := [error for error in errors(run.changed(values)) if error.id not in before]
    ):
        added = next(filter(None, (_added(run, error, rule, values) for error in new)), None)
        if added is None:
            return Cure({}, {}, tuple(error for error in new if error.id != rule.id))
        values |= added
    return Cure(values, {knob: value for knob, value in values.items() if knob not in own})


def _added(run: Run, other: Rule, rule: Rule, values: Values) -> Values:
    """What meets one more rule without taking back what is set; nothing where nothing does."""
    wanted = _in_run(run, other.set)
    if other.id == rule.id:  # a recipe of Bridge writes its precision over the model's
        is_off = any(not values.get(knob, True) for knob in ("fp8", "fp4"))
        wanted = _PLAIN_RECIPE if is_off and run.settings.value("mixed_precision") else {}
    more = {}
    for knob, value in wanted.items():
        if knob not in values:
            more[knob] = value
        elif values[knob] != value:
            return {}
    return more


def _in_run(run: Run, values: Values) -> Values:
    """As the run's framework takes them: of a section that is written over the model, there."""
    if run.settings.framework == "megatron_bridge":
        return in_section(values, run.settings)
    return with_twins(values)

"""May two runs be compared at all, and what limits it: the rows of `comparable.toml`.

`no` only where a step is other work or another machine's. What people compare on purpose
(dispatcher, precision, graphs, recompute, versions) is `with_differences` at most, and names what
cannot be concluded.

Of what is configured only what both sides tell can differ: unknown on one side is no difference. A
pipeline layout is one where the other configuration has none: its layers are then spread evenly.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from heuristics.comparison.alike import ALIKE, Sides
from heuristics.comparison.difference.changed import trace_facts
from heuristics.comparison.difference.subject import Subject, Value, Values, differing
from heuristics.config.about import OPTIONS
from heuristics.result.compared import Comparable, Difference, State
from heuristics.rules.condition import Condition
from heuristics.words import say
from traces.limits import HALF_A_WALL
from traces.missing import known
from traces.settings.spelling import spelled
from traces.texts import Texts
from traces.toml_tables import TableRow, read_table

_FORCED_WORDS: Final = ("not forced", "forced")
FORCE: Final = "moe_router_force_load_balancing"
_ORDER: Final[tuple[State, ...]] = ("no", "with_differences", "yes")

Words = tuple[str, str]
"""What each side has."""


class Rule(TableRow):
    """One thing to be alike; its fields are described in the table."""

    what: str
    because: str
    source: str = "ours"
    state: State = "with_differences"


class RecordedRule(Rule, kw_only=True):
    """What both sides show."""

    shows: str
    when: Condition | None = None


class ConfiguredRule(Rule, kw_only=True):
    """What is configured of both sides."""

    fields: Texts = ()
    knobs: Texts = ()
    by_option: bool = False
    observed: str = ""
    alone: bool = False
    settled_by: Texts = ()
    settled: str = ""
    cuts: bool = False
    stack: bool = False

    @property
    def asked(self) -> Texts:
        knobs = list[str]()
        if not self.by_option:
            for option in map(OPTIONS.__getitem__, self.fields):
                knobs += option.knobs[:1] if option.is_knob else option.knobs
        return (*knobs, *self.knobs)

    def common(self, base: Values, new: Values) -> list[str]:
        """What both sides say of it: fields, or knobs where they share no field."""
        return _shared(self.fields, base, new) or _shared(self.asked, base, new)


def _shared(keys: Iterable[str], base: Values, new: Values) -> list[str]:
    return [key for key in keys if key in base and key in new]


class Table(TableRow):
    """All rules in order; `texts`: what several have for `because`, `settled` or `source`, or in
    it.
    """

    configured: tuple[ConfiguredRule, ...]
    recorded: tuple[RecordedRule, ...]
    texts: Mapping[str, str]


@cache
def table() -> Table:
    return read_table("heuristics.comparison", "comparable.toml", Table, ALIKE.readers)


def text_of(name: str) -> str:
    return table().texts.get(name, name)


def _difference(rule: Rule, values: Words, state: State, because: str) -> Difference:
    return Difference(rule.what, *values, state, text_of(because), text_of(rule.source))


def held_to(
    rule: ConfiguredRule, values: Words, alike: set[str], *, is_asked: bool = False
) -> Difference:
    """A configured thing that both sides have otherwise. `is_asked`: what it does is the very
    question.
    """
    because, is_settled = rule.because, rule.settled_by and alike.issuperset(rule.settled_by)
    if is_settled:
        because = rule.settled
    state = "with_differences" if is_settled or is_asked else rule.state
    return _difference(rule, values, state, because)


def in_order(unsorted: Iterable[Difference]) -> Comparable:
    """All differences, the gravest first, whose state is that of the whole."""
    differences = tuple(sorted(unsorted, key=lambda differs: _ORDER.index(differs.state)))
    if not differences:
        return Comparable("yes", ())
    return Comparable(differences[0].state, differences)


def judge_comparable(base: Subject, new: Subject) -> Comparable:
    """Compare configuration, work and recording of the two sides. Swapped sides give the mirrored
    answer.
    """
    configured, stack, cuts = list[Difference](), list[str](), False
    for rule, difference in _configured_differences(base, new):
        configured.append(difference)
        cuts |= rule.cuts
        if rule.stack:
            stack.append(rule.what)
    return in_order((*configured, *_recorded(Sides(base, new, cuts, tuple(stack)))))


def _recorded(sides: Sides) -> Iterator[Difference]:
    for rule in table().recorded:
        base, new = sides.tells(f"base.{rule.shows}"), sides.tells(f"new.{rule.shows}")
        if rule.when is None:
            differs = differing(base, new) is not None
        else:
            differs = rule.when.holds(sides) is True
        if differs:
            because = ALIKE.filled(text_of(rule.because), sides, table().texts)
            yield _difference(rule, (str(base), str(new)), rule.state, because)


def _configured_differences(
    base: Subject, new: Subject
) -> Iterator[tuple[ConfiguredRule, Difference]]:
    """What both configure, and otherwise; where they do not, what their traces show to differ."""
    base_values, new_values = _configured(base), _configured(new)
    differ, alike = held_together(base_values, new_values)
    forced, their_forced = _forced(base, base_values), _forced(new, new_values)
    for rule in table().configured:
        values = (
            values_of(rule, differ[rule.what], base_values, new_values)
            or _observed(rule, base, new)
            or _alone(rule, (base, new), (base_values, new_values))
        )
        if rule.what == "routing mode" and {forced, their_forced} == {True, False}:
            modes = values or (_FORCED_WORDS[bool(forced)], _FORCED_WORDS[bool(their_forced)])
            yield rule, _difference(rule, modes, "no", say("comparison.routing-forced"))
        elif values:
            yield rule, held_to(rule, values, alike)


def held_together(base: Values, new: Values) -> tuple[dict[str, list[str]], set[str]]:
    """Of each configured thing the names by which both sides tell it and differ; then what is
    alike.
    """
    differ, alike = dict[str, list[str]](), set[str]()
    for rule in table().configured:
        common = rule.common(base, new)
        differ[rule.what] = [key for key in common if base[key] != new[key]]
        if common and not differ[rule.what]:
            alike.add(rule.what)
    return differ, alike


def _configured(side: Subject) -> dict[str, Value]:
    """What files and options set, by field of `Given` and by knob; not what a trace shows."""
    configured = {
        knob: value for knob, value in side.values.items() if side.settings[knob].said != "trace"
    }
    if side.container:
        configured["container"] = side.container
    return {**configured, **side.given}


def _forced(side: Subject, configured: Values) -> bool | None:
    """Whether experts get even loads by force; None where it is unknown. A script that is silent
    does not.
    """
    if configured.get("routing") is not None:
        return configured["routing"] == "force_balance"
    if FORCE in configured:
        return bool(configured[FORCE])
    script = known(side.result.configuration)
    if script and script.framework == "megatron_lm" and not side.withholds(FORCE):
        return False
    return None


def values_of(rule: ConfiguredRule, keys: Sequence[str], base: Values, new: Values) -> Words | None:
    """What each side has where it differs; by name where a rule has several names."""
    if not keys:
        return None
    named = len(rule.fields) > 1 or (keys[0] in rule.asked and len(rule.asked) > 1)
    return _listed(base, keys, named), _listed(new, keys, named)


def _listed(side: Values, keys: Sequence[str], named: bool) -> str:
    texts = []
    for key in keys:
        text = spelled(side[key])
        if named:
            text = f"{key} {text}"
        texts.append(text)
    return ", ".join(texts)


def _alone(
    rule: ConfiguredRule, sides: Sequence[Subject], configured: Sequence[Values]
) -> Words | None:
    """What one side sets where both have a configuration and the other's leaves it out or empty."""
    if not rule.alone:
        return None
    keys, values = (*rule.fields, *rule.asked), list[Value]()
    for side, own in zip(sides, configured, strict=True):
        if not side.is_configured or any(map(side.withholds, keys)):
            return None
        values.append(next((own[key] for key in keys if own.get(key) is not None), None))
    base, new = values
    if (base is None) == (new is None):
        return None
    return spelled(base), spelled(new)


def _observed(rule: ConfiguredRule, base: Subject, new: Subject) -> Words | None:
    """What the traces show where both do and it is not the same, shares by half a wall."""
    one, other = trace_facts(base.rank).get(rule.observed), trace_facts(new.rank).get(rule.observed)
    if not one or not other or not one.differs(other):
        return None
    match one.value, other.value:
        case float() | int() as was, float() | int() as is_:
            if abs(was - is_) <= HALF_A_WALL.value:
                return None
            return _share(was), _share(is_)
    return spelled(one.value), spelled(other.value)


def _share(part_frac: float) -> str:
    return say("comparison.kernel-work", part_frac=part_frac)

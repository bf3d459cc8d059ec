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

from msgspec import Struct

from heuristics.comparison.alike import ALIKE, Sides
from heuristics.comparison.difference.changed import trace_facts
from heuristics.comparison.difference.subject import Subject, Value
from heuristics.config.about import OPTIONS
from heuristics.result.compared import Comparable, Difference, State
from heuristics.rules.condition import Condition
from heuristics.words import say
from traces.limits import HALF_A_WALL
from traces.missing import known
from traces.settings.spelling import spelled
from traces.toml_tables import read_table

_ROUTING_MODE: Final = "routing mode"
_FORCED_WORDS: Final = ("not forced", "forced")
_FORCE: Final = "moe_router_force_load_balancing"
_ORDER: Final[tuple[State, ...]] = ("no", "with_differences", "yes")

Words = tuple[str, str]
"""What each side has."""


class Rule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing to be alike; its fields are described in the table."""

    what: str
    because: str
    source: str = "ours"
    state: State = "with_differences"


class Recorded(Rule, frozen=True, kw_only=True):
    """What both sides show."""

    shows: str
    when: Condition | None = None


class Configured(Rule, frozen=True, kw_only=True):
    """What is configured of both sides."""

    fields: tuple[str, ...] = ()
    knobs: tuple[str, ...] = ()
    by_option: bool = False
    observed: str = ""
    alone: bool = False
    settled_by: tuple[str, ...] = ()
    settled: str = ""
    cuts: bool = False
    stack: bool = False

    @property
    def asked(self) -> tuple[str, ...]:
        found: list[str] = []
        if not self.by_option:
            for option in map(OPTIONS.__getitem__, self.fields):
                found += option.knobs[:1] if option.is_knob else option.knobs
        return (*found, *self.knobs)

    def common(self, base: Mapping[str, Value], new: Mapping[str, Value]) -> list[str]:
        """What both sides say of it: fields, or knobs where they share no field."""
        fields = [key for key in self.fields if key in base and key in new]
        return fields or [knob for knob in self.asked if knob in base and knob in new]


class Table(Struct, frozen=True, forbid_unknown_fields=True):
    """All rules in order; `texts`: what several have for `because`, `settled` or `source`, or in
    it.
    """

    configured: tuple[Configured, ...]
    recorded: tuple[Recorded, ...]
    texts: Mapping[str, str]


@cache
def table() -> Table:
    return read_table("heuristics.comparison", "comparable.toml", Table, ALIKE.readers)


def text_of(name: str) -> str:
    return table().texts.get(name, name)


def _difference(rule: Rule, values: Words, state: State, because: str) -> Difference:
    return Difference(rule.what, *values, state, text_of(because), text_of(rule.source))


def held_to(
    rule: Configured, values: Words, alike: set[str], *, is_asked: bool = False
) -> Difference:
    """A configured thing that both sides have otherwise. `is_asked`: what it does is the very
    question.
    """
    if rule.settled_by and alike.issuperset(rule.settled_by):
        return _difference(rule, values, "with_differences", rule.settled)
    if is_asked:
        return _difference(rule, values, "with_differences", rule.because)
    return _difference(rule, values, rule.state, rule.because)


def in_order(found: Iterable[Difference]) -> Comparable:
    """All differences, the gravest first, whose state is that of the whole."""
    differences = tuple(sorted(found, key=lambda one: _ORDER.index(one.state)))
    if not differences:
        return Comparable("yes", ())
    return Comparable(differences[0].state, differences)


def judge_comparable(base: Subject, new: Subject) -> Comparable:
    """Compare configuration, work and recording of the two sides. Swapped sides give the mirrored
    answer.
    """
    rules = {rule.what: rule for rule in table().configured}
    configured = [*_configured_differences(base, new)]
    differ = [rules[one.what] for one in configured]
    stack = tuple(rule.what for rule in differ if rule.stack)
    sides = Sides(base, new, any(rule.cuts for rule in differ), stack)
    return in_order((*configured, *_recorded(sides)))


def _recorded(sides: Sides) -> Iterator[Difference]:
    for rule in table().recorded:
        base, new = (ALIKE.named(f"{side}.{rule.shows}").of(sides) for side in ("base", "new"))
        if rule.when is None:
            differs = None not in (base, new) and base != new
        else:
            differs = rule.when.holds(sides) is True
        if differs:
            because = ALIKE.filled(text_of(rule.because), sides, table().texts)
            yield _difference(rule, (str(base), str(new)), rule.state, because)


def _configured_differences(base: Subject, new: Subject) -> Iterator[Difference]:
    """What both configure, and otherwise; where they do not, what their traces show to differ."""
    sides = _configured(base), _configured(new)
    differ, alike = held_together(*sides)
    forced = _forced(base, sides[0]), _forced(new, sides[1])
    for rule in table().configured:
        values = (
            values_of(rule, differ[rule.what], sides)
            or _observed(rule, base, new)
            or _alone(rule, (base, new), sides)
        )
        if rule.what == _ROUTING_MODE and None not in forced and forced[0] != forced[1]:
            modes = values or (_FORCED_WORDS[bool(forced[0])], _FORCED_WORDS[bool(forced[1])])
            yield _difference(rule, modes, "no", say("comparison.routing-forced"))
        elif values:
            yield held_to(rule, values, alike)


def held_together(
    base: Mapping[str, Value], new: Mapping[str, Value]
) -> tuple[dict[str, list[str]], set[str]]:
    """Of each configured thing the names by which both sides tell it and differ; then what is
    alike.
    """
    common = {rule.what: rule.common(base, new) for rule in table().configured}
    differ = {what: [key for key in keys if base[key] != new[key]] for what, keys in common.items()}
    return differ, {what for what, keys in common.items() if keys and not differ[what]}


def _configured(side: Subject) -> dict[str, Value]:
    """What files and options set, by field of `Given` and by knob; not what a trace shows."""
    said = {
        knob: value for knob, value in side.values.items() if side.settings[knob].said != "trace"
    }
    if side.container:
        said["container"] = side.container
    return {**said, **side.given}


def _forced(side: Subject, configured: Mapping[str, Value]) -> bool | None:
    """Whether experts get even loads by force; None where it is unknown. A script that is silent
    does not.
    """
    if configured.get("routing") is not None:
        return configured["routing"] == "force_balance"
    if _FORCE in configured:
        return bool(configured[_FORCE])
    script = known(side.result.configuration)
    if script and script.framework == "megatron_lm" and not side.withholds(_FORCE):
        return False
    return None


def values_of(
    rule: Configured, keys: Sequence[str], configured: Sequence[Mapping[str, Value]]
) -> Words | None:
    """What each side has where it differs; by name where a rule has several names."""
    if not keys:
        return None
    base, new = ([spelled(side[key]) for key in keys] for side in configured)
    if len(rule.fields) > 1 or (keys[0] in rule.asked and len(rule.asked) > 1):
        base, new = (
            [f"{key} {text}" for key, text in zip(keys, side, strict=True)] for side in (base, new)
        )
    return ", ".join(base), ", ".join(new)


def _alone(
    rule: Configured, sides: Sequence[Subject], configured: Sequence[Mapping[str, Value]]
) -> Words | None:
    """What one side sets where both have a configuration and the other's leaves it out or empty."""
    if not rule.alone or any(known(side.result.configuration) is None for side in sides):
        return None
    keys = (*rule.fields, *rule.asked)
    for side in sides:
        if any(map(side.withholds, keys)):
            return None
    base, new = (
        next((side[key] for key in keys if side.get(key) is not None), None) for side in configured
    )
    if (base is None) == (new is None):
        return None
    return spelled(base), spelled(new)


def _observed(rule: Configured, base: Subject, new: Subject) -> Words | None:
    """What the traces show where both do and it is not the same, shares by half a wall."""
    one, other = (trace_facts(side.rank).get(rule.observed) for side in (base, new))
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

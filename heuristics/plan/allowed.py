"""Whether the configuration allows a fix: each change set is merged into it and judged whole, by our rules.

What was broken before does not count against a change. A fix that breaks a rule on its own may stand on an
earlier one of the plan that mends what it breaks; it then names that step. One that only an earlier fix
forbids is for a plan without that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heuristics.rules.check import check_rules
from heuristics.rules.rule import Rule
from heuristics.run.run import Run
from traces.settings.settings import Value


@dataclass(frozen=True, slots=True)
class Allowed:
    """What the rules say of a fix.

    `after`: ids of earlier fixes that it stands on. `broken`: rules it breaks whatever comes before it, or,
    where `beside` names an earlier fix, once that is made.
    """

    after: tuple[str, ...]
    broken: tuple[Rule, ...]
    beside: str = ""


Values = Mapping[str, Value]
"""A change set: knob -> value, in the run's own framework."""


def changed(run: Run, changes: Sequence[Values]) -> Run:
    """The run with several change sets merged, in order."""
    return run.changed({knob: value for one in changes for knob, value in one.items()})


class Permits:
    """The rules a run's own configuration breaks, looked up once, and what a change adds to them."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._before = {one.id for one in check_rules(run)} if run.settings.by_knob else set()

    def judge(self, change: Values, before: Mapping[str, Values]) -> Allowed:
        """A fix by its change set; `before`: those of the fixes earlier in the plan, by id, in order."""
        if not self._run.settings.by_knob:
            return Allowed((), ())
        alone = self._broken_by((change,))
        after = () if not alone else self._stands_on(change, before)
        return Allowed((), alone) if after is None else self._beside(change, before, after)

    def _stands_on(self, change: Values, before: Mapping[str, Values]) -> tuple[str, ...] | None:
        """The one earlier fix that mends what it breaks, else all of them; None where they do not."""
        for name, other in before.items():
            if not self._broken_by((other, change)):
                return (name,)
        return tuple(before) if before and not self._broken_by((*before.values(), change)) else None

    def _beside(self, change: Values, before: Mapping[str, Values], after: tuple[str, ...]) -> Allowed:
        """Whether it goes with all that comes before it; else with which it does not, the last if several."""
        broken = self._broken_by((*before.values(), change)) if before else ()
        if not broken:
            return Allowed(after, ())
        steps = [before[name] for name in after]
        pairs = {name: self._broken_by((*steps, other, change)) for name, other in before.items()}
        name = next((name for name, rules in pairs.items() if rules), list(before)[-1])
        return Allowed(after, pairs[name] or broken, name)

    def _broken_by(self, several: Sequence[Values]) -> tuple[Rule, ...]:
        found = check_rules(changed(self._run, several))
        return tuple(one for one in found if one.level == "error" and one.id not in self._before)

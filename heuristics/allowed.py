"""Whether the configuration allows a fix: each change set is merged into it and judged whole, by our rules.

What was broken before does not count against a change. A fix that breaks a rule on its own may stand on an
earlier one of the plan that mends what it breaks; it then names that step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heuristics.constraints.check import Broken, check_rules, merged
from heuristics.fixes.fix import Knobs
from heuristics.run import Run
from traces.settings.settings import Framework, Value
from traces.settings.spelling import Changed, change_of


@dataclass(frozen=True, slots=True)
class Allowed:
    """`after`: ids of earlier fixes that it stands on. `broken`: rules it breaks whatever comes before it."""

    after: tuple[str, ...]
    broken: tuple[Broken, ...]


def change_set(knobs: Knobs, framework: Framework | None) -> Changed:
    """A fix's change in knob ids, from the lines that are printed of it, in the run's own framework."""
    if framework == "megatron_bridge":
        return change_of((*knobs.megatron_bridge, *knobs.environment), framework)
    return change_of((*knobs.megatron_lm, *knobs.environment), "megatron_lm")


def changed(run: Run, knobs: Sequence[Knobs]) -> Run:
    """The run with several change sets merged, in order."""
    values: dict[str, Value] = {}
    for one in knobs:
        values |= change_set(one, run.settings.framework).knobs
    return merged(run, values)


class Permits:
    """The rules a run's own configuration breaks, looked up once, and what a change adds to them."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._before = {one.rule.id for one in check_rules(run)} if run.settings.by_knob else set()

    def judge(self, knobs: Knobs, before: Mapping[str, Knobs]) -> Allowed:
        """A fix by its knobs; `before`: the fixes earlier in the plan, by id, in order."""
        if not self._run.settings.by_knob:
            return Allowed((), ())
        alone = self._broken_by((knobs,))
        if not alone:
            return Allowed((), ())
        for name, other in before.items():
            if not self._broken_by((other, knobs)):
                return Allowed((name,), ())
        if before and not self._broken_by((*before.values(), knobs)):
            return Allowed(tuple(before), ())
        return Allowed((), alone)

    def _broken_by(self, several: Sequence[Knobs]) -> tuple[Broken, ...]:
        found = check_rules(changed(self._run, several))
        return tuple(one for one in found if one.level == "error" and one.rule.id not in self._before)

"""Whether a plan is allowed: by our rules, each change set judged whole, and by Megatron-Core
itself.

What was broken before does not count against a change. A fix that breaks a rule on its own may
stand on an earlier one of the plan that mends what it breaks; it then names that step. One that
only an earlier fix forbids is for a plan without that. Asking Megatron-Core is done by the caller,
in a process of its own; here only what to ask and what the answers mean.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Final

from heuristics.config.given import is_whole
from heuristics.config.versions import numbers
from heuristics.plan.planned import Plan, Rejection, Rejections
from heuristics.plan.variants import IDS
from heuristics.rules.check import broken, errors
from heuristics.rules.megatron.answer import Answer
from heuristics.rules.megatron.request import NotAsked, Request, request_of
from heuristics.rules.rules import Rules
from heuristics.run.run import Run
from heuristics.words import say
from traces.frozen import frozen
from traces.settings.settings import Value, Values
from traces.texts import Texts


@frozen
class Allowed:
    """What the rules say of a fix.

    `after`: ids of earlier fixes that it stands on. `broken`: rules it breaks whatever comes before
    it, or, where `beside` names an earlier fix, once that is made.
    """

    after: Texts
    broken: Rules
    beside: str = ""


def changed(run: Run, changes: Sequence[Values]) -> Run:
    merged = dict[str, Value]()
    for change in changes:
        merged |= change
    return run.changed(merged)


class Permits:
    """The rules a run's own configuration breaks, looked up once, and what a change adds to
    them.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._before = broken(run)

    def judge(self, change: Values, before: Mapping[str, Values]) -> Allowed:
        """A fix by its change set; `before`: those of the fixes earlier in the plan, by id, in
        order.
        """
        if not self._run.settings.by_knob:
            return Allowed((), ())
        alone = self._broken_by((change,))
        after = () if not alone else self._stands_on(change, before)
        if after is None:
            return Allowed((), alone)
        return self._beside(change, before, after)

    def _stands_on(self, change: Values, before: Mapping[str, Values]) -> Texts | None:
        """The one earlier fix that mends what it breaks, else all of them; None where they do
        not.
        """
        for name, other in before.items():
            if not self._broken_by((other, change)):
                return (name,)
        if before and not self._broken_by((*before.values(), change)):
            return tuple(before)
        return None

    def _beside(self, change: Values, before: Mapping[str, Values], after: Texts) -> Allowed:
        """Whether it goes with all that comes before it; else with which it does not, the last if
        several.
        """
        together = self._broken_by((*before.values(), change)) if before else ()
        if not together:
            return Allowed(after, ())
        steps = [before[fix_id] for fix_id in after]
        for name, other in before.items():
            if rules := self._broken_by((*steps, other, change)):
                return Allowed(after, rules, name)
        return Allowed(after, together, name)

    def _broken_by(self, changes: Sequence[Values]) -> Rules:
        errors_after = errors(changed(self._run, changes))
        return tuple(rule for rule in errors_after if rule.id not in self._before)


Answers = tuple[Answer, ...]
"""Of the library, by its tiers."""
Ask = Callable[[Sequence[Request]], Sequence[Answers]]
"""Gives the answers of both tiers for each request, in order."""


OWN: Final = ""
"""Key of the run's own configuration among the answers."""


@frozen
class CheckedPlan:
    """A plan of which nothing is rejected, and the answers by fix id; `OWN` is the configuration
    itself.
    """

    plan: Plan
    answers: Mapping[str, Answers] = field(default_factory=dict)


def plan_asked(run: Run, make: Callable[[Rejections], Plan], ask: Ask | None) -> CheckedPlan:
    """Make the plan, ask about each change set, and make it again without what is rejected."""
    plan = make({})
    if ask is None or not run.settings.by_knob:
        return CheckedPlan(plan)
    answers = _ask(ask, {OWN: run})
    rejected = {}
    while new := [step for step in (*plan.fixes, *plan.levers) if step.fix.id not in answers]:
        runs = {}
        for planned in new:
            # what comes after an upgrade is for another release than can be asked
            if {planned.fix.id, *planned.after} & {*IDS.values()}:
                answers[planned.fix.id] = _not_asked(say("plan.for-another-release"))
            elif planned.change.is_open:
                answers[planned.fix.id] = _not_asked(say("plan.value-to-fill-in"))
            else:
                steps = [*(step for step in plan.fixes if step.fix.id in planned.after), planned]
                runs[planned.fix.id] = changed(run, [step.change.in_run(run) for step in steps])
        answers |= _ask(ask, runs)
        for name in answers:
            if why := _rejection(run, name, answers):
                rejected[name] = why
        plan = make(rejected)
    return CheckedPlan(plan, answers)


def _ask(ask: Ask, runs: Mapping[str, Run]) -> dict[str, Answers]:
    requests, answers, not_asked = {}, {}, {}
    for name, run in runs.items():
        request = request_of(run)
        if isinstance(request, NotAsked):
            not_asked[name] = _not_asked(
                say("plan.not-asked", because=request.because, cure=request.cure)
            )
        else:
            requests[name] = request
    if requests:
        for name, tier_answers in zip(requests, ask(list(requests.values())), strict=True):
            answers[name] = tuple(map(partial(_weighed, runs[name]), tier_answers))
    return answers | not_asked


def _not_asked(why: str) -> Answers:
    return (Answer("config", "not_checked", why),)


def _weighed(run: Run, answer: Answer) -> Answer:
    """A rejection by another release is none of the run's; of a part it may rest on what nobody
    said.
    """
    if answer.answer != "rejected":
        return answer
    if run.config.core_text is not None and not _is_same(run, answer):
        return replace(
            answer, answer="needs", text=say("plan.rejected-elsewhere", text=answer.text)
        )
    if is_whole(run.settings):
        return answer
    return replace(answer, answer="needs", text=say("plan.rejected-by-defaults", text=answer.text))


def _is_same(run: Run, answer: Answer) -> bool:
    """Whether the release that was asked is the run's, but for corrections."""
    own = run.config.core_text
    return own is not None and numbers(own)[:2] == numbers(answer.version)[:2]


def _rejection(run: Run, name: str, answers: Mapping[str, Answers]) -> Rejection | None:
    """Why a fix is rejected, in Megatron-Core's words.

    What it says of the configuration itself is not new. Where the run's release is unknown, a knob
    that the one that was asked does not have may be newer.
    """
    old = {earlier.text for earlier in answers[OWN] if earlier.answer == "rejected"}
    for answer in answers[name] if name != OWN else ():
        lacks = answer.answer == "no_such_knob" and _is_same(run, answer)
        if (answer.answer == "rejected" or lacks) and answer.text not in old:
            return Rejection(answer.text, f"megatron-core {answer.version}")
    return None

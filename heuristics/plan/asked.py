"""The plan asked of Megatron-Core itself: what it rejects is refused in its own words, and planned around.

Asking is done by the caller, in a process of its own; here only what to ask and what the answers mean.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from heuristics.config.given import is_whole
from heuristics.config.versions import numbers
from heuristics.plan.allowed import changed
from heuristics.plan.planned import Plan, Planned, Rejection
from heuristics.plan.upgrade import IDS
from heuristics.rules.megatron.answer import Answer
from heuristics.rules.megatron.request import NotAsked, Request, request_of
from heuristics.run.run import Run
from traces.limits import Limit

Ask = Callable[[Sequence[Request]], Sequence[tuple[Answer, ...]]]
"""Gives the answers of both tiers for each request, in order."""

ROUNDS: Final = Limit(3, "rounds", "ours: a plan is made again where a fix is rejected; more never happened")

_TO_FILL_IN: Final = (
    Answer("config", "not_checked", "the change has a value to fill in, so that nobody was asked"),
)

_UPGRADED: Final = (
    Answer("config", "not_checked", "it is for another release than the run's, so that nobody was asked"),
)

OWN: Final = ""
"""Key of the run's own configuration among the answers."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A plan of which nothing is rejected, and the answers by fix id; `OWN` is the configuration itself."""

    plan: Plan
    answers: Mapping[str, tuple[Answer, ...]] = field(default_factory=dict)


def plan_asked(run: Run, make: Callable[[Mapping[str, Rejection]], Plan], ask: Ask | None) -> Asked:
    """Make the plan, ask about each change set, and make it again without what is rejected."""
    plan = make({})
    if ask is None or not run.settings.by_knob:
        return Asked(plan)
    answers = _ask(ask, {OWN: run})
    rejected: dict[str, Rejection] = {}
    for _ in range(int(ROUNDS.value)):
        new = [one for one in (*plan.fixes, *plan.levers) if one.fix.id not in answers]
        if not new:
            break
        answers |= {one.fix.id: _TO_FILL_IN for one in new if one.change.is_open}
        answers |= {one.fix.id: _UPGRADED for one in new if {one.fix.id, *one.after} & {*IDS.values()}}
        whole = [one for one in new if one.fix.id not in answers]
        answers |= _ask(ask, {one.fix.id: _with(run, one, plan) for one in whole})
        rejected |= {name: why for name in answers if (why := _rejection(run, name, answers))}
        plan = make(rejected)
    return Asked(plan, answers)


def _with(run: Run, planned: Planned, plan: Plan) -> Run:
    """The run with a fix and the earlier ones it stands on."""
    before = [one.change.in_run(run) for one in plan.fixes if one.fix.id in planned.after]
    return changed(run, (*before, planned.change.in_run(run)))


def _ask(ask: Ask, runs: Mapping[str, Run]) -> dict[str, tuple[Answer, ...]]:
    requests = {name: request_of(run) for name, run in runs.items()}
    asked = {name: one for name, one in requests.items() if isinstance(one, Request)}
    answers = dict(zip(asked, ask(list(asked.values())), strict=True)) if asked else {}
    answers = {name: tuple(_weighed(runs[name], one) for one in several) for name, several in answers.items()}
    for name, one in requests.items():
        if isinstance(one, NotAsked):
            answers[name] = (Answer("config", "not_checked", f"{one.because}; give {one.cure}"),)
    return answers


def _weighed(run: Run, answer: Answer) -> Answer:
    """A rejection of a configuration of which only a part is known may rest on what nobody said."""
    if answer.answer != "rejected" or is_whole(run.settings):
        return answer
    text = f"rejected with Megatron-Core's own defaults for all settings that are not given: {answer.text}"
    return replace(answer, answer="needs", text=f"{text}; give the whole configuration")


def _rejection(run: Run, name: str, answers: Mapping[str, tuple[Answer, ...]]) -> Rejection | None:
    """Why a fix is rejected, in Megatron-Core's words.

    What it says of the configuration itself is not new. Another release than the run's has no say; where the
    run's is unknown it may reject, but a knob that it does not have may be newer.
    """
    old = {one.text for one in answers[OWN] if one.answer == "rejected"}
    own = run.config.core_text
    for one in answers[name] if name != OWN else ():
        same = own is not None and numbers(own)[:2] == numbers(one.version)[:2]
        rejects = one.answer == "rejected" and (same or own is None)
        lacks = one.answer == "no_such_knob" and same
        if (rejects or lacks) and one.text not in old:
            return Rejection(one.text, f"megatron-core {one.version}")
    return None

"""What the files of a run add: its configuration judged, Megatron-Core asked, room in memory, experiments.

Loads the rules of all releases, the workflow and the estimates, which a recording alone does not need.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from heuristics.judging.checked import Checked, check, contradicted
from heuristics.plan.asked import OWN, Ask, plan_asked
from heuristics.plan.planned import Plan, Rejection
from heuristics.plan.room import rooms_of
from heuristics.result.configured import Experiments
from heuristics.result.judged import Room
from heuristics.rules.megatron.answer import Answer
from heuristics.run.run import Run
from heuristics.workflow.experiments import plan_of_experiments
from traces.settings.configuration import Problem


@dataclass(frozen=True, slots=True)
class FromFiles:
    """A plan that the configuration allows, and what else its files tell.

    `answers`: of Megatron-Core by fix id; `rooms`: whether a fix's change fits the memory, by fix id.
    """

    plan: Plan
    checked: Checked
    experiments: Experiments
    answers: Mapping[str, tuple[Answer, ...]] = field(default_factory=dict)
    rooms: Mapping[str, Room] = field(default_factory=dict)


def judge_files(
    run: Run,
    problems: tuple[Problem, ...],
    make: Callable[[Mapping[str, Rejection]], Plan],
    ask: Ask | None,
    step_ns: int | None,
    perturbation_frac: float | None,
) -> FromFiles:
    """Judge what files tell of a run.

    `make` makes a plan without what is rejected; `ask` asks Megatron-Core itself. `step_ns`: a measured step.
    """
    disagrees = contradicted(run, problems, perturbation_frac)
    waits = disagrees.untunable
    asked = plan_asked(run, lambda rejected: make({**waits, **rejected}), ask)
    return FromFiles(
        plan=asked.plan,
        checked=check(run, disagrees, problems, asked.answers.get(OWN, ()), step_ns),
        experiments=plan_of_experiments(run, asked.plan),
        answers=asked.answers,
        rooms=rooms_of(run, asked.plan),
    )

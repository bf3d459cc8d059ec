"""The workflow: an unknown run, the whole walk, and a plan as experiments."""

from __future__ import annotations

import re

import pytest

from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.plan.plan import make_plan
from heuristics.plan.planned import Plan
from heuristics.result.configured import Experiments
from heuristics.rules.rules import rules
from heuristics.run.run import Run
from heuristics.workflow.experiments import held_fixed, plan_of_experiments
from heuristics.workflow.walk import FIT_BY_RUNNING, RULES, WorkflowRule, walk
from tests.doubles.opinions import a_fix, catalogue_of, paying
from tests.doubles.workflow import Row, log_of, run_with
from tests.doubles.workflow_lists import ROWS


@pytest.mark.parametrize("rule", [pytest.param(rule, id=rule.id) for rule in RULES])
def test_of_an_unknown_run_no_rule_says_more_than_unknown(rule: WorkflowRule) -> None:
    """A rule that the newest release no longer has is none of an unknown one."""
    gone = rule.id in rules() and rules()[rule.id].until
    assert rule.judge(Run()).state == ("not_applicable" if gone else "unknown")


@pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in ROWS])
def test_a_violation_has_advice_and_an_unknown_says_what_tells(row: Row) -> None:
    found = row.judged
    assert found.because
    assert bool(found.advice) or found.state != "violated"
    assert bool(found.tells) == (found.state == "unknown")
    assert re.fullmatch(r"(?:MEM|COM|HST|CMP|CFG|ENV)-\d+|", found.fix)


def test_the_walk_says_every_rule_once_in_order() -> None:
    steps = walk(run_with(log=log_of(oom=1)))
    assert [step.id for step in steps] == [rule.id for rule in RULES]
    assert (steps[0].id, steps[0].state) == ("fit-first", "violated")


@pytest.mark.parametrize(
    ("steps", "refused", "state"), [(0, False, "unknown"), (5, False, "met"), (5, True, "unknown")]
)
@pytest.mark.parametrize("rule", sorted(FIT_BY_RUNNING))
def test_w1_a_run_fits_by_evidence_alone_and_never_where_it_is_refused(
    rule: str, steps: int, refused: bool, state: str
) -> None:
    found = {step.id: step.state for step in walk(run_with(log=log_of(steps=steps)), refused)}
    assert found[rule] == state


FIXES = catalogue_of(
    a_fix("COM-2", "communication", varies=("dispatcher",)),
    a_fix("COM-1", "communication"),
    a_fix("HST-2", "host_overhead"),
)


def experiments(run: Run | None = None) -> Experiments:
    """Of a run with two walls."""
    costs = {"communication": {"ep_a2a": 300}, "host_overhead": {"gc": 200}}
    two = Run(
        Observed(),
        Given(),
        costs,  # type: ignore[arg-type]
        1_000,
        {"communication": 300, "host_overhead": 200},
        total_frac={"communication": 0.3, "host_overhead": 0.2},
    )
    plan = make_plan(two, ["communication", "host_overhead"], FIXES)
    return plan_of_experiments(run or two, plan)


def ids(made: Experiments) -> list[list[str]]:
    return [[one.fix for one in part] for part in (made.first, made.then, made.later)]


def test_the_baseline_then_the_walls_fixes_one_by_one_then_the_rest_then_all_together() -> None:
    assert ids(experiments()) == [["", "COM-2"], ["COM-1"], ["HST-2", ""]]


def test_a_run_that_does_not_fit_has_no_baseline_of_its_own() -> None:
    run = paying("memory", {"recompute": 300}, does_not_fit=True)
    assert "the smallest change that fits" in plan_of_experiments(run, Plan((), (), ())).first[0].title


def test_a_dense_model_holds_nothing_of_experts_fixed() -> None:
    held = held_fixed(Run(Observed(moe=False), Given(tp=2, ep=1, pp=1, cp=1, routing="dropless")))
    assert not [one for one in held if "routing" in one or "dispatcher" in one or "EP" in one]

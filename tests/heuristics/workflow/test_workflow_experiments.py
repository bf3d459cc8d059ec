"""A plan as experiments: the baseline first, one variable each, everything else held, the winner last."""

from __future__ import annotations

from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.plan.plan import make_plan
from heuristics.plan.planned import Plan
from heuristics.result.configured import Experiments
from heuristics.run.run import Run
from heuristics.workflow.experiments import held_fixed, plan_of_experiments
from tests.doubles.opinions import a_fix, catalogue_of, paying
from tests.doubles.workflow import run_with

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


def test_the_dispatcher_is_held_unless_it_is_the_variable() -> None:
    run = run_with({"moe_token_dispatcher_type": "alltoall"}, shown={"dispatcher": "alltoall"})
    made = experiments(run)
    dispatcher, overlap = made.first[1], made.then[0]
    assert dispatcher.variable == "dispatcher"
    assert not any(one.startswith("dispatcher") for one in dispatcher.holds)
    assert "dispatcher (alltoall)" in overlap.holds


def test_a_run_that_does_not_fit_has_no_baseline_of_its_own() -> None:
    run = paying("memory", {"recompute": 300}, does_not_fit=True)
    assert "the smallest change that fits" in plan_of_experiments(run, Plan((), (), ())).first[0].title


def test_a_dense_model_holds_nothing_of_experts_fixed() -> None:
    held = held_fixed(Run(Observed(moe=False), Given(tp=2, ep=1, pp=1, cp=1, routing="dropless")))
    assert not [one for one in held if "routing" in one or "dispatcher" in one or "EP" in one]

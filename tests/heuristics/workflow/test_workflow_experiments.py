"""A plan as experiments: the baseline first, one variable each, everything else held, the winner last."""

from __future__ import annotations

from dataclasses import replace

from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.plan.plan import make_plan
from heuristics.plan.planned import Plan, Planned
from heuristics.result.configured import Experiments
from heuristics.run.run import Run
from heuristics.workflow.experiments import held_fixed, plan_of_experiments
from tests.doubles.opinions import COMPUTE, a_fix, catalogue_of, paying
from tests.doubles.runs import run_of
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


def test_the_baseline_changes_nothing_and_the_winner_is_measured_as_a_whole() -> None:
    made = experiments()
    assert made.first[0].variable == "nothing"
    assert made.later[-1].title == "everything that paid, together"
    assert any("really ran" in one for one in made.later[-1].measure)


def test_item_65_without_a_winner_each_arm_is_an_experiment_under_one_routing_mode() -> None:
    run = replace(run_of(gpu="H100", ep=64, guidance="main-2026-08"), total_frac={"communication": 0.3})
    fix = CATALOGUE["COM-2"]
    planned = Planned(fix, fix.knobs(run), fix.preconditions(run), 0.3)
    made = plan_of_experiments(run, Plan((planned,), (), ()))
    arms = [one for one in (*made.first, *made.then) if one.fix == "COM-2"]
    assert [one.title.rpartition(": ")[2] for one in arms] == ["deepep", "hybridep"]
    assert all("forced balance on both sides" in one.next for one in arms)
    assert all(any("routing mode" in held for held in one.holds) for one in arms)


def test_every_experiment_runs_fifty_steps_without_the_profiler() -> None:
    made = experiments()
    every = (*made.first, *made.then, *made.later)
    assert {one.step_count for one in every} == {50}
    assert all(any("without the profiler" in measure for measure in one.measure) for one in every)
    assert "look again" in made.first[1].measure


def test_the_dispatcher_is_held_unless_it_is_the_variable() -> None:
    run = run_with({"moe_token_dispatcher_type": "alltoall"}, shown={"dispatcher": "alltoall"})
    made = experiments(run)
    dispatcher, overlap = made.first[1], made.then[0]
    assert dispatcher.variable == "dispatcher"
    assert not any(one.startswith("dispatcher") for one in dispatcher.holds)
    assert "dispatcher (alltoall)" in overlap.holds


def test_what_is_held_fixed_is_named_with_its_value() -> None:
    run = run_with(
        {
            "tensor_model_parallel_size": 2,
            "context_parallel_size": 1,
            "pipeline_model_parallel_size": 4,
            "expert_model_parallel_size": 8,
            "world_size": 64,
            "cuda_graph_impl": "transformer_engine",
            "cuda_graph_modules": ("attn", "hunter2"),
        },
        given={"routing": "dropless", "precision": "bf16"},
    )
    held = held_fixed(run)
    assert "routing mode (dropless)" in held
    assert "parallel layout (TP2 x CP1 x DP8 x PP4; ETP2 x EP8 x EDP1 x PP4)" in held
    assert "CUDA graphs (transformer_engine attn)" in held
    assert "precision (bf16)" in held
    assert "container and versions" in held


def test_forced_balance_is_held_as_the_benchmark_it_is() -> None:
    held = held_fixed(run_with({"moe_router_force_load_balancing": True}))
    assert "routing mode (forced balance: a benchmark)" in held


def test_what_comes_next_is_the_largest_other_wall() -> None:
    made = experiments()
    assert "host overhead is the next largest, 20 % today" in made.first[1].next
    assert "communication is the next largest, 30 % today" in made.later[0].next
    assert "COM-1 act on the same costs" in made.first[1].next


def test_without_costs_the_order_of_the_workflow_says_what_comes_next() -> None:
    memory = catalogue_of(a_fix("MEM-2", "memory"))
    run = paying("memory", {"recompute": 300})
    made = plan_of_experiments(run, make_plan(run, ["memory"], memory))
    assert "communication is what usually shows next" in made.first[1].next


def test_a_run_that_does_not_fit_has_no_baseline_of_its_own() -> None:
    run = paying("memory", {"recompute": 300}, does_not_fit=True)
    assert "the smallest change that fits" in plan_of_experiments(run, Plan((), (), ())).first[0].title


def test_without_a_wall_there_is_a_baseline_and_the_levers() -> None:
    catalogue = catalogue_of(
        a_fix("CMP-3", "compute", lever="lever", varies=("precision",)),
        a_fix("CMP-4", "compute", lever="lever"),
    )
    plan = make_plan(Run(), [], catalogue, levers=COMPUTE)
    made = plan_of_experiments(Run(), plan)
    assert ids(made) == [[""], [], ["CMP-3", "CMP-4", ""]]
    assert made.later[0].variable == "precision"


def test_nothing_to_try_is_a_baseline_alone() -> None:
    assert ids(plan_of_experiments(Run(), Plan((), (), ()))) == [[""], [], []]


def test_a_dense_model_holds_nothing_of_experts_fixed() -> None:
    held = held_fixed(Run(Observed(moe=False), Given(tp=2, ep=1, pp=1, cp=1, routing="dropless")))
    assert not [one for one in held if "routing" in one or "dispatcher" in one or "EP" in one]


def test_a_refused_precision_is_not_kept() -> None:
    made = experiments(run_with({"fp8": "hybrid", "fp8_recipe": "tensorwise"}, given={"gpu": "A100"}))
    assert made.first[0].title == "baseline: the run with its errors corrected"
    assert "precision" in made.first[0].holds

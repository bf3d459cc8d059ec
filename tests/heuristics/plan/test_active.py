"""What a run does already is no step, and neither is what its GPU, its loader or another engine forbids."""

from __future__ import annotations

import pytest

from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.fixes.catalogue import fixes_of
from heuristics.plan.plan import make_plan
from heuristics.plan.planned import Plan
from heuristics.run.run import Run
from tests.doubles.opinions import WINDOW_NS
from traces.names.frameworks import Framework
from traces.sections.tables import WallId


def ids(plan: Plan) -> list[str]:
    return [one.fix.id for one in plan.fixes]


def planned(
    wall: WallId, kind: str, framework: Framework, shown: Observed, given: Given | None = None
) -> Plan:
    run = Run(
        shown,
        given or Given(),
        {wall: {kind: WINDOW_NS // 2}},
        WINDOW_NS,
        {wall: WINDOW_NS // 2},
        framework=framework,
    )
    return make_plan(run, [wall], fixes_of(framework))


@pytest.mark.parametrize("framework", ["pytorch", "megatron"])
@pytest.mark.parametrize(
    ("fix", "wall", "kind", "shown"),
    [
        ("HST-3", "host_overhead", "launch", {"graph_frac": 0.9}),
        ("HST-10", "host_overhead", "data", {"in_use": ("dali",)}),
        ("CMP-9", "compute", "no_tensor_cores", {"precision": "fp8_blockwise", "wide_frac": 0.2}),
    ],
)
def test_what_runs_already_is_no_step_in_any_frameworks_words(
    framework: Framework, fix: str, wall: WallId, kind: str, shown: dict[str, object]
) -> None:
    plan = planned(wall, kind, framework, Observed(capability=(9, 0), **shown))  # type: ignore[arg-type]
    assert fix not in ids(plan)
    assert [one.is_set for one in plan.refused if one.fix.id == fix] == [True]


def test_a_loader_of_its_own_is_asked_for_threads_and_not_for_workers() -> None:
    own = planned("host_overhead", "data", "pytorch", Observed(in_use=("dali",), absent_frac={"data": 0.5}))
    assert ids(own)[0] == "HST-11"
    other = planned("host_overhead", "data", "pytorch", Observed(in_use=(), absent_frac={"data": 0.5}))
    assert ids(other)[0] == "HST-10"


@pytest.mark.parametrize(
    ("shown", "given", "is_planned"),
    [
        ({}, {}, True),
        ({"in_use": ("rocm",)}, {}, False),
        ({"in_use": ("rocm",)}, {"torch_version": "2.11.0"}, False),
        ({"in_use": ("rocm",)}, {"torch_version": "2.12.0"}, True),
        ({}, {"gpu": "MI300X"}, False),
        ({"in_use": ("rollout_engine",)}, {}, False),
        ({"allocator_retries": False}, {}, False),
        ({"allocator_retries": True}, {}, True),
    ],
)
@pytest.mark.parametrize("framework", ["pytorch", "megatron"])
def test_expandable_segments_are_for_a_caching_allocator_that_has_them(
    framework: Framework, shown: dict[str, object], given: dict[str, object], is_planned: bool
) -> None:
    plan = planned("memory", "allocator", framework, Observed(**shown), Given(**given))  # type: ignore[arg-type]
    assert ("MEM-1" in ids(plan)) == is_planned
    assert ("MEM-18" in ids(plan)) == (shown.get("allocator_retries") is False)


@pytest.mark.parametrize(("shown", "kind"), [("rocm", "absent"), ("rollout_engine", "needs")])
def test_what_the_stack_may_not_have_is_absent_and_what_the_run_forbids_is_not(shown: str, kind: str) -> None:
    refused = planned("memory", "allocator", "pytorch", Observed(in_use=(shown,))).refused
    assert [one.kind for one in refused if one.fix.id == "MEM-1"] == [kind]

"""Symptoms in, walls out: the same limits as from a trace, and what is not said is never clear."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heuristics.evidence.evidence import RunEvidence
from heuristics.evidence.symptoms import Symptoms, observed_from, read_symptoms
from heuristics.evidence.symptoms.symptoms import FIGURES
from heuristics.result.judged import Wall
from heuristics.run.run import WALL_IDS
from traces.account.pieces import CAUSES
from traces.missing import known
from traces.names.kernels import COMM_KINDS
from traces.sections.tables import WallId
from traces.settings.settings import settings


def observed(**said: object) -> RunEvidence:
    return observed_from(read_symptoms(json.dumps(said), "symptoms.json"))


def wall(number: WallId, **said: object) -> Wall:
    return next(one for one in observed(**said).walls if one.id == number)


def test_a_tenth_of_the_window_exposed_is_a_finding_and_a_little_less_is_clear() -> None:
    at = wall("communication", exposed_comm_by_kind_frac={"ep_dispatch": 0.05, "ep_combine": 0.05})
    below = wall("communication", exposed_comm_by_kind_frac={"ep_dispatch": 0.05, "ep_combine": 0.04})
    assert at.outcome == "finding"
    assert at.cost_frac == pytest.approx(0.10)
    assert below.outcome == "clear"


def test_the_verdict_names_the_wall_that_costs_most_and_its_kind() -> None:
    verdict = observed(
        exposed_comm_by_kind_frac={"ep_dispatch": 0.13, "ep_combine": 0.13},
        absent_frac={"launch_starved": {"launch": 0.12}},
    ).verdict
    assert (verdict.wall, verdict.kind, verdict.runner_up) == ("communication", "ep_a2a", "host_overhead")


def test_what_is_not_said_is_unmeasurable_and_says_how_to_say_it() -> None:
    walls = observed(detected={"dispatcher": "alltoall"}).walls
    assert [one.outcome for one in walls] == ["unmeasurable"] * 4
    assert all(one.missing and "give " in one.cure for one in walls)


def test_communication_costs_at_most_what_blocks() -> None:
    found = wall(
        "communication",
        exposed_comm_by_kind_frac={"ep_dispatch": 0.10, "ep_combine": 0.20},
        absent_frac={"blocking": {"ep_dispatch": 0.02, "ep_combine": 0.04}},
    )
    assert found.outcome == "clear"
    assert found.cost_frac == pytest.approx(0.06)
    assert found.cost_by_kind_ns == {"ep_dispatch": 20_000_000, "ep_combine": 40_000_000}


def test_waits_that_nothing_explains_keep_communication_from_being_clear() -> None:
    found = wall(
        "communication",
        exposed_comm_by_kind_frac={"dp_all_gather": 0.06},
        absent_frac={"blocking": {"dp_all_gather": 0.06}, "dependency_stalled": 0.05},
    )
    assert found.outcome == "unmeasurable"
    assert "unexplained waits" in found.missing[0]


def test_a_pipeline_that_blocks_while_the_gpu_idles_is_communication() -> None:
    verdict = observed(
        budget_frac={"compute": 0.7, "exposed_comm": 0.0, "idle": 0.3},
        exposed_comm_by_kind_frac={},
        absent_frac={"blocking": {"pp_p2p": 0.25}},
    ).verdict
    assert (verdict.wall, verdict.kind) == ("communication", "pp_p2p")


def test_exposed_time_of_no_kind_may_be_of_any() -> None:
    found = wall("communication", budget_frac={"compute": 0.7, "exposed_comm": 0.2, "idle": 0.1})
    assert found.outcome == "finding"
    assert found.cost_by_kind_ns == {"sendrecv_unresolved": 200_000_000}


def test_the_allocator_is_memorys_and_the_profiler_nobodys() -> None:
    said = {"launch_starved": {"launch": 0.02, "allocator": 0.12, "profiler": 0.30}}
    host, memory = (
        wall(one, absent_frac=said, memory={"recompute_frac": 0.0}) for one in ("host_overhead", "memory")
    )
    assert (host.outcome, host.cost_by_kind_ns) == ("clear", {"launch": 20_000_000})
    assert (memory.outcome, memory.cost_by_kind_ns) == ("finding", {"allocator": 120_000_000})


def test_graphs_recorded_whole_hide_what_the_host_costs() -> None:
    found = wall("host_overhead", absent_frac={"launch_starved": {"launch": 0.02}, "graph_opaque": 0.2})
    assert found.outcome == "unmeasurable"
    assert "graph" in found.missing[0]


def test_a_compute_that_fills_the_window_leaves_no_room_for_a_wall_of_the_host() -> None:
    walls = {one.id: one for one in observed(budget_frac={"compute": 0.95, "idle": 0.05}).walls}
    assert walls["host_overhead"].outcome == walls["communication"].outcome == "clear"
    assert walls["memory"].outcome == walls["compute"].outcome == "unmeasurable"


def test_recomputing_moe_costs_its_all_to_all_a_third_more() -> None:
    said = {
        "recompute_frac": 0.12,
        "recompute_modules": ["moe"],
        "offload_exposed_frac": 0,
        "allocator_frac": 0,
    }
    found = wall("memory", memory=said, exposed_comm_by_kind_frac={"ep_dispatch": 0.15, "ep_combine": 0.15})
    assert found.cost_frac == pytest.approx(0.22)


def test_recomputing_an_activation_costs_only_itself() -> None:
    said = {
        "recompute_frac": 0.12,
        "recompute_modules": ["moe_act"],
        "offload_exposed_frac": 0,
        "allocator_frac": 0,
    }
    found = wall("memory", memory=said, exposed_comm_by_kind_frac={"ep_dispatch": 0.15, "ep_combine": 0.15})
    assert found.cost_frac == pytest.approx(0.12)


def test_the_configuration_says_what_is_recomputed_where_the_symptoms_do_not() -> None:
    said = read_symptoms(
        json.dumps({"memory": {"recompute_frac": 0.12}, "exposed_comm_by_kind_frac": {"ep_dispatch": 0.15}}),
        "symptoms.json",
    )
    full, none = {"recompute_granularity": "full"}, {"recompute_granularity": None}
    assert observed_from(said, settings(full, "config.yaml")).walls[0].cost_frac == pytest.approx(0.17)
    assert observed_from(said, settings(none, "config.yaml")).walls[0].cost_frac == pytest.approx(0.12)


def test_a_configuration_without_recompute_settles_its_price() -> None:
    said = {"budget_frac": {"compute": 0.9, "exposed_comm": 0.1}, "absent_frac": {"launch_starved": {}}}
    symptoms = read_symptoms(json.dumps(said), "symptoms.json")
    assert known(observed_from(symptoms).walls[0].cost_frac) is None
    off = settings({"recompute_granularity": None}, "config.yaml")
    assert observed_from(symptoms, off).walls[0].cost_frac == 0.0


def test_memory_given_back_and_taken_again_comes_before_a_larger_wall() -> None:
    seen = observed(
        memory={"allocator_calls_per_step": 14, "recompute_frac": 0.0},
        exposed_comm_by_kind_frac={"ep_dispatch": 0.4},
    )
    assert seen.verdict.wall == "memory"
    assert seen.verdict.does_not_fit


def test_a_small_price_is_clear_whether_or_not_room_is_said() -> None:
    price = {"recompute_frac": 0.01, "offload_exposed_frac": 0.0, "allocator_frac": 0.0}
    assert wall("memory", memory=price).outcome == "clear"
    assert wall("memory", memory={**price, "peak_bytes": 40, "capacity_bytes": 80}).outcome == "clear"


def test_half_empty_sms_are_the_compute_wall_and_nearly_full_ones_none() -> None:
    budget = {"compute": 0.8, "idle": 0.2}
    assert wall("compute", budget_frac=budget, sm={"fill_frac": 0.5}).cost_frac == pytest.approx(0.4)
    assert wall("compute", budget_frac=budget, sm={"fill_frac": 0.9}).outcome == "clear"


def test_one_gemm_per_expert_is_the_compute_wall_where_nothing_is_said_of_the_sms() -> None:
    said = {"compute_by_class_frac": {"gemm": 0.6, "attention": 0.2}}
    found = wall("compute", kernels={"expert_gemms_per_layer": 128}, **said)
    assert (found.outcome, found.cost_by_kind_ns) == ("finding", {"gemm": 600_000_000})
    assert wall("compute", kernels={"expert_gemms_per_layer": 6}, **said).outcome == "unmeasurable"


def test_unfused_routing_and_permutation_are_the_compute_wall_from_a_tenth_of_the_window() -> None:
    said = {"compute_by_class_frac": {"gemm": 0.5, "permute": 0.12, "router": 0.08}}
    many, few = ({"router_kernels_per_layer": count} for count in (72, 31))
    found = wall("compute", detected={"permute_fused": False}, kernels=many, **said)
    assert found.cost_by_kind_ns == {"permute": 120_000_000, "router": 80_000_000}
    fused = wall("compute", detected={"permute_fused": True}, kernels=few, **said)
    assert fused.outcome == "unmeasurable"
    filled = wall("compute", detected={"permute_fused": False}, sm={"fill_frac": 0.95}, **said)
    assert filled.cost_by_kind_ns == {"permute": 120_000_000}


def test_the_configuration_says_that_permutation_is_unfused_where_the_symptoms_do_not() -> None:
    said = read_symptoms('{"compute_by_class_frac": {"permute": 0.2}}', "symptoms.json")
    costs = [
        next(
            known(one.cost_frac)
            for one in observed_from(said, settings(knobs, "run.yaml")).walls
            if one.id == "compute"
        )
        for knobs in ({"moe_permute_fusion": False}, {"moe_permute_fusion": True})
    ]
    assert costs == [pytest.approx(0.2), None]


def test_sums_of_kernels_alone_decide_nothing() -> None:
    seen = observed(kernels={"sum_by_class_frac": {"comm": 0.9}})
    assert seen.verdict.wall is None
    assert any("sums of kernel times" in reason for reason in seen.verdict.because)
    assert not seen.replayed


@pytest.mark.parametrize(
    ("capture", "reason"),
    [({"perturbation_frac": 0.177}, "18 % longer"), ({"missing_events": True}, "events are missing")],
)
def test_a_capture_that_cannot_be_trusted_gives_no_wall_but_a_cure(capture: object, reason: str) -> None:
    seen = observed(capture=capture, exposed_comm_by_kind_frac={"ep_dispatch": 0.4})
    assert seen.verdict.wall is None
    assert seen.bound.bucket is None
    assert reason in seen.verdict.because[0]
    assert "record again" in seen.verdict.because[1]


def test_a_slightly_longer_step_under_the_profiler_is_usable() -> None:
    seen = observed(capture={"perturbation_frac": 0.1}, exposed_comm_by_kind_frac={"ep_dispatch": 0.4})
    assert seen.verdict.wall == "communication"


def test_few_ranks_make_the_verdict_less_sure_and_say_so() -> None:
    few = observed(run={"ranks_seen": 1, "world_size": 16}, exposed_comm_by_kind_frac={"tp": 0.4})
    assert few.verdict.confidence_because[1].startswith("1 of 16 ranks")


def test_ranks_count_alike() -> None:
    ranks = [{"exposed_comm_by_kind_frac": {"cp": 0.30}}, {"exposed_comm_by_kind_frac": {"cp": 0.10}}]
    assert wall("communication", ranks=ranks).cost_frac == pytest.approx(0.20)


def test_what_one_rank_alone_tells_stands_for_the_others_too() -> None:
    kinds = {"exposed_comm_by_kind_frac": {"cp": 0.30}}
    seen = observed(ranks=[{**kinds, "absent_frac": {"launch_starved": {"launch": 0.20}}}, kinds])
    host = next(one for one in seen.walls if one.id == "host_overhead")
    assert (host.cost_frac, host.cost_ns, seen.window_ns) == (0.20, 400_000_000, 2_000_000_000)


def test_waiting_for_a_rank_whose_host_is_late_is_the_hosts() -> None:
    ranks = [
        {"rank": 5, "exposed_comm_by_kind_frac": {}, "absent_frac": {"launch_starved": {"gc": 0.14}}},
        {"rank": 6, "exposed_comm_by_kind_frac": {"tp": 0.18}, "absent_frac": {"launch_starved": {}}},
    ]
    late = {"rank": 5, "cause": "slow_host", "wait_frac": 0.12}
    walls = {one.id: one for one in observed(ranks=ranks, run={"late": late}).walls}
    assert walls["communication"].cost_frac == pytest.approx(0.03)
    assert walls["host_overhead"].cost_by_kind_ns == {"gc": 260_000_000}


def test_a_late_link_leaves_the_waiting_to_communication() -> None:
    late = {"cause": "slow_link", "wait_frac": 0.12}
    assert wall("communication", exposed_comm_by_kind_frac={"tp": 0.2}, run={"late": late}).cost_frac == 0.2


def test_lengths_in_ns_say_the_same_as_parts() -> None:
    in_ns = observed(
        budget_ns={"window": 2_000, "compute": 1_400, "exposed_comm": 400, "idle": 200},
        exposed_comm_by_kind_ns={"ep_dispatch": 400},
        absent_ns={"launch_starved": {"launch": 200}, "blocking": {"ep_dispatch": 400}},
        memory={"recompute_ns": 500, "allocator_ns": 0, "offload_exposed_ns": 0},
    )
    parts = observed(
        budget_frac={"compute": 0.7, "exposed_comm": 0.2, "idle": 0.1},
        exposed_comm_by_kind_frac={"ep_dispatch": 0.2},
        absent_frac={"launch_starved": {"launch": 0.1}, "blocking": {"ep_dispatch": 0.2}},
        memory={"recompute_frac": 0.25, "allocator_frac": 0.0, "offload_exposed_frac": 0.0},
    )
    assert (in_ns.walls, in_ns.verdict, in_ns.bound) == (parts.walls, parts.verdict, parts.bound)


def test_the_bound_is_the_largest_share_of_what_is_said() -> None:
    seen = observed(
        budget_frac={"compute": 0.5, "exposed_comm": 0.3, "idle": 0.2},
        absent_frac={"launch_starved": {"launch": 0.1}},
        memory={"recompute_frac": 0.25},
    )
    assert seen.bound.bucket == "communication"
    assert seen.largest == ("compute", 0.5)


def test_what_is_detected_is_shown() -> None:
    shown = observed(
        detected={
            "dispatcher": "deepep",
            "graph_share_frac": 0.6,
            "recompute": ["mla_up_proj"],
            "internode": True,
        },
        hidden_comm_by_kind_frac={"ep_dispatch": 0.04},
        exposed_comm_by_kind_frac={"ep_dispatch": 0.06, "pp_p2p": 0.01},
        a2a={"waiting_like_frac": 0.07},
        kernels={"short_kernel_frac": 0.5},
        memory={"peak_bytes": 7e10, "capacity_bytes": 8e10},
        gpu="NVIDIA H100 80GB HBM3",
    ).observed
    assert (shown.moe, shown.dispatcher, shown.internode, shown.gpu) == (True, "deepep", True, "H100")
    assert (shown.ep_overlap, shown.pp_active, shown.tp_active) == (True, True, None)
    assert (shown.graph_frac, shown.recompute_modules, shown.short_kernel_frac) == (
        0.6,
        ("mla_up_proj",),
        0.5,
    )
    assert (shown.peak_bytes, shown.memory_bytes) == (70_000_000_000, 80_000_000_000)
    assert shown.a2a_waiting_frac == pytest.approx(0.7)


def test_nothing_said_at_all_is_unmeasurable_too() -> None:
    seen = observed_from(Symptoms())
    assert seen.verdict.wall is None
    assert {one.outcome for one in seen.walls} == {"unmeasurable"}


PART = st.floats(0.0, 0.2)


@given(
    st.dictionaries(st.sampled_from(COMM_KINDS), PART, max_size=4),
    st.dictionaries(st.sampled_from(CAUSES), PART, max_size=4),
    st.none() | PART,
    st.none() | st.floats(0.0, 1.0),
)
def test_a_wall_is_a_finding_exactly_from_its_limit_up(
    kinds: dict[str, float], causes: dict[str, float], again: float | None, fill: float | None
) -> None:
    said: dict[str, object] = {"exposed_comm_by_kind_frac": kinds, "sm": {"fill_frac": fill}}
    if sum(causes.values()) <= 1.0:
        said["absent_frac"] = {"launch_starved": causes}
    if again is not None:
        said["memory"] = {"recompute_frac": again}
    seen = observed(**said)
    assert [one.id for one in seen.walls] == list(WALL_IDS)
    for one in seen.walls:
        assert (one.outcome == "finding") == ((known(one.cost_frac) or 0) >= 0.10)
        assert one.outcome != "unmeasurable" or one.missing
    found = [one for one in seen.walls if one.outcome == "finding"]
    assert (seen.verdict.wall is None) == (not found)


@pytest.mark.parametrize("number", WALL_IDS)
def test_the_figures_that_a_wall_asks_for_are_enough_to_judge_it(number: WallId) -> None:
    values: dict[str, object] = {
        "blocking": {"ep_a2a": 0},
        "peak_bytes": 1,
        "capacity_bytes": 2,
        "fill_frac": 1,
    }
    before = wall(number, detected={"dispatcher": "alltoall"})
    given: dict[str, object] = {}
    for key in FIGURES[number]:
        assert key in before.cure
        group, _, name = key.partition(".")
        told = {**given.get(group, {}), name or "ep_a2a": values.get(name, 0)}  # type: ignore[dict-item]
        given[group] = told
    assert (before.outcome, wall(number, **given).outcome) == ("unmeasurable", "clear")


def test_idle_time_of_no_known_cause_points_at_the_host_and_judges_nothing() -> None:
    much = observed(budget_frac={"compute": 0.6, "exposed_comm": 0.1, "exposed_copy": 0.0, "idle": 0.3})
    little = observed(budget_frac={"compute": 0.9, "exposed_comm": 0.05, "exposed_copy": 0.0, "idle": 0.05})
    assert much.verdict.wall == "communication"
    assert [*much.unproven] == ["host_overhead"]
    assert "idle for 30 %" in much.unproven["host_overhead"].reason
    assert "launch_starved" in much.unproven["host_overhead"].cure
    assert "host_overhead" not in little.unproven


def test_what_a_late_host_may_cost_beside_idle_time_is_named() -> None:
    host = wall("host_overhead", budget_frac={"compute": 0.6, "exposed_comm": 0.36, "idle": 0.04})
    assert host.at_most_frac == pytest.approx(0.4)
    assert host.missing[0].endswith("(idle 4.0 %, beside communication 36 %)")


def test_time_that_has_another_reason_is_not_the_hosts() -> None:
    said = {"compute": 0.6, "exposed_comm": 0.36, "idle": 0.04}
    host = wall("host_overhead", budget_frac=said, absent_frac={"blocking": {"ep_a2a": 0.3}})
    assert host.at_most_frac == pytest.approx(0.1)


def test_memory_and_communication_that_are_not_decided_point_at_their_fixes() -> None:
    tight = observed(
        memory={"recompute_frac": 0.05, "peak_bytes": 95, "capacity_bytes": 100},
        budget_frac={"compute": 0.6, "idle": 0.05},
    ).unproven
    assert [*tight] == ["communication", "memory"]
    assert "35 %" in tight["communication"].reason
    assert "recompute" in tight["memory"].reason


def test_a_run_bound_by_compute_has_levers_though_its_fill_is_unknown() -> None:
    given_ = {"compute": 0.93, "exposed_comm": 0.04, "exposed_copy": 0.0, "idle": 0.03}
    kinds = {"ep_a2a": 0.02, "dp_reduce_scatter": 0.02}
    found = observed(
        budget_frac=given_,
        exposed_comm_by_kind_frac=kinds,
        memory={"recompute_frac": 0.0, "offload_exposed_frac": 0.0, "allocator_frac": 0.0},
    ).unproven
    assert [*found] == ["compute"]
    assert "fill of the SMs is unknown" in found["compute"].reason

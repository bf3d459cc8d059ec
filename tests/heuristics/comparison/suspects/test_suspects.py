"""Suspects: each rule with a pair that fires it and a near miss that does not; order; mirrored sides."""

from __future__ import annotations

from string import Formatter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from heuristics.comparison.difference.changed import way
from heuristics.comparison.difference.rows import Facts
from heuristics.comparison.suspects.facts import VIEWED
from heuristics.comparison.suspects.find import find_suspects, with_explained
from heuristics.comparison.suspects.table import causes, fix_movers
from heuristics.comparison.suspects.view import turned
from heuristics.result.compared import Suspect
from tests.doubles.comparison import configuration, trace
from tests.doubles.suspects import MS, change, facts, kernel_delta, moved, still

GRAPHED: dict[str, Any] = {"detected": {"graph_share_frac": 0.6}}
UNGRAPHED: dict[str, Any] = {"detected": {"graph_share_frac": 0.1}}
LAUNCHES = (moved("launch_starved.launch", 1, 5), moved("launch_latency.kernel_gap", 1, 3))
GEMMS = still("compute.gemm", 40)


def first(found: Facts) -> Suspect:
    return find_suspects(found)[0]


def ids(found: Facts) -> list[str]:
    return [one.id for one in find_suspects(found)]


def test_graphs_that_stop_replaying_come_first_and_are_sure_where_a_setting_says_it_too() -> None:
    said = change("cuda_graph_modules", ("attn", "moe_router"), ())
    found = first(facts(*LAUNCHES, GEMMS, changed=(said,), base=GRAPHED, new=UNGRAPHED))
    assert (found.id, found.confidence, found.explains_ns) == ("graphs_stopped", "high", 6 * MS)
    assert found.rows == ("launch_starved.launch", "launch_latency.kernel_gap")
    assert found.title.startswith("CUDA graphs stopped replaying")
    assert "kernel work in CUDA graphs: 60 % -> 10 %" in found.because
    assert "cuda_graph_modules: [attn, moe_router] -> [] (configuration)" in found.because
    assert (
        "launch_starved.launch a step: 1.00 ms -> 5.00 ms (+4.00 ms, 67 % of all that moved)" in found.because
    )


def test_graphs_lost_without_a_setting_are_less_sure_and_the_sentence_says_so() -> None:
    with_config = {"configuration": configuration({"cuda_graph_impl": "local"})}
    found = first(facts(*LAUNCHES, base=GRAPHED, new=UNGRAPHED, new_result=with_config))
    assert (found.id, found.confidence) == ("graphs_stopped", "medium")
    assert any("asked for do not replay" in sentence for sentence in found.because)


def test_graphs_as_before_are_no_suspect_although_launches_grew() -> None:
    assert "graphs_stopped" not in ids(facts(*LAUNCHES, GEMMS, base=GRAPHED, new=GRAPHED))


def test_graphs_that_replay_more_while_launches_grew_are_no_suspect() -> None:
    said = change("cuda_graph_modules", ("attn",), ("attn", "moe_router"))
    assert "graphs_stopped" not in ids(facts(*LAUNCHES, changed=(said,), base=UNGRAPHED, new=GRAPHED))


def nccl(base: str, new: str, **bound: bool) -> Facts:
    both: dict[str, Any] = {"given": bound}
    return facts(
        *LAUNCHES,
        GEMMS,
        changed=(change("version.nccl", base, new, "log"),),
        base_result=both,
        new_result=both,
    )


def test_nccl_2_30_without_binding_comes_first_for_launches_that_are_later() -> None:
    found = first(nccl("2.29.3", "2.30.1", cpu_bound_to_numa=False))
    assert (found.id, found.confidence, found.explains_ns) == ("nccl_host_cpu", "high", 6 * MS)
    assert "ranks are not bound to NUMA nodes there" in found.because
    assert "v0.5.1 release notes" in found.source


def test_nccl_2_30_is_a_suspect_too_where_nothing_is_known_of_binding() -> None:
    assert first(nccl("2.29.7", "2.30.5")).id == "nccl_host_cpu"


@pytest.mark.parametrize(
    ("base", "new", "bound"),
    [("2.29.3", "2.30.1", True), ("2.28.9", "2.29.3", False), ("2.30.1", "2.30.5", False)],
)
def test_nccl_is_not_the_affinity_case_where_ranks_are_bound_or_2_30_is_not_crossed(
    base: str, new: str, bound: bool
) -> None:
    assert "nccl_host_cpu" not in ids(nccl(base, new, cpu_bound_to_numa=bound))


def test_a_lost_binding_explains_launches_that_are_later_for_as_many_kernels() -> None:
    said = change("launcher.numa_binding", True, False)
    found = first(facts(*LAUNCHES, GEMMS, changed=(said,)))
    assert (found.id, found.confidence) == ("host_unbound", "high")
    assert found.rows == ("launch_starved.launch",)


def test_a_host_that_is_later_without_a_witness_is_no_story_of_binding_or_clocks() -> None:
    found = first(facts(*LAUNCHES, GEMMS))
    assert (found.id, found.title) == ("host_slower", "The host is later for the same kernels")


def test_a_host_is_no_suspect_where_loading_moved_too() -> None:
    loading = moved("launch_starved.data", 30, 3)
    assert "host_slower" not in ids(facts(*LAUNCHES, GEMMS, loading))
    assert "host_uncovered" not in ids(facts(*LAUNCHES, moved("compute.gemm", 40, 30), loading))


def test_a_host_that_is_later_for_more_kernels_is_no_slower_host() -> None:
    more = moved("compute.elementwise", 2, 3, "count", 100, 150)
    assert "host_slower" not in ids(facts(*LAUNCHES, more))


def test_a_gpu_that_is_done_sooner_uncovers_its_host() -> None:
    found = ids(facts(moved("launch_starved.launch", 1, 5), moved("compute.gemm", 40, 36)))
    assert "host_uncovered" in found
    assert "host_slower" not in found


FLEX = {"moe_token_dispatcher_type": "flex", "moe_flex_dispatcher_backend": "deepep"}
SKIPPED: dict[str, Any] = {
    "base": {"detected": {"dispatcher": "deepep"}},
    "new": {"detected": {"dispatcher": "alltoall"}},
    "base_result": {"configuration": configuration(FLEX)},
    "new_result": {"configuration": configuration(FLEX)},
}
EXCHANGE = moved("exposed_comm.ep_dispatch", 10, 30)


def test_a_dispatcher_that_is_configured_but_does_not_run_was_skipped() -> None:
    found = first(facts(EXCHANGE, **SKIPPED))
    assert (found.id, found.confidence) == ("dispatcher_skipped", "high")
    assert "the configuration asks for deepep where the trace shows alltoall" in found.because


def test_a_dispatcher_that_is_configured_otherwise_was_exchanged_and_not_skipped() -> None:
    alltoall = {"configuration": configuration({"moe_token_dispatcher_type": "alltoall"})}
    said = change("moe_token_dispatcher_type", "flex", "alltoall")
    found = facts(EXCHANGE, changed=(said,), **{**SKIPPED, "new_result": alltoall})
    assert (first(found).id, first(found).confidence) == ("dispatcher_exchanged", "high")
    assert "dispatcher_skipped" not in ids(found)


def test_the_same_dispatcher_on_both_sides_is_no_suspect() -> None:
    found = ids(facts(EXCHANGE))
    assert "dispatcher_exchanged" not in found
    assert found[0] == "comm_slower.ep"


def test_fp8_explains_faster_gemms_new_casts_and_the_hosts_larger_share_together() -> None:
    rows = (
        moved("compute.gemm", 40, 24),
        moved("compute.quantize", 0, 3, "count", 0, 50),
        moved("launch_starved.launch", 2, 12),
    )
    said = (change("fp8", None, "hybrid"), change("detected.precision", "bf16", "fp8", "trace"))
    found = first(facts(*rows, changed=said))
    assert (found.id, found.confidence) == ("lower_precision", "high")
    assert (len(found.rows), found.explains_ns) == (3, -3 * MS)


def test_a_precision_that_did_not_change_is_no_suspect() -> None:
    assert "lower_precision" not in ids(facts(moved("compute.gemm", 40, 24)))


def test_recompute_switched_on_explains_more_kernels_of_all_classes() -> None:
    rows = (moved("compute.gemm", 40, 50, "count", 100, 130), moved("compute.norm", 2, 3, "count", 10, 15))
    new = {"memory": {"recompute_ns": 11 * MS, "recompute_modules": {"moe_act": 11 * MS}}}
    found = first(facts(*rows, new=new, changed=(change("recompute_granularity", None, "selective"),)))
    assert (found.id, found.confidence, found.explains_ns) == ("recompute_more", "high", 11 * MS)
    assert "recomputed modules: none -> moe_act" in found.because


def test_recompute_of_next_to_nothing_is_no_suspect() -> None:
    new = {"memory": {"recompute_ns": MS // 10, "recompute_modules": {}}}
    assert "recompute_more" not in ids(facts(moved("compute.gemm", 40, 50, "count", 100, 130), new=new))


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("launch_starved.gc", "gc_pauses"),
        ("launch_starved.data", "data_loader"),
        ("launch_starved.token_count_sync", "token_count_syncs"),
        ("launch_starved.sync", "host_syncs"),
        ("launch_starved.lazy_init", "lazy_init"),
        ("launch_starved.profiler", "profiler_overhead"),
        ("exposed_copy.memcpy_h2d", "copies_exposed"),
    ],
)
def test_a_row_that_only_one_thing_moves_names_it(row: str, expected: str) -> None:
    assert first(facts(moved(row, 1, 9), GEMMS)).id == expected
    assert expected not in ids(facts(moved("trailing", 1, 9), GEMMS))


def test_the_allocator_is_a_suspect_where_it_is_called_more_often() -> None:
    calls = [{"memory": {"allocator_calls": count, "recompute_ns": 0}} for count in (0, 12)]
    found = first(facts(moved("launch_starved.allocator", 0, 4), base=calls[0], new=calls[1]))
    assert (found.id, found.confidence) == ("allocator", "medium")
    assert "allocator" not in ids(facts(moved("launch_starved.allocator", 0, 4)))


def test_the_profilers_part_is_told_where_the_traces_tell_it() -> None:
    sides = [{"traces": (trace(perturbation_frac=frac),)} for frac in (0.01, 0.08)]
    rows = (moved("launch_starved.profiler", 1, 6),)
    found = first(facts(*rows, base_result=sides[0], new_result=sides[1]))
    assert "profiler's part of the step: 1.0 % -> 8.0 %" in found.because


def test_offload_explains_exposed_copies_before_copies_in_general_do() -> None:
    new = {"memory": {"offload_exposed_ns": 8 * MS, "recompute_ns": 0}}
    base = {"memory": {"offload_exposed_ns": 0, "recompute_ns": 0}}
    said = change("fine_grained_activation_offloading", False, True)
    found = facts(moved("exposed_copy.memcpy_d2h", 1, 9), changed=(said,), base=base, new=new)
    assert (first(found).id, first(found).confidence) == ("offload_more", "high")
    assert "copies_exposed" not in ids(found)


ALIKE = (
    moved("compute.gemm", 40, 44),
    moved("compute.attention", 20, 22),
    moved("compute.norm", 10, 11),
)


def test_all_classes_slower_alike_is_the_clock() -> None:
    found = find_suspects(facts(*ALIKE))
    assert [one.id for one in found] == ["gpu_slower"]
    assert found[0].explains_ns == 7 * MS


def test_a_kernel_more_in_a_hundred_is_no_suspect() -> None:
    assert ids(facts(moved("compute.norm", 4, 9, "count", 100, 101))) == ["row.compute.norm"]
    assert ids(facts(moved("compute.norm", 4, 9, "count", 100, 150), GEMMS)) == ["kernels_more.norm"]


def test_one_class_slower_is_no_clock_but_these_kernels() -> None:
    rows = (moved("compute.gemm", 40, 44), still("compute.attention", 20), still("compute.norm", 10))
    slower = kernel_delta("compute.gemm", "slower", 40, 44)
    found = first(facts(*rows, kernels=(slower,)))
    assert found.id == "kernels_slower.gemm"
    assert "one compute.gemm kernel: 40.0 ms -> 44.0 ms, grid: 1x1x1 -> 2x1x1" in found.because
    assert "gpu_slower" not in ids(facts(*rows))


def test_other_kernels_for_the_same_work_and_other_grids_are_told_apart() -> None:
    rows = (moved("compute.gemm", 40, 44), still("compute.norm", 10))
    gone, new = kernel_delta("compute.gemm", "gone", 40, None), kernel_delta("compute.gemm", "new", None, 44)
    assert first(facts(*rows, kernels=(gone, new))).id == "kernels_exchanged.gemm"
    assert first(facts(*rows, kernels=(kernel_delta("compute.gemm", "grid", 40, 44),))).id == (
        "kernels_grid.gemm"
    )


def test_a_lost_fusion_shows_as_more_small_kernels_for_as_many_gemms() -> None:
    rows = (moved("compute.permute", 4, 9, "count", 20, 60), *LAUNCHES, GEMMS)
    said = (change("moe_permute_fusion", True, False),)
    found = first(facts(*rows, changed=said))
    assert (found.id, found.confidence, found.explains_ns) == ("fusion_lost", "medium", 11 * MS)
    whole = kernel_delta("compute.permute", "gone", 4, None)
    parts = replace(kernel_delta("compute.permute", "new", None, 3), new_count=3.0)
    assert (first(facts(*rows, changed=said, kernels=(whole, parts))).confidence) == "high"
    assert first(facts(*rows, kernels=(whole, parts))).id == "fusion_lost"
    more_gemms = moved("compute.gemm", 40, 60, "count", 100, 150)
    assert "fusion_lost" not in ids(facts(moved("compute.permute", 4, 9, "count", 20, 60), more_gemms))


def test_experts_that_run_one_gemm_each_lost_their_grouped_gemm() -> None:
    grouped, plain = (
        moved("compute.grouped_gemm", 40, 0, "count", 8, 0),
        moved("compute.gemm", 9, 60, "count", 20, 90),
    )
    found = first(facts(grouped, plain, changed=(change("moe_grouped_gemm", True, False),)))
    assert (found.id, found.confidence, found.explains_ns) == ("grouped_gemm_lost", "high", 11 * MS)
    assert "grouped_gemm_lost" not in ids(facts(moved("compute.grouped_gemm", 40, 41), plain))


def test_gaps_between_as_many_kernels_are_the_gpus_own() -> None:
    assert ids(facts(moved("launch_latency.kernel_gap", 1, 5), GEMMS)) == ["kernel_gaps"]
    assert ids(facts(moved("launch_latency.kernel_gap", 1, 5), GEMMS, base=GRAPHED, new=UNGRAPHED)) == [
        "graphs_stopped"
    ]


def test_compute_that_only_one_side_has_is_no_more_of_the_same_work() -> None:
    assert "more_work" not in ids(facts(moved("compute.gemm", 0, 5, "count", 0, 100)))


def test_more_of_everything_is_more_work_and_no_lost_fusion() -> None:
    names = ("compute.gemm", "compute.attention", "compute.norm", "compute.permute")
    rows = [moved(name, 10, 15, "count", 100, 150) for name in names]
    found = first(facts(*rows, changed=(change("train.global_batch_size", 1024, 1536),)))
    assert (found.id, found.confidence) == ("more_work", "high")


@pytest.mark.parametrize("family", ["dp", "tp", "pp", "cp"])
def test_communication_is_told_by_what_its_difference_is_made_of(family: str) -> None:
    kind = {"dp": "dp_reduce_scatter", "tp": "tp", "pp": "pp_p2p", "cp": "cp"}[family]
    rules = {"overlap": "overlap_lost", "duration": "comm_slower", "count": "comm_more"}
    for part, rule in rules.items():
        more = 150 if part == "count" else 100
        found = facts(moved(f"exposed_comm.{kind}", 5, 15, part, 100, more), GEMMS)
        assert ids(found) == [f"{rule}.{family}"]
    unknown = [f"row.exposed_comm.{kind}"]
    assert ids(facts(moved(f"exposed_comm.{kind}", 5, 15, ""), GEMMS)) == unknown
    assert ids(facts(moved(f"exposed_comm.{kind}", 5, 15, "count"), GEMMS)) == unknown  # of as many calls


def test_an_overlap_that_was_switched_off_makes_its_rule_sure() -> None:
    said = change("ddp.overlap_grad_reduce", True, False)
    found = first(facts(moved("exposed_comm.dp_reduce_scatter", 5, 15, "overlap"), changed=(said,)))
    assert (found.id, found.confidence) == ("overlap_lost.dp", "high")


DEEPEP: dict[str, Any] = {"detected": {"dispatcher": "deepep"}}
SLOW = moved("exposed_comm.ep_dispatch", 5, 9)


def test_audit_62_alltoall_is_the_control_arm_where_a_flex_backend_got_slower() -> None:
    assert "moe_token_dispatcher_type alltoall" in first(facts(SLOW, base=DEEPEP, new=DEEPEP)).next
    faster = moved("exposed_comm.ep_dispatch", 9, 5)
    assert "control arm" not in first(facts(faster, base=DEEPEP, new=DEEPEP)).next
    assert "control arm" not in first(facts(SLOW)).next  # it runs alltoall
    assert "control arm" not in first(facts(moved("exposed_comm.tp", 5, 9), base=DEEPEP, new=DEEPEP)).next


def test_all_to_all_that_waits_is_no_slower_link() -> None:
    base, new = ({"a2a": {"waiting_like_ns": ms * MS}} for ms in (1, 18))
    found = ids(facts(EXCHANGE, base=base, new=new))
    assert found == ["arrival_wait"]


def test_the_overlap_of_expert_all_to_all_is_a_suspect_where_the_host_pays_more_than_it_hides() -> None:
    said = change("overlap_moe_expert_parallel_comm", False, True)
    pays = (moved("launch_starved.sync", 1, 9), moved("exposed_comm.ep_a2a", 10, 8, "overlap"))
    assert first(facts(*pays, changed=(said,))).id == "ep_overlap_host"
    hides = (moved("launch_starved.sync", 1, 9), moved("exposed_comm.ep_a2a", 30, 8, "overlap"))
    assert "ep_overlap_host" not in ids(facts(*hides, changed=(said,)))


@pytest.mark.parametrize(
    ("what", "versions", "row", "gpu", "expected"),
    [
        ("version.nccl", ("2.29.7", "2.30.4"), "exposed_comm.ep_a2a", "NVIDIA GB300", "nccl_small_a2a"),
        ("version.nccl", ("2.28.3", "2.29.7"), "exposed_comm.tp", "NVIDIA H100", "nccl_small_all_reduce"),
        ("version.container", ("26.04", "26.06"), "compute.grouped_gemm", "GB200", "container_fused_gemms"),
    ],
)
def test_published_regressions_of_releases_need_their_release_their_rows_and_their_gpu(
    what: str, versions: tuple[str, str], row: str, gpu: str, expected: str
) -> None:
    one = change(what, *versions, "log")
    here: dict[str, Any] = {"new": {"gpu": gpu}, "base": {"gpu": gpu}}
    there: dict[str, Any] = {"new": {"gpu": "A100"}}
    assert first(facts(moved(row, 5, 15), GEMMS, changed=(one,), **here)).id == expected
    assert expected not in ids(facts(moved(row, 5, 15), GEMMS, changed=(one,), **there))
    assert expected not in ids(facts(moved("trailing", 5, 15), GEMMS, changed=(one,), **here))
    backwards = replace(one, base=one.new, new=one.base)
    assert expected not in ids(facts(moved(row, 5, 15), GEMMS, changed=(backwards,), **here))


def test_a_container_without_deepep_needs_another_dispatcher_in_the_trace() -> None:
    one = change("version.container", "25.09", "26.02", "log")
    sides: dict[str, Any] = {key: SKIPPED[key] for key in ("base", "new")}
    assert first(facts(EXCHANGE, changed=(one,), **sides)).id == "container_without_deepep"
    assert "container_without_deepep" not in ids(facts(EXCHANGE, changed=(one,)))


def test_tensor_parallelism_of_one_rules_the_container_with_tp_out() -> None:
    one = change("version.container", "26.02", "26.06", "log")
    sizes = [{"given": {"tp": size}} for size in (2, 1)]
    assert "container_with_tp" in ids(facts(moved("compute.gemm", 4, 9), changed=(one,), new_result=sizes[0]))
    assert "container_with_tp" not in ids(
        facts(moved("compute.gemm", 4, 9), changed=(one,), new_result=sizes[1])
    )


def test_a_change_explains_the_rows_it_can_move_and_only_those_that_moved() -> None:
    said = (
        change("train.manual_gc", True, False),
        change("tp_comm_overlap", True, False),
        change("some_name_of_ones_own", 1, 2),
    )
    rows = (moved("launch_starved.gc", 1, 9), moved("exposed_comm.tp", 2, 1))
    explained = with_explained(facts(*rows, changed=said)).changed
    assert [one.can_explain for one in explained] == [("launch_starved.gc",), (), ()]


def test_a_change_that_no_rule_speaks_for_is_a_suspect_of_its_own() -> None:
    found = first(
        facts(moved("compute.attention", 5, 9), changed=(change("attention_backend", "flash", "fused"),))
    )
    assert (found.id, found.confidence) == ("knob.attention_backend", "medium")
    assert found.because[0] == "attention_backend: flash -> fused (configuration)"


def test_a_version_that_can_move_everything_is_only_consistent() -> None:
    found = find_suspects(
        facts(moved("trailing", 5, 9), changed=(change("version.torch", "2.9", "2.10", "log"),))
    )
    assert [(one.id, one.confidence) for one in found] == [("version.torch", "low")]


def test_a_change_that_explains_nothing_is_no_suspect_and_nothing_may_explain_it() -> None:
    said = (change("train.manual_gc", True, False),)
    assert ids(facts(moved("trailing", 5, 9), changed=said)) == ["row.trailing"]
    assert find_suspects(facts(GEMMS)) == ()


def test_a_withheld_value_is_not_shown() -> None:
    hidden = replace(change("attention_backend", None, None), withheld=True)
    (found,) = find_suspects(facts(moved("compute.attention", 5, 9, ""), changed=(hidden,)))
    assert found.because[0] == "attention_backend differs; its value is withheld"


def test_a_cause_of_the_slower_part_comes_before_one_of_what_got_faster() -> None:
    rows = (moved("launch_starved.gc", 0, 9), moved("exposed_comm.tp", 50, 45))
    assert ids(facts(*rows)) == ["gc_pauses", "comm_slower.tp"]


def test_little_of_what_moved_is_no_suspect() -> None:
    assert ids(facts(moved("trailing", 0, 99), moved("launch_starved.gc", 0, 1))) == ["row.trailing"]
    both = ["row.trailing", "gc_pauses"]
    assert ids(facts(moved("trailing", 0, 97), moved("launch_starved.gc", 0, 3))) == both


def test_a_large_part_without_a_proven_cause_is_named_with_where_to_look_and_a_small_one_is_not() -> None:
    found = first(facts(moved("trailing", 0, 9), moved("dependency_stalled", 0, 1)))
    assert (found.id, found.rows, found.confidence) == ("row.trailing", ("trailing",), "low")
    assert found.next.startswith("look at one step of each side")
    assert ids(facts(moved("trailing", 0, 95), moved("dependency_stalled", 0, 5))) == ["row.trailing"]


@pytest.mark.parametrize(
    ("base", "new", "expected"),
    [
        (False, True, 1), ("none", "local", 1), (("attn",), (), -1), (("attn",), ("mlp",), 0), (2, 4, 1),
        ("selective", "full", 1), ("bf16_mixed", "bf16_with_mxfp8_mixed", 1), ("local", "full_iteration", 0),
        (None, None, 0), ("fp8", "bf16", -1), (1.0, 0.5, -1),
    ],
)  # fmt: skip
def test_a_setting_goes_up_down_or_cannot_be_said(base: object, new: object, expected: int) -> None:
    there, back = change("knob", base, new), change("knob", new, base)  # type: ignore[arg-type]
    assert (way(there), way(back)) == (expected, -expected)


def test_ids_are_distinct_and_every_rule_and_mover_has_its_source() -> None:
    assert len({rule.id for rule in causes().rules}) == len(causes().rules)
    assert all(
        rule.source and rule.next and (rule.slower or rule.faster or rule.either) for rule in causes().rules
    )
    assert all(one.source and one.what for one in (*causes().movers, *fix_movers()))


def test_every_figure_of_a_cause_is_a_fact() -> None:
    signs = [sign if isinstance(sign, str) else sign[1] for rule in causes().rules for sign in rule.signs]
    named = {name for sign in signs for _, name, _, _ in Formatter().parse(sign) if name is not None}
    assert sorted(named - VIEWED.facts.keys()) == []


ROWS = (
    "compute.gemm", "compute.norm", "compute.attention", "compute.permute", "exposed_comm.ep_dispatch",
    "exposed_comm.tp", "launch_starved.launch", "launch_starved.gc", "launch_latency.kernel_gap", "idle",
)  # fmt: skip
CHANGES = (
    change("cuda_graph_modules", ("attn",), ()), change("version.nccl", "2.29.3", "2.30.1", "log"),
    change("fp8", None, "hybrid"), change("recompute_granularity", "full", None), change("tp", 1, 2, "given"),
    change("detected.precision", "bf16", "fp8", "trace"), change("moe_permute_fusion", True, False),
)  # fmt: skip
some_rows = st.lists(
    st.tuples(
        st.sampled_from(ROWS), st.integers(0, 50), st.integers(0, 50),
        st.sampled_from(["count", "duration", "overlap", ""]), st.integers(90, 130),
    ),
    unique_by=lambda one: one[0],
    min_size=1,
)  # fmt: skip


@settings(max_examples=40)
@given(some_rows, st.sets(st.sampled_from(CHANGES)), st.sampled_from([0.0, 0.6]), st.sampled_from([0.0, 0.6]))
def test_swapped_sides_have_the_same_suspects_mirrored(
    rows: list[tuple[str, int, int, str, int]], said: set[object], base_frac: float, new_frac: float
) -> None:
    found = facts(
        *(moved(name, base, new, by, 100, count) for name, base, new, by, count in rows),
        changed=tuple(one for one in CHANGES if one in said),
        base={"detected": {"graph_share_frac": base_frac}},
        new={"detected": {"graph_share_frac": new_frac}},
    )
    there, back = find_suspects(found), find_suspects(turned(found))
    assert [(one.id, one.rows, one.confidence) for one in there] == [
        (one.id, one.rows, one.confidence) for one in back
    ]
    assert [one.explains_ns for one in there] == [-one.explains_ns for one in back]
    explained = [one.can_explain for one in with_explained(found).changed]
    assert explained == [one.can_explain for one in with_explained(turned(found)).changed]
    deltas = {row.row: row.delta_ns for row in found.attribution.rows}
    assert all(one.explains_ns == sum(deltas[name] for name in one.rows) for one in there)

"""May two runs be compared: what forbids it, what only limits it, and what is no difference at all."""

from __future__ import annotations

from pathlib import Path
from string import Formatter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from diagnoser import analyze
from heuristics.comparison.alike import ALIKE
from heuristics.comparison.comparable import judge_comparable, table
from heuristics.comparison.difference.subject import Subject, Value
from heuristics.result.compared import Comparable, Difference
from heuristics.result.result import Result
from heuristics.result.tool import Tool
from tests.doubles.comparison import configuration, kernel, log, rank, read_back, result, row, trace
from traces.sections.rank import Rank

GEMM = kernel("gemm", 80, count=8)
ADAM = kernel("adam", 20, count=2, key="compute.optimizer")
DISPATCH = kernel("ncclDevKernel_SendRecv", 20, count=8, key="comm.ep_dispatch")


def between(base: Result, new: Result) -> Comparable:
    return judge_comparable(Subject(base, base.ranks[0]), Subject(new, new.ranks[0]))


def of_ranks(base: Rank, new: Rank) -> Comparable:
    return between(result(base), result(new))


def of_given(base: dict[str, Value], new: dict[str, Value]) -> Comparable:
    return between(result(given=base), result(given=new))


def of_knobs(base: dict[str, Value], new: dict[str, Value]) -> Comparable:
    sides = (result(configuration=configuration(one)) for one in (base, new))
    return between(*sides)


def states(found: Comparable) -> dict[str, str]:
    return {one.what: one.state for one in found.differences}


def only(found: Comparable) -> Difference:
    (difference,) = found.differences
    assert found.state == difference.state
    return difference


def test_a_run_is_comparable_with_itself() -> None:
    one = result(
        rank(kernels=(GEMM, ADAM, DISPATCH)), given={"ep": 8}, configuration=configuration({"bf16": True})
    )
    assert between(one, one) == Comparable("yes", ())


def test_what_is_unknown_on_one_side_is_no_difference() -> None:
    told = result(
        rank(gpu="NVIDIA H200"),
        given={"ep": 8, "routing": "dropless", "container": "26.04"},
        configuration=configuration({"num_layers": 61, "seq_length": 4096}),
    )
    untold = result(rank(gpu=None, rank=None, sm={}, detected={"training_step": None}))
    assert between(told, untold).state == "yes"


@pytest.mark.parametrize(
    ("what", "base", "new"),
    [
        ("GPU", rank(gpu="NVIDIA H100 80GB HBM3"), rank(gpu="NVIDIA GB200")),
        ("SMs of the GPU", rank(sm={"sm_count": 132}), rank(sm={"sm_count": 66})),
        ("kind of step", rank(), rank(detected={"training_step": False})),
        ("MoE", rank(kernels=(GEMM, DISPATCH)), rank(kernels=(GEMM,))),
    ],
)
def test_other_work_or_another_machine_forbids_it(what: str, base: Rank, new: Rank) -> None:
    found = of_ranks(base, new)
    assert found.state == "no"
    assert states(found)[what] == "no"


def test_a_gpu_that_was_given_counts_where_the_trace_names_none() -> None:
    base, new = result(rank(gpu=None), given={"gpu": "H100"}), result(rank(gpu=None), given={"gpu": "H200"})
    assert only(between(base, new)).what == "GPU"


@pytest.mark.parametrize(
    ("what", "knob", "base", "new"),
    [
        ("world size", "world_size", 8, 16),
        ("model", "num_layers", 61, 48),
        ("model", "moe_router_topk", 8, 2),
        ("sequence length", "seq_length", 4096, 8192),
        ("global batch size", "train.global_batch_size", 512, 1024),
        ("micro batch size", "train.micro_batch_size", 1, 2),
        ("expert-parallel size", "expert_model_parallel_size", 8, 16),
    ],
)
def test_sizes_that_make_a_step_other_work_forbid_it(what: str, knob: str, base: int, new: int) -> None:
    found = of_knobs({knob: base}, {knob: new})
    assert states(found) == {what: "no"}


def test_runs_of_one_family_may_be_two_models() -> None:
    sides = [
        result(given={"family": "dsv3"}, configuration=configuration({"mtp_num_layers": layers}))
        for layers in (None, 1)
    ]
    assert states(between(*sides)) == {"model": "no"}


def test_a_batch_that_changed_is_to_be_compared_by_the_token() -> None:
    one = only(of_knobs({"train.global_batch_size": 8}, {"train.global_batch_size": 16}))
    assert (one.base, one.new) == ("8", "16")
    assert "tokens per second per GPU" in one.because


@pytest.mark.parametrize(
    ("what", "knob"),
    [
        ("expert-parallel size", "expert_model_parallel_size"),
        ("tensor-parallel size", "tensor_model_parallel_size"),
        ("micro batch size", "train.micro_batch_size"),
    ],
)
def test_the_same_batch_on_as_many_gpus_may_be_cut_another_way(what: str, knob: str) -> None:
    same: dict[str, Value] = {"world_size": 64, "train.global_batch_size": 512}
    found = of_knobs({**same, knob: 1}, {**same, knob: 2})
    assert states(found) == {what: "with_differences"}


@pytest.mark.parametrize(
    ("what", "base", "new"),
    [
        ("precision", "bf16", "mxfp8"),
        ("routing", "dropless", "drop_pad"),
        ("graph_impl", "none", "transformer_engine"),
        ("pp_layout", "Et*3|L", "Et|t*2L"),
        ("container", "26.04", "26.06"),
        ("vpp", 1, 2),
    ],
)
def test_what_people_compare_on_purpose_only_limits_it(what: str, base: Value, new: Value) -> None:
    found = of_given({what: base}, {what: new})
    assert found.state == "with_differences"
    assert len(found.differences) == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"recompute_granularity": "full"},
        {"moe_grouped_gemm": True},
        {"overlap_grad_reduce": False},
    ],
)
def test_a_knob_under_study_is_no_reason_at_all(changed: dict[str, Value]) -> None:
    assert of_knobs(dict.fromkeys(changed), changed).state == "yes"


def test_a_knob_is_asked_where_no_field_tells() -> None:
    one = only(
        of_knobs({"moe_router_force_load_balancing": False}, {"moe_router_force_load_balancing": True})
    )
    assert (one.what, one.state) == ("routing mode", "no")
    assert (one.base, one.new) == (
        "moe_router_force_load_balancing off",
        "moe_router_force_load_balancing on",
    )


LAYOUT: dict[str, Value] = {"num_layers": 4, "pipeline_model_parallel_layout": "Et|tL"}


def test_audit_71_a_pipeline_layout_that_one_configuration_lacks_is_a_difference() -> None:
    one = only(of_knobs({"num_layers": 4}, LAYOUT))
    assert (one.what, one.base, one.new) == ("pipeline layout", "none", "Et|tL")
    assert of_knobs(LAYOUT, LAYOUT).state == "yes"
    unknown = between(result(), result(configuration=configuration(LAYOUT)))
    assert unknown.state == "yes"  # a run without a configuration may have the same


def test_audit_51_and_52_forced_balance_is_a_setting_for_benchmarks_and_no_baseline() -> None:
    one = only(of_given({"routing": "force_balance"}, {"routing": "dropless"}))
    assert "a setting for benchmarks" in one.because
    assert "usually outperforms dropless routing" in one.because
    assert "neither run is a baseline for the other" in one.because


FORCED: dict[str, Value] = {"moe_router_force_load_balancing": True}


def test_routing_that_one_side_forces_forbids_the_comparison() -> None:
    for mode in ("dropless", "drop_pad"):
        found = of_given({"routing": "force_balance"}, {"routing": mode})
        assert states(found) == {"routing mode": "no"}
    assert of_given({"routing": "force_balance"}, {"routing": "force_balance"}).state == "yes"
    assert states(dispatchers({**STACK, "routing": "force_balance"}, STACK))["routing mode"] == "no"


def test_a_script_that_does_not_name_forced_routing_does_not_force_it() -> None:
    forced, silent = (result(configuration=configuration(said)) for said in (FORCED, {"num_layers": 4}))
    assert only(between(forced, silent)).base == "forced"
    assert between(forced, forced).state == "yes"
    nothing = result()
    assert between(forced, nothing).state == "yes"  # unknown on one side is no difference


def test_what_the_trace_says_of_a_knob_is_not_what_was_said() -> None:
    base = result(configuration=configuration({"bf16": True}))
    new = result(configuration=configuration({"bf16": False}, said="trace"))
    assert between(base, new).state == "yes"


def test_precision_and_graphs_are_compared_as_the_traces_show_them() -> None:
    found = of_ranks(rank(), rank(detected={"precision": "mxfp8", "graph_share_frac": 0.5}))
    assert states(found) == {"precision": "with_differences", "CUDA graph scope": "with_differences"}
    assert found.differences[1].base == "0 % of kernel work"
    assert of_ranks(rank(), rank(detected={"graph_share_frac": 0.04})).state == "yes"


def test_real_recordings_of_one_program_and_of_two(recordings: Path) -> None:
    two_gpus, other = (
        read_back(analyze([recordings / name]))
        for name in ("nsysai_mfu_2gpu_before.sqlite", "fuser_h200_2025.sqlite")
    )
    first, second = two_gpus.ranks
    assert judge_comparable(Subject(two_gpus, first), Subject(two_gpus, first)) == Comparable("yes", ())
    assert states(judge_comparable(Subject(two_gpus, first), Subject(two_gpus, second))) == {
        "step": "with_differences"
    }
    assert (
        states(judge_comparable(Subject(two_gpus, first), Subject(other, other.ranks[0])))["kernel set"]
        == "no"
    )


STACK: dict[str, Value] = {"container": "26.06", "routing": "dropless", "pp": 1}
DEEPEP = {"dispatcher": "deepep"}


def dispatchers(base: dict[str, Value], new: dict[str, Value]) -> Comparable:
    return between(result(given=base), result(rank(detected=DEEPEP), given=new))


def test_dispatchers_on_one_stack_are_judged() -> None:
    found = dispatchers(STACK, STACK)
    assert found == Comparable("yes", ())


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        pytest.param("container", "26.04", "container", id="seed 000 pitfall 1 (audit 69): container"),
        pytest.param("routing", "drop_pad", "routing mode", id="seed 000 pitfalls 1 and 4: routing mode"),
        pytest.param("vpp", 2, "virtual pipeline stages", id="seed 000 pitfall 1 (audit 71): VPP"),
        pytest.param(
            "pp_layout", "Et|t*2L", "pipeline layout", id="seed 000 pitfall 1 (audit 71): PP layout"
        ),
        pytest.param("graph_impl", "local", "CUDA graph scope", id="seed 000 pitfall 1: graphs"),
        pytest.param("graph_modules", ("attn",), "CUDA graph scope", id="seed 000 pitfall 1: graph scope"),
        pytest.param("core_version", "0.18.0", "Megatron-Core", id="seed 000 pitfall 1: version"),
        ("te_version", "2.10", "Transformer Engine"),
    ],
)
def test_no_verdict_on_the_dispatcher_across_stacks(field: str, value: Value, named: str) -> None:
    rest: dict[str, Value] = {"vpp": 1, "pp_layout": "Et*3|L", "graph_impl": "none", "te_version": "2.9"}
    rest |= {"graph_modules": ("moe_router",), "core_version": "0.17.0"}
    found = dispatchers({**STACK, **rest}, {**STACK, **rest, field: value})
    assert found.state == "with_differences"
    (one,) = (one for one in found.differences if one.what == "dispatcher")
    assert one.because == f"No verdict on the dispatcher: these differ too: {named}."


def test_a_container_that_a_log_names_is_part_of_the_stack() -> None:
    rest: dict[str, Value] = {"routing": "dropless", "pp": 1}
    sides = [
        result(rank(detected=shown), given=rest, log=log(10, versions={"container": version}))
        for shown, version in (({}, "26.04"), (DEEPEP, "26.06"))
    ]
    assert states(between(*sides)) == {"container": "with_differences", "dispatcher": "with_differences"}


def test_a_stack_that_is_not_told_gives_no_verdict_on_the_dispatcher_either() -> None:
    found = dispatchers(STACK, {"pp": 1})
    assert only(found).what == "dispatcher"
    assert "routing mode, container" in only(found).because


def test_without_another_dispatcher_its_stack_does_not_matter() -> None:
    found = of_given({**STACK, "routing": "dropless"}, {**STACK, "routing": "drop_pad"})
    assert states(found) == {"routing mode": "with_differences"}


def test_ranks_of_another_place_or_number_only_limit_it() -> None:
    base = result(rank(rank=0), rank(rank=1))
    assert states(between(base, result(rank(rank=4)))) == {
        "ranks seen": "with_differences",
        "rank": "with_differences",
    }


@pytest.mark.parametrize(
    ("what", "fields"),
    [
        ("recorder", {"kind": "kineto"}),
        ("recorder version", {"exporter_version": "2025.1.1.110"}),
        ("schema", {"schema": "3.17.1"}),
        ("missing tables", {"missing_tables": ("NVTX_EVENTS",)}),
        ("slowed by the profiler", {"perturbation_frac": 0.2}),
    ],
)
def test_another_recording_only_limits_it(what: str, fields: dict[str, Any]) -> None:
    base = result(traces=(trace(perturbation_frac=0.1),))
    new = result(traces=(trace(**{"perturbation_frac": 0.1, **fields}),))
    assert only(between(base, new)).what == what


@pytest.mark.parametrize(
    "fields",
    [
        {"exporter_version": "2026.2.9.1"},
        {"missing_tables": ("CUPTI_ACTIVITY_KIND_MEMSET",)},
        {"perturbation_frac": 0.14},
        {"perturbation_frac": None},
    ],
)
def test_builds_of_one_release_and_tables_of_what_never_happened_are_no_difference(
    fields: dict[str, Any],
) -> None:
    base = result(traces=(trace(perturbation_frac=0.1),))
    assert between(base, result(traces=(trace(**{"perturbation_frac": 0.1, **fields}),))).state == "yes"


def test_graphs_recorded_whole_hide_their_kernels_and_forbid_nothing() -> None:
    base = rank(row("compute.gemm", 10, 10), kernels=(GEMM, DISPATCH))
    whole = kernel("graph 1", 100, count=2, key="compute.graph_replay")
    partly = rank(row("compute.graph_replay", 10, 10), kernels=(whole,))
    assert states(of_ranks(base, partly)) == {"graph capture": "with_differences"}
    wholly = rank(ledger=None, kernels=(whole,))
    assert states(of_ranks(base, wholly)) == {"kernels": "with_differences"}


def test_an_account_that_one_side_lacks_limits_what_is_said_of_the_host() -> None:
    one = only(of_ranks(rank(absent_ns={"trailing": 0}), rank(absent_ns=None)))
    assert (one.what, one.base, one.new) == ("why no compute ran", "known", "unknown")


def test_results_of_two_versions_of_this_tool_may_be_defined_otherwise() -> None:
    base, new = (result(tool=Tool("moe-diag", version, "seed")) for version in ("0.2", "0.3"))
    assert only(between(base, new)).what == "moe-diag version"


def test_what_forbids_it_stands_first() -> None:
    found = of_ranks(rank(gpu="NVIDIA H100 80GB HBM3"), rank(gpu="NVIDIA H200", source="period"))
    assert [one.state for one in found.differences] == ["no", "with_differences"]


def test_every_rule_names_where_it_is_from() -> None:
    rules, texts = table().configured, table().texts
    assert all("Megatron-Bridge, " in texts[rule.source] for rule in rules)
    assert len({rule.what for rule in rules}) == len(rules)


def test_every_figure_of_a_row_is_a_fact_of_both_sides_or_of_the_pair() -> None:
    rows, texts = table().recorded, table().texts
    shown = {f"{side}.{row.shows}" for row in rows for side in ("base", "new")}
    named = {name for row in rows for _, name, _, _ in Formatter().parse(row.because) if name}
    assert sorted((shown | named) - ALIKE.facts.keys() - texts.keys()) == []


@st.composite
def sides(draw: st.DrawFn) -> Result:
    counts = draw(st.lists(st.integers(0, 4), min_size=3, max_size=3))
    keys = ("compute.gemm", "comm.ep_dispatch", "compute.graph_replay")
    listed = [
        kernel(name, 10 * count, count=count, key=key)
        for name, count, key in zip("abc", counts, keys, strict=True)
        if count
    ]
    one = rank(
        source=draw(st.sampled_from(["nvtx", "none"])),
        lengths_ns=(draw(st.integers(1, 2)),),
        kernels=draw(st.sampled_from([tuple(listed), ()])),
        gpu=draw(st.sampled_from([None, "NVIDIA H100 80GB HBM3", "NVIDIA H200"])),
        detected={
            "dispatcher": draw(st.sampled_from(["none", "alltoall", "deepep"])),
            "graph_share_frac": draw(st.sampled_from([None, 0.0, 0.5])),
        },
        ledger=draw(st.sampled_from([(), None])),
        absent_ns=draw(st.sampled_from([None, {}])),
    )
    values = st.integers(1, 2)
    knobs = draw(
        st.dictionaries(st.sampled_from(["world_size", "train.global_batch_size", "num_layers"]), values)
    )
    told = draw(st.dictionaries(st.sampled_from(["ep", "pp", "routing", "container"]), values))
    return result(
        one,
        configuration=draw(st.sampled_from([None, configuration(knobs)])),
        given=told,
        traces=(trace(kind=draw(st.sampled_from(["nsys-sqlite", "kineto"]))),),
    )


@settings(max_examples=40)
@given(sides(), sides())
def test_swapped_sides_are_as_comparable_for_the_same_reasons(base: Result, new: Result) -> None:
    one, other = between(base, new), between(new, base)
    assert other.state == one.state
    assert other.differences == tuple(replace(each, base=each.new, new=each.base) for each in one.differences)


@settings(max_examples=20)
@given(sides())
def test_any_run_is_comparable_with_itself(one: Result) -> None:
    assert between(one, one) == Comparable("yes", ())

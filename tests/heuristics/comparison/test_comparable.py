"""May two runs be compared: what forbids it, what only limits it, and what is no difference at all."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from heuristics.comparison.comparable import judge_comparable, table
from heuristics.comparison.difference.subject import Subject, Value
from heuristics.comparison.same_work import same_classes, shared_work_frac
from heuristics.result.compared import Comparable, Difference
from heuristics.result.result import Result
from heuristics.result.tool import Tool
from tests.doubles.comparison import configuration, kernel, rank, result, row, trace
from traces.sections.rank import Rank
from traces.sections.steps import StepSource, Unit
from traces.sections.tables import Kernel

GEMM = kernel("gemm", 80, count=8)
ADAM = kernel("adam", 20, count=2, key="compute.optimizer")
DISPATCH = kernel("ncclDevKernel_SendRecv", 20, count=8, key="comm.ep_dispatch")
UNKNOWN = kernel(DISPATCH.name, 20, count=8, key="comm.sendrecv_unresolved")
Said = dict[str, Value]


def between(base: Result, new: Result) -> Comparable:
    return judge_comparable(Subject(base, base.ranks[0]), Subject(new, new.ranks[0]))


def differ(found: Comparable) -> str:
    """`step!, rank`: what forbids the comparison, and what only limits it."""
    assert found.state == (found.differences[0].state if found.differences else "yes")
    return ", ".join(f"{one.what}{'!' if one.state == 'no' else ''}" for one in found.differences)


def of_results(base: Result, new: Result) -> str:
    """What differs; the mirrored answer where sides are swapped, and nothing of a side from itself."""
    assert between(base, base) == between(new, new) == Comparable("yes", ())
    assert differ(between(base, new)) == differ(between(new, base))
    return differ(between(base, new))


def of_ranks(base: Rank, new: Rank) -> str:
    return of_results(result(base), result(new))


def of_given(base: Said, new: Said) -> str:
    return of_results(result(given=base), result(given=new))


def of_knobs(base: Said, new: Said) -> str:
    return of_results(*(result(configuration=configuration(one)) for one in (base, new)))


def only(base: Result, new: Result) -> Difference:
    (difference,) = between(base, new).differences
    return difference


def knobbed(knobs: Said, *ranks: Rank, **fields: Any) -> Result:
    return result(*ranks, configuration=configuration(knobs), **fields)


def test_what_is_unknown_on_one_side_is_no_difference() -> None:
    given_: Said = {"ep": 8, "routing": "dropless", "container": "26.04"}
    told = knobbed({"num_layers": 61, "seq_length": 4096}, rank(gpu="NVIDIA H200"), given=given_)
    assert of_results(told, result(rank(gpu=None, rank=None, sm={}, detected={"training_step": None}))) == ""


@pytest.mark.parametrize(
    ("what", "base", "new"),
    [
        ("GPU!", {"gpu": "NVIDIA H100 80GB HBM3"}, {"gpu": "NVIDIA GB200"}),
        ("SMs of the GPU!", {"gpu": None, "sm": {"sm_count": 132}}, {"gpu": None, "sm": {"sm_count": 66}}),
        ("kind of step!", {}, {"detected": {"training_step": False}}),
        ("", {"kernels": (GEMM, DISPATCH)}, {"kernels": (GEMM, UNKNOWN)}),
        ("MoE!, kernel set", {"kernels": (GEMM, ADAM, DISPATCH)}, {"kernels": (GEMM, ADAM)}),
        ("", {"kernels": (GEMM, ADAM, DISPATCH)}, {"kernels": (GEMM, ADAM, UNKNOWN)}),
        ("MoE layers", {"kernels": (DISPATCH,), "moe": {"layers": 4}}, {"kernels": (DISPATCH,),
         "moe": {"layers": 8}}),
        ("precision", {}, {"detected": {"precision": "mxfp8"}}), ("", {}, {"detected": {"precision": None}}),
        ("CUDA graph scope", {}, {"detected": {"graph_share_frac": 0.0501}}),
        ("", {}, {"detected": {"graph_share_frac": 0.05}}),
        ("", {"detected": {"graph_share_frac": 0.5}}, {"detected": {"graph_share_frac": 0.54}}),
        ("why no compute ran", {"absent_ns": {"trailing": 0}}, {"absent_ns": None}),
        ("GPU!, step", {"gpu": "NVIDIA H100 80GB HBM3"}, {"gpu": "NVIDIA H200", "source": "period"}),
    ],
)  # fmt: skip
def test_what_the_ranks_show_to_differ(what: str, base: dict[str, Any], new: dict[str, Any]) -> None:
    assert of_ranks(rank(**base), rank(**new)) == what


CONFIGURED: dict[str, tuple[str, tuple[Value, Value]]] = {
    "world_size": ("world size!", (8, 16)),
    "seq_length": ("sequence length!", (4096, 8192)),
    "train.global_batch_size": ("global batch size!", (512, 1024)),
    "train.micro_batch_size": ("micro batch size!", (1, 2)),
    "tensor_model_parallel_size": ("tensor-parallel size!", (1, 2)),
    "context_parallel_size": ("context-parallel size!", (1, 2)),
    "pipeline_model_parallel_size": ("pipeline-parallel size!", (1, 2)),
    "expert_model_parallel_size": ("expert-parallel size!", (8, 16)),
    "expert_tensor_parallel_size": ("expert-tensor-parallel size!", (1, 2)),
    "moe_router_force_load_balancing": ("routing mode!", (False, True)),
    "num_layers_in_first_pipeline_stage": ("pipeline layout", (1, 2)),
    **dict.fromkeys(("num_layers", "hidden_size", "moe_router_topk", "mtp_num_layers"), ("model!", (1, 2))),
    # what is under study is no reason at all
    **dict.fromkeys(
        ("recompute_granularity", "moe_grouped_gemm", "overlap_grad_reduce"), ("", (None, "full"))
    ),
}
GIVEN: dict[str, tuple[str, tuple[Value, Value]]] = {
    "family": ("model family!", ("dsv3", "qwen3_30b")), "tp": ("tensor-parallel size!", (1, 2)),
    # what people compare on purpose
    "precision": ("precision", ("bf16", "mxfp8")), "routing": ("routing mode", ("dropless", "drop_pad")),
    "graph_impl": ("CUDA graph scope", ("none", "transformer_engine")),
    "graph_modules": ("CUDA graph scope", (("attn",), ("mlp",))),
    "pp_layout": ("pipeline layout", ("Et*3|L", "Et|t*2L")), "container": ("container", ("26.04", "26.06")),
    "vpp": ("virtual pipeline stages", (1, 2)),
}  # fmt: skip


def test_what_is_configured_otherwise_forbids_or_limits_it_by_its_row() -> None:
    for knob, (what, (one, other)) in CONFIGURED.items():
        assert (knob, of_knobs({knob: one}, {knob: other})) == (knob, what)
    for field, (what, (one, other)) in GIVEN.items():
        assert (field, of_given({field: one}, {field: other})) == (field, what)
    named = {what.rstrip("!") for what, _ in (*CONFIGURED.values(), *GIVEN.values())} - {""}
    assert named == {rule.what for rule in table().configured}


def test_the_same_batch_on_as_many_gpus_may_be_cut_another_way() -> None:
    same: Said = {"world_size": 64, "train.global_batch_size": 512}
    cut = {knob for knob, (what, _) in CONFIGURED.items() if "parallel size" in what or "micro" in what}
    assert len(cut) == 6
    for knob in cut:
        what = CONFIGURED[knob][0].rstrip("!")
        assert of_knobs({**same, knob: 1}, {**same, knob: 2}) == what
        for left_out in same:
            one = {key: value for key, value in same.items() if key != left_out}
            settled = knob == "train.micro_batch_size" and left_out == "world_size"
            assert of_knobs({**one, knob: 1}, {**one, knob: 2}) == f"{what}{'' if settled else '!'}"


LAYOUT: Said = {"num_layers": 4, "pipeline_model_parallel_layout": "Et|tL"}


def test_audit_71_a_pipeline_layout_that_one_configuration_lacks_is_a_difference() -> None:
    one = only(knobbed({"num_layers": 4}), knobbed(LAYOUT))
    assert (one.what, one.base, one.new) == ("pipeline layout", "none", "Et|tL")
    assert of_knobs({"num_layers": 4}, LAYOUT) == "pipeline layout"
    assert of_results(result(), knobbed(LAYOUT)) == ""  # a run without a configuration may have the same
    withheld = configuration({"num_layers": 4}, withheld=frozenset({"pipeline_model_parallel_layout"}))
    assert of_results(result(configuration=withheld), knobbed(LAYOUT)) == ""


FORCED: Said = {"moe_router_force_load_balancing": True}


def test_audit_51_and_52_forced_balance_is_a_setting_for_benchmarks_and_no_baseline() -> None:
    one = only(*(result(given={"routing": mode}) for mode in ("force_balance", "dropless")))
    for words in ("a setting for benchmarks", "usually outperforms dropless", "is a baseline for the other"):
        assert words in one.because
    for mode in ("dropless", "drop_pad"):
        assert of_given({"routing": "force_balance"}, {"routing": mode}) == "routing mode!"
    said = only(knobbed({"moe_router_force_load_balancing": False}), knobbed(FORCED))
    assert (said.base, said.new) == tuple(f"moe_router_force_load_balancing {one}" for one in ("off", "on"))


def test_a_script_that_does_not_name_forced_routing_does_not_force_it() -> None:
    forced, silent = knobbed(FORCED), knobbed({"num_layers": 4})
    assert (only(forced, silent).base, only(silent, forced).base) == ("forced", "not forced")
    assert of_results(forced, result()) == ""  # unknown on one side is no difference
    hidden = configuration({"num_layers": 4}, withheld=frozenset(FORCED))
    bridge = replace(configuration({"num_layers": 4}), framework="megatron_bridge")
    for one in (hidden, bridge):
        assert of_results(forced, result(configuration=one)) == ""
    modes = only(*(result(given={"routing": mode}) for mode in ("dropless", "drop_pad")))
    graphs = only(*(result(given={"graph_impl": mode}) for mode in ("none", "local")))
    assert ((modes.base, modes.new), graphs.new) == (("dropless", "drop_pad"), "graph_impl local")
    layers, length = (only(knobbed({knob: 2}), knobbed({knob: 4})) for knob in ("num_layers", "seq_length"))
    assert (layers.new, length.new) == ("num_layers 4", "4")  # a name where a rule has several


def test_what_the_trace_says_of_a_knob_is_not_what_was_said() -> None:
    shown = result(configuration=configuration({"bf16": False}, said="trace"))
    assert of_results(knobbed({"bf16": True}), shown) == ""


STACK: Said = {"container": "26.06", "routing": "dropless", "pp": 1}
REST: Said = {"vpp": 1, "pp_layout": "Et*3|L", "graph_impl": "none", "te_version": "2.9"}
REST |= {"graph_modules": ("moe_router",), "core_version": "0.17.0"}


def dispatchers(base: Said, new: Said) -> Comparable:
    return between(result(given=base), result(rank(detected={"dispatcher": "deepep"}), given=new))


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        pytest.param("container", "26.04", "container", id="seed 000 pitfall 1 (audit 69): container"),
        pytest.param("routing", "drop_pad", "routing mode", id="seed 000 pitfalls 1 and 4: routing mode"),
        pytest.param(
            "pp_layout", "Et|t*2L", "pipeline layout", id="seed 000 pitfall 1 (audit 71): PP layout"
        ),
        pytest.param("graph_modules", ("attn",), "CUDA graph scope", id="seed 000 pitfall 1: graph scope"),
        pytest.param("core_version", "0.18.0", "Megatron-Core", id="seed 000 pitfall 1: version"),
        ("te_version", "2.10", "Transformer Engine"),
    ],
)  # fmt: skip
def test_no_verdict_on_the_dispatcher_across_stacks(field: str, value: Value, named: str) -> None:
    assert dispatchers({**STACK, **REST}, {**STACK, **REST}) == Comparable("yes", ())
    found = dispatchers({**STACK, **REST}, {**STACK, **REST, field: value})
    assert found.state == "with_differences"
    finer = dispatchers({**STACK, **REST, "precision": "bf16"}, {**STACK, **REST, "precision": "fp8"})
    assert [one.what for one in finer.differences] == ["precision"]
    (one,) = (one for one in found.differences if one.what == "dispatcher")
    assert one.because == f"No verdict on the dispatcher: these differ too: {named}."


def test_ranks_of_another_place_or_number_only_limit_it() -> None:
    assert of_results(result(rank(rank=0), rank(rank=1)), result(rank(rank=4))) == "ranks seen, rank"


@pytest.mark.parametrize(
    ("what", "fields"),
    [
        ("recorder", {"kind": "kineto"}), ("recorder version", {"exporter_version": "2025.1.1.110"}),
        ("", {"exporter_version": "2026.2.9.1"}), ("schema", {"schema": "3.17.1"}),
        ("missing tables", {"missing_tables": ("NVTX_EVENTS",)}),
        ("", {"missing_tables": ("CUPTI_ACTIVITY_KIND_MEMSET",)}),
        ("slowed by the profiler", {"perturbation_frac": 0.0501}), ("", {"perturbation_frac": 0.05}),
        ("", {"perturbation_frac": None}),
    ],
)  # fmt: skip
def test_another_recording_only_limits_it(what: str, fields: dict[str, Any]) -> None:
    base, new = ((trace(**{"perturbation_frac": 0.0, **one}),) for one in ({}, fields))
    assert of_results(result(traces=base), result(traces=new)) == what


def test_graphs_recorded_whole_hide_their_kernels_and_forbid_nothing() -> None:
    base = rank(row("compute.gemm", 10, 10), kernels=(GEMM, DISPATCH))
    whole = kernel("graph 1", 100, count=2, key="compute.graph_replay")
    assert of_ranks(base, rank(row("compute.graph_replay", 10, 10), kernels=(whole,))) == "graph capture"
    assert of_ranks(base, rank(ledger=None, kernels=(whole,))) == "kernels"


def test_results_of_two_versions_of_this_tool_may_be_defined_otherwise() -> None:
    sides = (result(tool=Tool("moe-diag", version, "seed")) for version in ("0.2", "0.3"))
    assert of_results(*sides) == "moe-diag version"


# Is a step the same work: as many kernels, of the same names, through as many layers.

ATTENTION, BACKWARD = "flash_fwd_kernel", "flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel"


def many(*, times: int, longer: int = 1) -> Rank:
    """GEMMs and an optimizer, some times as often and some times as long."""
    gemm = kernel("gemm", 80 * times * longer, count=8 * times)
    return rank(kernels=(gemm, kernel("adam", 20 * times * longer, count=2 * times, key="compute.optimizer")))


def passes(
    forward: int, backward: int, *, each: int = 10, adam: int = 0, steps: int = 2
) -> tuple[Kernel, ...]:
    """Attention by pass and GEMMs of one name in both, per step; `adam`: ns of the optimizer."""
    gemms = steps * (forward + 2 * backward)
    return (
        kernel(ATTENTION, steps * forward * each, count=steps * forward, key="compute.attention"),
        kernel(BACKWARD, steps * backward * each, count=steps * backward, key="compute.attention"),
        kernel("gemm", gemms * each, count=gemms),
        kernel("adam", steps * adam, count=steps, key="compute.optimizer"),
    )


def window(*kernels: Kernel, length: int = 20) -> Rank:
    return rank(source="none", lengths_ns=(length,), kernels=kernels)


WGRAD = kernel("wgrad", 80, count=8)
BESIDE = kernel("flash_bwd_dot_do_o_kernel", 20, count=20, key="compute.attention")


@pytest.mark.parametrize(
    ("base", "new", "what"),
    [
        (many(times=1), many(times=2), "step!"), (many(times=1), many(times=1, longer=2), ""),
        (many(times=1), rank(kernels=(kernel("gemm", 80, count=4), kernel("adam", 20, count=1,
         key="compute.optimizer"))), ""),
        # a forward that runs again is told by backward kernels
        (rank(kernels=(GEMM, WGRAD)), rank(kernels=(kernel("gemm", 160, count=16), WGRAD)), ""),
        (rank(kernels=passes(4, 4)), rank(kernels=passes(8, 4)), ""),
        (rank(kernels=passes(4, 3)), rank(kernels=passes(4, 2)), ""),  # two backward kernels tell nothing
        (rank(kernels=passes(3, 3)), rank(kernels=passes(9, 3)), ""),
        (rank(kernels=passes(4, 4)), rank(kernels=(*passes(4, 4), BESIDE)), ""),
        (rank(kernels=(GEMM, WGRAD)), rank(kernels=(kernel("gemm", 800, count=80), WGRAD)), "step!"),
        (rank(kernels=passes(4, 4, adam=300)), rank(kernels=passes(8, 8, adam=300)), "step!"),
        (rank(kernels=passes(4, 4, adam=300)), rank(kernels=passes(5, 5, adam=300)), "step!"),
        (rank(kernels=passes(8, 8)), rank(kernels=passes(4, 4, each=20)), ""),
        (rank(kernels=passes(8, 8)), rank(kernels=passes(8, 8, each=20)), ""),
        (rank(kernels=passes(10, 10)), rank(kernels=passes(10, 9)), "step!"),
        # without backward kernels by name the optimizer tells nothing
        (rank(kernels=(kernel("gemm", 60, count=6), ADAM)), rank(kernels=(kernel("gemm", 120, count=12),
         ADAM)), "step!"),
        # windows: with their borders, of as much work, and never of several steps
        (window(GEMM, length=100), window(GEMM, length=110), "step"),
        (window(*passes(50, 50, steps=1)), window(*passes(52, 52, steps=1)), "step!"),
        (window(*passes(50, 50, steps=1)), window(*passes(51, 51, steps=1), length=21), "step"),
        (rank(kernels=passes(10, 10)), window(*passes(12, 11, steps=1)), "step!"),
        (rank(kernels=passes(10, 10)), window(*passes(10, 10, steps=1)), "step"),
        (window(length=100), window(length=110), "step!"), (rank(), window(), "step!"),
        (rank(kernels=(GEMM, ADAM)), window(GEMM, ADAM), "step!"),
        (rank(kernels=(GEMM,)), window(kernel("gemm", 40, count=4), length=10), "step"),
        (rank(kernels=(GEMM,)), rank(kernels=(GEMM,), source="optimizer"), "step"),
    ],
)  # fmt: skip
def test_a_step_of_other_work_is_another_and_one_found_otherwise_only_limits_it(
    base: Rank, new: Rank, what: str
) -> None:
    assert of_ranks(base, new) == what


def test_a_rank_with_another_share_of_the_same_step_has_other_kernels_but_no_other_number_of_steps() -> None:
    same: Said = {"world_size": 64, "train.global_batch_size": 512}
    steps = [knobbed({**same, "pipeline_model_parallel_size": pp}, many(times=4 // pp)) for pp in (2, 4)]
    assert of_results(*steps) == "pipeline-parallel size, step"
    steps = [replace(one, given={"container": str(place)}) for place, one in enumerate(steps)]
    assert of_results(*steps) == "pipeline-parallel size, container, step"
    ranks = rank(kernels=(GEMM, ADAM)), window(GEMM, ADAM)
    sides = [knobbed({**same, "pipeline_model_parallel_size": pp}, one)
        for one, pp in zip(ranks, (2, 4), strict=True)]  # fmt: skip
    assert of_results(*sides) == "step!, pipeline-parallel size"


@pytest.mark.parametrize(("shared", "what"), [(10, "step!, kernel set!"), (25, "kernel set"), (90, "")])
def test_programs_are_told_apart_by_the_names_of_their_kernels(shared: int, what: str) -> None:
    sides = [rank(kernels=(kernel("both", shared), kernel(f"only in {side}", 100 - shared)))
        for side in ("base", "new")]  # fmt: skip
    assert shared_work_frac(*sides) == shared / 100
    assert of_ranks(*sides) == what


def test_the_side_that_shares_less_decides() -> None:
    small, large = rank(kernels=(kernel("both", 10),)), rank(kernels=(kernel("both", 10), kernel("more", 90)))
    assert shared_work_frac(small, large) == shared_work_frac(large, small) == 0.1
    for unknown in (shared_work_frac, same_classes):
        assert unknown(small, rank()) is unknown(rank(), small) is None


BLOCK = (kernel("gemm", 80, count=8), kernel("norm", 20, count=8, key="compute.norm"))
TWICE = tuple(replace(one, count=2 * one.count, work_ns=2 * one.work_ns) for one in BLOCK)


def repeated(unit: Unit, count: int, length: int = 10, **fields: Any) -> Rank:
    """A rank that repeats a block, or a replay of a graph without its kernels."""
    source: StepSource = "graph" if unit == "replay" else "period"
    opaque = (row("compute.graph_replay", *(length,) * count),) if unit == "replay" else ()
    one = rank(*opaque, lengths_ns=(length,) * count, source=source, **fields)
    return replace(one, steps=replace(one.steps, unit=unit))


@pytest.mark.parametrize(
    ("new", "what", "words"),
    [
        (repeated("block", 4, kernels=BLOCK), "", ()),
        (repeated("block", 4, kernels=TWICE), "step!", ("blocks by period, 4 kernels",
         "blocks by period, 8 kernels")),
        (repeated("replay", 4, length=5), "step, graph capture", ("blocks by period", "replays by graph")),
        (repeated("replay", 2, length=20), "step!, graph capture", ("4 blocks", "2 graph replays")),
        (repeated("replay", 2, length=11), "step, graph capture", ("blocks by period", "replays by graph")),
    ],
)  # fmt: skip
def test_a_block_is_compared_with_blocks_and_the_replay_that_it_became(
    new: Rank, what: str, words: tuple[str, ...]
) -> None:
    base = repeated("block", 4, kernels=BLOCK)
    assert of_ranks(base, new) == what
    assert (*words,) == tuple(
        side for one in between(result(base), result(new)).differences[:1] for side in (one.base, one.new)
    )

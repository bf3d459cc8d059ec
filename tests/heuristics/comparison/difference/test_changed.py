"""What changed between two runs: exact, each thing once, from its source; swapped sides mirror it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from heuristics.comparison.difference.changed import changed, difference
from heuristics.comparison.difference.subject import Subject
from heuristics.result.compared import ComparedChange
from heuristics.result.configured import Configuration
from heuristics.result.result import Result
from tests.doubles.comparison import configuration, kernel, log, rank, result, trace
from traces.sections.rank import Rank


def between(base: Result, new: Result) -> tuple[ComparedChange, ...]:
    return changed(Subject(base, base.ranks[0]), Subject(new, new.ranks[0]))


def of_knobs(base: Configuration | None, new: Configuration | None) -> tuple[ComparedChange, ...]:
    return between(result(configuration=base), result(configuration=new))


def of_ranks(base: Rank, new: Rank) -> tuple[ComparedChange, ...]:
    return between(result(base), result(new))


def mirrored(one: ComparedChange) -> ComparedChange:
    return replace(one, base=one.new, new=one.base, said_base=one.said_new, said_new=one.said_base)


def test_a_run_against_itself_changed_nothing() -> None:
    one = result(configuration=configuration({"tp_comm_overlap": True}, core="0.17.0"), given={"ep": 8})
    assert between(one, one) == ()


def test_a_knob_is_listed_with_both_its_values() -> None:
    found = of_knobs(
        configuration({"moe_token_dispatcher_type": "alltoall", "bf16": True}),
        configuration({"moe_token_dispatcher_type": "flex", "bf16": True}),
    )
    assert found == (difference("moe_token_dispatcher_type", "alltoall", "flex", "configuration"),)


def test_a_knob_that_only_one_side_says_is_not_off_on_the_other() -> None:
    found = of_knobs(
        configuration({"bf16": True}), configuration({"bf16": True, "delay_wgrad_compute": True})
    )
    assert found == (difference("delay_wgrad_compute", None, True, "configuration", said_base=False),)


def test_null_that_is_said_is_another_thing_than_nothing_said() -> None:
    found = of_knobs(configuration({"fp8": None}), configuration({"fp8": "hybrid"}))
    assert found == (difference("fp8", None, "hybrid", "configuration"),)


def test_a_side_without_configuration_is_one_change() -> None:
    found = of_knobs(None, configuration({"bf16": True, "tp_comm_overlap": True}))
    assert found == (difference("configuration", None, "megatron_lm", "configuration", said_base=False),)


def test_two_withheld_texts_cannot_be_told_apart() -> None:
    hidden = configuration(withheld=frozenset({"wandb_project"}))
    assert of_knobs(hidden, hidden) == ()


def test_a_withheld_text_differs_from_a_known_word_without_being_shown() -> None:
    hidden = configuration(withheld=frozenset({"attention_backend"}))
    assert of_knobs(configuration({"attention_backend": "flash"}), hidden) == (
        difference("attention_backend", "flash", None, "configuration", withheld=True),
    )


def test_what_only_the_trace_says_of_a_knob_is_not_listed_as_configuration() -> None:
    shown = configuration({"moe_grouped_gemm": True}, said="trace")
    assert of_knobs(configuration(), shown) == ()


def test_a_knob_of_a_file_is_held_against_what_the_other_trace_says() -> None:
    found = of_knobs(
        configuration({"moe_flex_dispatcher_backend": "deepep"}),
        configuration({"moe_flex_dispatcher_backend": "hybridep"}, said="trace"),
    )
    assert [one.what for one in found] == ["moe_flex_dispatcher_backend"]


def test_versions_come_from_the_configuration_then_the_log_then_what_was_given() -> None:
    base = result(
        configuration=configuration({}, te="2.9"), log=log(10, versions={"nccl": "2.29.3", "te": "2.8"})
    )
    new = result(configuration=configuration({}, te="2.10"), log=log(10, versions={"nccl": "2.30.1"}))
    assert between(base, new) == (
        difference("version.nccl", "2.29.3", "2.30.1", "log"),
        difference("version.te", "2.9", "2.10", "configuration"),
    )
    (mixed,) = between(result(log=log(10, versions={"te": "2.9"})), result(given={"te_version": "2.10"}))
    assert mixed == difference("version.te", "2.9", "2.10", "given")
    given_only = between(result(given={"container": "26.04"}), result(given={"container": "26.06"}))
    assert given_only == (difference("version.container", "26.04", "26.06", "given"),)


def test_a_version_that_one_side_does_not_tell_did_not_change() -> None:
    assert between(result(log=log(10, versions={"nccl": "2.29.3"})), result(log=log(10))) == ()


def test_a_given_size_is_listed_once_though_its_knob_says_it_too() -> None:
    base = result(given={"ep": 8}, configuration=configuration({"expert_model_parallel_size": 8}))
    new = result(given={"ep": 16}, configuration=configuration({"expert_model_parallel_size": 16}))
    assert [one.what for one in between(base, new)] == ["expert_model_parallel_size"]


def test_a_given_thing_that_no_knob_says_is_listed() -> None:
    found = between(result(given={"nvlink_domain": 8, "ep": 8}), result(given={"nvlink_domain": 72}))
    assert found == (difference("nvlink_domain", 8, 72, "given"),)


def test_another_gpu_and_another_recorder() -> None:
    base = result(rank(gpu="NVIDIA H100 80GB HBM3"))
    new = result(
        rank(gpu="NVIDIA H200"),
        traces=(trace(exporter_version="2025.1.1.110", schema="3.17.1", missing_tables=("NVTX_EVENTS",)),),
    )
    assert between(base, new) == (
        difference("gpu", "NVIDIA H100 80GB HBM3", "NVIDIA H200", "trace"),
        difference("recorder.missing_tables", (), ("NVTX_EVENTS",), "trace"),
        difference("recorder.schema", "3.25.0", "3.17.1", "trace"),
        difference("recorder.version", "2026.2.1.210", "2025.1.1.110", "trace"),
    )


def test_another_kind_of_recorder_is_one_change() -> None:
    kineto = result(traces=(trace(kind="kineto", exporter_version=None, schema="1"),))
    assert between(result(), kineto) == (difference("recorder", "nsys-sqlite", "kineto", "trace"),)


@pytest.mark.parametrize(
    ("what", "base", "new"),
    [
        ("detected.dispatcher", {"dispatcher": "alltoall"}, {"dispatcher": "deepep"}),
        ("detected.ep_overlap", {"ep_overlap": False}, {"ep_overlap": True}),
        ("detected.graph_share_frac", {"graph_share_frac": 0.0}, {"graph_share_frac": 0.25}),
    ],
)
def test_what_the_traces_show(what: str, base: dict[str, Any], new: dict[str, Any]) -> None:
    (key,) = base
    found = of_ranks(rank(detected=base), rank(detected=new))
    assert found == (difference(what, base[key], new[key], "trace"),)


def test_precision_is_what_matrix_work_is_known_to_run_in() -> None:
    part, mixed = {"bf16": 0.25}, {"bf16": 0.25, "mxfp8": 0.5}
    found = of_ranks(
        rank(detected={"precision": None, "precision_shares_frac": part}),
        rank(detected={"precision": None, "precision_shares_frac": mixed}),
    )
    assert found == (difference("detected.precision", "bf16", "bf16+mxfp8", "trace"),)
    whole = rank(detected={"precision": "bf16", "precision_shares_frac": {"bf16": 1.0}})
    assert of_ranks(rank(detected={"precision": None, "precision_shares_frac": part}), whole) == ()


def test_a_share_in_graphs_that_moved_less_than_a_percent_is_the_same() -> None:
    assert (
        of_ranks(rank(detected={"graph_share_frac": 0.5}), rank(detected={"graph_share_frac": 0.505})) == ()
    )


def test_modules_that_run_again_are_named() -> None:
    once, again = {"recomputed_count": 0}, {"recomputed_count": 4}
    found = of_ranks(
        rank(detected={"recompute": {"norm": once, "router": once}}),
        rank(detected={"recompute": {"norm": again, "router": once}}),
    )
    assert found == (difference("detected.recompute", (), ("norm",), "trace"),)
    untold = rank(detected={"recompute": {"norm": {"recomputed_count": None}}})
    assert of_ranks(untold, rank(detected={"recompute": {"norm": again}})) == ()


def test_the_kernels_of_the_exchange_are_named_without_their_arguments() -> None:
    key = "comm.ep_dispatch"
    near = kernel("void deep_ep::intranode::dispatch<8, 768>(int4*)", 10, key=key, grid=(20, 1, 1))
    far = kernel("void deep_ep::internode::dispatch<8, 768>(int4*)", 10, key=key, grid=(24, 1, 1))
    assert of_ranks(rank(kernels=(near,)), rank(kernels=(far,))) == (
        difference("comm_blocks.ep_dispatch", 20, 24, "trace"),
        difference(
            "dispatcher.kernels",
            ("deep_ep::intranode::dispatch",),
            ("deep_ep::internode::dispatch",),
            "trace",
        ),
    )


def test_allocator_calls_count_by_step() -> None:
    found = of_ranks(rank(memory={"allocator_calls": 0}), rank(memory={"allocator_calls": 8}))
    assert found == (difference("memory.allocator_calls_per_step", 0.0, 4.0, "trace"),)
    assert of_ranks(rank(memory={"allocator_calls": 0}), rank(memory={"allocator_calls": 2})) == ()


def test_steps_that_were_found_or_left_out_otherwise() -> None:
    found = of_ranks(rank(), rank(source="period", dropped=("partial",)))
    assert found == (
        difference("steps.dropped", (), ("partial",), "trace"),
        difference("steps.source", "nvtx", "period", "trace"),
    )


def test_the_order_is_configuration_versions_environment_trace() -> None:
    base = result(
        rank(detected={"dispatcher": "alltoall"}),
        configuration=configuration({"vocab_size": 1, "bf16": True}),
        log=log(10, versions={"nccl": "2.29.3"}),
        given={"nvlink_domain": 8},
    )
    new = result(
        rank(detected={"dispatcher": "deepep"}),
        configuration=configuration({"vocab_size": 2, "bf16": False}),
        log=log(10, versions={"nccl": "2.30.1"}),
        given={"nvlink_domain": 72},
    )
    assert [one.what for one in between(base, new)] == [
        "bf16", "vocab_size", "version.nccl", "nvlink_domain", "detected.dispatcher",
    ]  # fmt: skip


VALUES = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["a", "b"])
SETTINGS = st.dictionaries(st.sampled_from(["bf16", "fp8", "num_layers"]), VALUES)


@st.composite
def sides(draw: st.DrawFn) -> Result:
    knobs = draw(st.none() | SETTINGS)
    withheld = draw(st.frozensets(st.sampled_from(["bf16", "fp8"])))
    versions = draw(st.dictionaries(st.sampled_from(["core", "te"]), st.sampled_from(["1.0", "2.0"])))
    told = draw(
        st.dictionaries(st.sampled_from(["ep", "gpu", "nvlink_domain", "precision"]), st.integers(1, 2))
    )
    known = None
    if knobs is not None:
        known = configuration(knobs, withheld=withheld - knobs.keys(), **versions)
    return result(
        rank(detected={"graph_share_frac": draw(st.sampled_from([None, 0.0, 0.5]))}),
        configuration=known,
        given=told,
        traces=(trace(kind=draw(st.sampled_from(["nsys-sqlite", "kineto"]))),),
    )


@settings(max_examples=40)
@given(sides(), sides())
def test_swapped_sides_mirror_every_change(base: Result, new: Result) -> None:
    assert between(new, base) == tuple(mirrored(one) for one in between(base, new))


@settings(max_examples=40)
@given(sides(), sides())
def test_nothing_is_listed_twice_and_nothing_that_is_the_same(base: Result, new: Result) -> None:
    found = between(base, new)
    assert len({one.what for one in found}) == len(found)
    assert all(one.base != one.new or one.said_base != one.said_new or one.withheld for one in found)

"""Whose run a recording shows, and that a run which is not Megatron's gets none of its flags."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

import diagnoser
from bench.simulate.knobs import Knobs
from bench.simulate.recorded import View, record
from bench.simulate.run import run
from heuristics.config.about import Given
from heuristics.fixes.catalogue import CATALOGUE, fixes_of
from heuristics.fixes.change import sentences
from heuristics.judging.judgement import Configured, judge
from heuristics.run.run import Run
from reports.content.blocks import Detail
from tests.doubles.document import GEMM
from tests.doubles.html import page_of
from tests.doubles.opinions import cost, costs, rank
from tests.doubles.pages import first_screen, flat, ticket, whole_text
from traces.measurements import RankMeasurements
from traces.names.frameworks import FRAMEWORKS, Framework, framework_by_names
from traces.training_log.log import TrainingLog

Export = Callable[..., Path]
MEGATRONS = ("megatron_lm", "megatron_bridge", "bridge_harness")


@pytest.mark.parametrize(
    ("what", "name", "framework"),
    [
        ("kernels", "void transformer_engine::normalization::rmsnorm_fwd_tuned_kernel<T>(P)", "megatron"),
        ("kernels", "_sort_chunks_by_map_kernel", "megatron"),
        ("kernels", "_indices_to_multihot_kernel", "megatron"),
        ("ranges", "layer_3f-layer_5b", "megatron"),
        ("ranges", "nvte_cublas_gemm_v2", "megatron"),
        ("ranges", "FusedDispatchBackward", "megatron"),
        ("groups", "EXPERT_MODEL_PARALLEL_GROUP", "megatron"),
        ("groups", "mesh_ep", "none"),
        ("kernels", "void at::native::vectorized_elementwise_kernel<4, F>(int)", "pytorch"),
        ("kernels", "triton_poi_fused_mul_silu_2", "pytorch"),
        ("ranges", "aten::linear, op_id = 7", "pytorch"),
        ("ranges", "ProfilerStep#3", "pytorch"),
        ("threads", "pt_autograd_0", "pytorch"),
        ("kernels", "loop_add_fusion_3", "jax"),
        ("kernels", "fusion_12", "jax"),
        ("kernels", "input_transpose_fusion", "jax"),
        ("kernels", "wrapped_transpose_2", "jax"),
        ("kernels", "triton_gemm_dot_12", "jax"),
        ("kernels", "triton_gemm_kernel", "none"),
        ("kernels", "triton_softmax_kernel", "none"),
        ("kernels", "rope_fusion", "none"),
        ("kernels", "bias_swiglu_fusion", "none"),
        ("ranges", "jit(train_step)", "jax"),
        ("ranges", "my.jit(model)", "none"),
        ("ranges", "TSL:XlaModule:#hlo_module=jit_step,program_id=7#", "jax"),
        ("kernels", "void tensorflow::BiasNHWCKernel<float>(int)", "tensorflow"),
        ("kernels", "void Eigen::internal::EigenMetaKernel<E>(E, int)", "tensorflow"),
        ("kernels", "cast_transpose_fusion_kernel_optimized", "none"),
        ("kernels", "void deep_ep::intranode::dispatch<8, 768>(int4*)", "none"),
        ("kernels", "saxpy(double *, double *, int)", "none"),
        ("kernels", GEMM, "none"),
        ("ranges", "iteration 3", "none"),
    ],
)
def test_names_that_only_one_framework_has_show_it(what: str, name: str, framework: Framework) -> None:
    assert framework_by_names({what: [name]}) == framework


def test_megatron_stands_on_pytorch_and_transformer_engine_runs_under_jax_too() -> None:
    engine, native = "transformer_engine::cast", "at::native::copy"
    assert framework_by_names({"kernels": [native, engine]}) == "megatron"
    assert framework_by_names({"kernels": [engine, "loop_fusion"]}) == "jax"


@pytest.mark.parametrize(
    "kernel",
    ["triton_gemm_kernel", "triton_softmax_kernel", "rope_fusion", "bias_swiglu_fusion", "loop_fusion"],
)
@pytest.mark.parametrize("range_", ["torch.jit(model)", "jit(model)"])
def test_where_pytorchs_kernels_run_no_name_makes_it_jax(kernel: str, range_: str) -> None:
    native, engine = "void at::native::vectorized_elementwise_kernel<4, F>(int)", "transformer_engine::cast"
    assert framework_by_names({"kernels": [kernel, native], "ranges": [range_]}) == "pytorch"
    assert framework_by_names({"kernels": [kernel, native, engine], "ranges": [range_]}) == "megatron"


@pytest.mark.parametrize("ranges", ["none", "layers"])
def test_a_simulated_run_is_megatrons(export: Export, ranges: str) -> None:
    simulated = run(Knobs(step_count=2, layer_count=2, dispatcher="none"))
    document = diagnoser.analyze(export(record(simulated, View(ranges=ranges)))).to_dict()
    assert (document["framework"], document["ranks"][0]["detected"]["framework"]) == ("megatron",) * 2
    assert "If it is Megatron" not in flat(first_screen(document))


@pytest.mark.parametrize("framework", [one for one in FRAMEWORKS if one != "megatron"])
def test_no_fix_of_another_framework_has_a_flag_of_megatrons(framework: Framework) -> None:
    fixes = fixes_of(framework)
    assert {*fixes} < {*CATALOGUE}
    for fix in fixes.values():
        knobs = fix.knobs(Run())
        assert [key for key in MEGATRONS if getattr(knobs, key)] == []
        told = sentences(fix.change(Run()), Run())
        assert knobs.pytorch or knobs.environment or told
        assert not any("--" in one for one in told)
        assert framework == "pytorch" or not knobs.pytorch
        assert [one.text for one in fix.preconditions(Run()) if one.state == "unknown" and not one.cure] == []
        assert "egatron" not in " ".join((fix.title, fix.versions, fix.verify, *fix.side_effects))
    assert fixes_of("megatron") == CATALOGUE


def test_what_pytorch_has_no_words_for_is_neither_planned_nor_refused() -> None:
    waits = rank(costs(communication=cost(300, {"ep_dispatch": 200, "all_reduce": 100})))
    plain = judge([rank_of("pytorch", waits)])
    assert [one.fix.id for one in plain.plan.fixes] == ["COM-4"]
    assert plain.plan.refused == ()
    full = judge([rank_of("megatron", waits)]).plan
    assert {"COM-1", "COM-2"} <= {one.fix.id for one in full.fixes} | {one.fix.id for one in full.refused}


def rank_of(framework: Framework, one: RankMeasurements) -> RankMeasurements:
    return replace(one, detected=structs.replace(one.detected, framework=framework))


def test_a_configuration_is_megatrons_whatever_names_show() -> None:
    one = rank_of("none", rank())
    configured = Configured(log=TrainingLog("train.log", 1))
    assert judge([one]).run.framework == "none"
    assert judge([one], Given(core_version="0.16.0")).run.framework == "megatron"
    assert judge([one], configured=configured).run.framework == "megatron"


@pytest.mark.parametrize(
    ("recording", "framework"),
    [
        ("a100_llm_2_7B_nvtx.sqlite", "pytorch"),
        ("added/h100_llm_1rank.sqlite", "pytorch"),
        ("edge_2026_tiny.sqlite", "none"),
        ("fuser_h200_2025.sqlite", "pytorch"),
        ("hta_df_index_resolver_df_index_resolver.json.gz", "pytorch"),
        ("hta_nccl_parser_config_nccl_data.json.gz", "pytorch"),
        ("hta_trace_diff_test_test.json.gz", "pytorch"),
        ("nsysai_h100_2gpu_1s.sqlite", "pytorch"),
        ("nsysai_mfu_2gpu_before.sqlite", "pytorch"),
        ("nsysai_mock.sqlite", "pytorch"),
        ("pipit_saxpy_mpi.sqlite", "none"),
        ("tl_moe_01_many_experts_few_tokens.json.gz", "pytorch"),
        ("tl_moe_05_large_capacity.json.gz", "pytorch"),
    ],
)
def test_no_real_recording_that_is_not_megatrons_gets_its_flags(
    recordings: Path, recording: str, framework: Framework
) -> None:
    """By hand: kernels of `at::native` or operators `aten::` in all but two, which run CUDA of their own."""
    document = diagnoser.analyze(recordings / recording).to_dict()
    assert document["framework"] == framework
    for fix in (*document["fixes"], *document["levers"]):
        assert [fix["knobs"][key] for key in MEGATRONS] == [[], [], []]
    asked = "If it is Megatron, give --config FILE for its own flags."
    for text in (first_screen(document), ticket(document)):
        told = " ".join(line for line in text.splitlines() if "source: " not in line)
        assert "Megatron" not in " ".join(told.split()).replace(asked, "")
        assert "--moe-" not in text


def test_the_second_simulators_runs_are_megatrons_by_their_kernels(recordings: Path) -> None:
    for name in ("plain_01", "plain_04", "sm_room_12", "graph_tail_03"):
        ranks = diagnoser.analyze(recordings / "second-simulator" / f"{name}.sqlite").to_dict()["ranks"]
        assert [rank["detected"]["framework"] for rank in ranks] == ["megatron"]


def test_a_plan_says_whose_it_is_even_where_one_rank_does_not_train(recordings: Path) -> None:
    """a100_llm_2_7B_nvtx runs the model forward only, and what helps the host is planned all the same."""
    document = diagnoser.analyze(recordings / "a100_llm_2_7B_nvtx.sqlite").to_dict()
    assert document["fixes"]
    assert "--framework pytorch" in flat(first_screen(document))
    assert "To learn it: none" not in flat(whole_text(document))


def test_each_spelling_of_a_fix_is_written_once_and_pytorchs_lines_are_told_apart(export: Export) -> None:
    document = diagnoser.analyze(export(record(run(Knobs(step_count=2, layer_count=2)), View()))).to_dict()
    lines = ("FSDP2: reshard_after_forward=False", "DDP: bucket_cap_mb=100")
    plan = document["fixes"] or document["levers"]
    for fix in plan:
        fix["knobs"], fix["arms"] = {**fix["knobs"], "pytorch": []}, []
    plan[0]["knobs"] = dict.fromkeys(plan[0]["knobs"], ()) | {
        "pytorch": [*lines],
        "environment": ["A=1", "B=2"],
    }
    text = flat(whole_text(document).partition("Every step")[2])
    assert text.count(f"PyTorch: {' '.join(lines)}") == 1
    assert text.count("environment: A=1 B=2") == 1
    assert all(line in ticket(document, Detail.FULL) for line in lines)
    assert "\n".join(lines) in page_of(document)

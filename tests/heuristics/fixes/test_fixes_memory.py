"""Fixes of the memory wall: what each needs, how it is spelled, and with what it must not go."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.fixes.change import sentences
from heuristics.fixes.fix import Fix
from heuristics.run.run import Run
from tests.doubles.fixes import given, need, shows, states

MEM_1 = CATALOGUE["MEM-1"]
MEM_2 = CATALOGUE["MEM-2"]
MEM_4 = CATALOGUE["MEM-4"]
MEM_5 = CATALOGUE["MEM-5"]
MEM_6 = CATALOGUE["MEM-6"]
MEM_7 = CATALOGUE["MEM-7"]
MEM_8 = CATALOGUE["MEM-8"]
MEM_9 = CATALOGUE["MEM-9"]
BY_MODEL = (
    "Set --pipeline-model-parallel-size by the sizes of the model: --config FILE has them, and the number "
    "stands here."
)
CARDS = (MEM_1, MEM_2, MEM_4, MEM_5, MEM_6, MEM_7, MEM_8, MEM_9)

FULL = Observed(
    moe=True, grouped_gemm=True, precision="bf16", recompute_full=True, offload=False, graph_frac=0.0
)


@pytest.mark.parametrize("fix", CARDS, ids=lambda fix: fix.id)
def test_a_memory_card_says_all_a_plan_needs(fix: Fix) -> None:
    run = Run()
    knobs = fix.knobs(Run(FULL, Given(gpu="H100", ep=8, precision="bf16")))
    assert fix.wall == "memory"
    assert fix.sources
    assert fix.verify
    assert fix.versions
    assert fix.preconditions(run)
    run = Run(FULL, Given(gpu="H100", ep=8, precision="bf16"))
    assert knobs.megatron_lm or knobs.environment or sentences(fix.change(run), run)
    cures = [one.cure for one in fix.preconditions(run) if one.state == "unknown"]
    assert all(cures) or fix is MEM_5  # COM-2's are its own


@pytest.mark.parametrize("fix", CARDS, ids=lambda fix: fix.id)
def test_nothing_unknown_refuses_a_memory_fix(fix: Fix) -> None:
    unmet = [one.text for one in fix.preconditions(Run()) if one.state == "unmet"]
    # an unknown GPU has no flex backend in the dispatcher guide
    assert unmet == [] or fix is MEM_5


def test_expandable_segments_turn_nccl_registration_off_beside_graphs() -> None:
    segments, register = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "NCCL_GRAPH_REGISTER=0"
    assert MEM_1.knobs(shows(graph_frac=0.0)).environment == (segments,)
    assert MEM_1.knobs(shows(graph_frac=0.5)).environment == (segments, register)
    assert MEM_1.knobs(Run()).environment == (segments, register)
    assert MEM_1.knobs(given(graph_impl="none")).environment == (segments,)


def test_full_recompute_is_replaced_by_modules_and_its_settings_go() -> None:
    knobs = MEM_2.knobs(Run(FULL, Given(family="dsv3")))
    assert knobs.megatron_lm == (
        "--recompute-granularity selective",
        "--recompute-modules moe_act layernorm mla_up_proj",
    )
    assert knobs.megatron_bridge == (
        "model.recompute_granularity=selective",
        "model.recompute_modules=[moe_act,layernorm,mla_up_proj]",
        "model.recompute_method=null",
        "model.recompute_num_layers=null",
    )
    assert knobs.bridge_harness == ("--recompute_modules moe_act,layernorm,mla_up_proj",)


def test_recompute_goes_where_memory_has_room() -> None:
    run = given(memory_tight=False)
    assert MEM_2.knobs(run).megatron_bridge[0] == "model.recompute_granularity=null"
    runs = [
        given(Observed(recompute_modules=names, recompute_full=full), memory_tight=False)
        for names, full in [((), True), (("mlp",), False), ((), False), (None, None)]
    ]
    assert states(MEM_2, "although memory has room", *runs) == ["met", "met", "unmet", "unknown"]


def test_nothing_selective_is_left_after_the_whole_moe_layer() -> None:
    shown = Observed(
        moe=True,
        grouped_gemm=True,
        precision="bf16",
        recompute_modules=("moe", "layernorm"),
        ep_overlap=False,
        graph_frac=0.0,
    )
    run = given(shown, memory_tight=True, family="qwen3_30b")
    assert need(MEM_2, run, "left to recompute").state == "unmet"
    assert MEM_2.knobs(run).megatron_lm == ()
    assert need(MEM_9, run, "does not fit").state == "met"


def flex_run(**facts: object) -> Run:
    shown = Observed(moe=True, dispatcher="alltoall", gpu="GB200", capability=(10, 0), a2a_waiting_frac=0.9)
    return given(
        shown,
        **{"stage": "tuned", "ep": 64, "etp": 1, "tp": 1, "flex_package": True, "core_version": "0.18"}
        | facts,
    )


def test_a_flex_dispatcher_saves_memory_where_the_guide_names_one() -> None:
    run = flex_run()
    assert need(MEM_5, run, "names a flex backend").state == "met"
    assert "--moe-flex-dispatcher-backend hybridep" in MEM_5.knobs(run).megatron_lm
    assert not [one.text for one in MEM_5.preconditions(run) if "waiting" in one.text]


def test_the_dispatcher_is_changed_once() -> None:
    assert CATALOGUE["COM-2"].id in MEM_5.excludes


@pytest.mark.parametrize(
    ("run", "modules"),
    [
        (shows(moe=True), "expert_fc1 moe_act"),
        (shows(moe=False), "core_attn attn_proj"),
        (shows(moe=True, recompute_modules=("moe",)), "core_attn attn_proj"),
    ],
)
def test_offload_starts_with_experts_unless_their_layer_is_recomputed(run: Run, modules: str) -> None:
    assert f"--offload-modules {modules}" in MEM_6.knobs(run).megatron_lm


@pytest.mark.parametrize(
    ("core", "knob"),
    [
        ("0.18.2", "--offload-modules expert_fc1"),
        ("0.19.0", "--activation-offload-fraction 0.5"),
        (None, "--activation-offload-fraction 0.5"),
    ],
)
def test_exposed_offload_is_tuned_by_release(core: str | None, knob: str) -> None:
    assert MEM_6.knobs(given(Observed(offload=True), core_version=core)).megatron_lm == (knob,)


@pytest.mark.parametrize(("te", "set_"), [("2.9.0", False), ("2.10.0", True), (None, True)])
def test_offload_keeps_weights_on_the_gpu_since_te_2_10(te: str | None, set_: bool) -> None:
    assert ("NVTE_CPU_OFFLOAD_V1=1" in MEM_6.knobs(given(te_version=te)).environment) is set_


def test_offload_beside_graphs_needs_later_releases_and_no_graph_of_moe() -> None:
    graphs = Observed(graph_frac=0.5)
    old = given(graphs, torch_version="2.8.0", te_version="2.13.0", graph_modules=("moe",))
    new = given(graphs, torch_version="2.9.0", te_version="2.14.0", graph_modules=("attn", "moe_router"))
    for part in ("PyTorch", "Transformer Engine beside", "whole moe"):
        assert states(MEM_6, part, old, new, Run(graphs)) == ["unmet", "met", "unknown"]
    assert not [one for one in MEM_6.preconditions(shows(graph_frac=0.0)) if "CUDA graph" in one.text]


def test_optimizer_offload_uses_the_flag_that_exists() -> None:
    flags = MEM_7.knobs(Run()).megatron_lm
    assert flags[:2] == ("--optimizer-cpu-offload", "--optimizer-offload-fraction 0.25")
    assert "--use-precision-aware-optimizer" in flags
    assert "--offload-optimizer-states" not in flags


def test_optimizer_offload_takes_fp8_gather_only_with_delayed_scaling() -> None:
    runs = [given(precision=name) for name in ("bf16", "fp8_delayed", "mxfp8", None)]
    assert states(MEM_7, "gathered in FP8", *runs) == ["met", "met", "unknown", "unknown"]
    assert {"MEM-4", "CMP-3"} <= set(MEM_7.excludes)


@pytest.mark.parametrize(
    ("facts", "flag"),
    [
        ({"gpu": "GB200", "ep": 16, "etp": 1}, "--expert-model-parallel-size 32"),
        ({"gpu": "H100", "ep": 8, "etp": 1, "pp": 2}, "--pipeline-model-parallel-size 4"),
        ({"gpu": "H100", "ep": 4, "etp": 2, "pp": 2}, "--pipeline-model-parallel-size 4"),
        ({}, BY_MODEL),
    ],
)
def test_experts_are_spread_inside_the_domain_and_layers_beyond_it(
    facts: dict[str, object], flag: str
) -> None:
    run = given(Observed(moe=True), **facts)
    assert (*MEM_8.knobs(run).megatron_lm, *sentences(MEM_8.change(run), run)) == (flag,)


def test_a_dense_model_is_cut_into_stages() -> None:
    run = given(Observed(moe=False), gpu="H100", ep=1, pp=2)
    assert MEM_8.knobs(run).bridge_harness == ("--pipeline_model_parallel_size 4",)
    assert need(MEM_8, run, "EP, ETP").state == "met"


def test_full_recompute_is_the_last_resort() -> None:
    runs = [given(memory_tight=False), given(memory_tight=True), Run()]
    assert states(MEM_9, "does not fit", *runs) == ["unmet", "unknown", "unknown"]
    assert {"MEM-2", "MEM-6", "COM-1", "HST-3"} <= set(MEM_9.excludes)
    assert "MEM-9" in MEM_2.excludes


@pytest.mark.parametrize("knobs", [fix.knobs for fix in CARDS], ids=[fix.id for fix in CARDS])
def test_bridge_overrides_are_assignments(knobs: Callable[[Run], object]) -> None:
    overrides = knobs(given(FULL, gpu="H100", ep=4, precision="bf16")).megatron_bridge  # type: ignore[attr-defined]
    assert all("=" in one and not one.startswith("-") for one in overrides)

"""Host fixes: what each needs of a run, how it is spelled by version, and what it says of itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.fixes.change import sentences
from heuristics.fixes.fix import Fix
from heuristics.plan.plan import make_plan
from heuristics.run.run import Run
from reports.content.names import name_of
from tests.doubles.fixes import configured
from traces.account.pieces import CAUSES
from traces.sections.tables import WallId
from traces.settings.settings import Value

HST_1 = CATALOGUE["HST-1"]
HST_2 = CATALOGUE["HST-2"]
HST_3 = CATALOGUE["HST-3"]
HST_4 = CATALOGUE["HST-4"]
HST_5 = CATALOGUE["HST-5"]
HST_6 = CATALOGUE["HST-6"]
HST_7 = CATALOGUE["HST-7"]
HST_9 = CATALOGUE["HST-9"]
HST_10 = CATALOGUE["HST-10"]
FIXES = (HST_1, HST_2, HST_3, HST_4, HST_5, HST_6, HST_7, HST_9)
GB = 10**9
TWICE = "Set --micro-batch-size to twice what it is now."
HALF = "Set --tensor-model-parallel-size to half of what it is now."


def state(fix: Fix, text: str, run: Run) -> str:
    """State of the one precondition with this text in it."""
    (found,) = [one for one in fix.preconditions(run) if text in one.text]
    return found.state


def cure(fix: Fix, text: str, run: Run) -> str:
    (found,) = [one for one in fix.preconditions(run) if text in one.text]
    return found.cure


@pytest.mark.parametrize("fix", FIXES, ids=lambda fix: fix.id)
def test_every_fix_says_where_it_comes_from_how_it_is_set_and_how_to_verify_it(fix: Fix) -> None:
    knobs = fix.knobs(Run())
    assert fix.wall == "host_overhead"
    assert set(fix.kinds) <= {*CAUSES, "arrival", "long_python_pauses"}
    told = sentences(fix.change(Run()), Run())
    assert (knobs.megatron_lm and knobs.megatron_bridge) or knobs.environment or told
    assert all(flag.startswith("--") for flag in knobs.megatron_lm)
    assert all(override.split("=")[0].count(".") == 1 for override in knobs.megatron_bridge)
    assert fix.sources
    assert fix.verify
    assert fix.versions
    assert all(gain.source for gain in fix.gains)


@pytest.mark.parametrize("fix", FIXES, ids=lambda fix: fix.id)
def test_whatever_is_unknown_says_what_would_tell(fix: Fix) -> None:
    for run in (Run(), Run(Observed(dispatcher="alltoall", moe=True), Given(gpu="GB200"))):
        assert not [one.text for one in fix.preconditions(run) if one.state == "unknown" and not one.cure]


@pytest.mark.parametrize(("gpu", "share"), [("GB200", 2), ("VR200", 2), ("H100", 4), ("B200", 4)])
def test_grace_has_two_gpus_a_numa_node_and_x86_four(gpu: str, share: int) -> None:
    run = Run(given=Given(gpu=gpu))
    (command,) = HST_1.knobs(run).environment
    assert command.startswith(f"numactl --cpunodebind=$((SLURM_LOCALID/{share}))")
    assert state(HST_1, "NUMA node follows", run) == "met"


def test_the_collector_may_be_what_makes_a_pause_of_python_long_and_no_other_fix_is() -> None:
    assert HST_2.kinds == ("gc", "long_python_pauses")
    assert [fix.id for fix in FIXES if "long_python_pauses" in fix.kinds] == ["HST-2"]
    pauses = Run(cost_by_kind_ns={"host_overhead": {"long_python_pauses": 5}}, window_ns=100)
    assert state(HST_2, "collector", pauses) == "unknown"


DROPLESS = Given(routing="dropless", packed_sequences=False)


def test_dropless_routing_gets_graphs_of_router_and_preprocessing() -> None:
    knobs = HST_3.knobs(Run(Observed(moe=True), DROPLESS))
    assert knobs.megatron_lm == (
        "--cuda-graph-impl transformer_engine",
        "--cuda-graph-modules moe_router moe_preprocess",
        "--te-rng-tracker",
    )
    assert "model.cuda_graph_modules=[moe_router,moe_preprocess]" in knobs.megatron_bridge
    assert "rng.te_rng_tracker=true" in knobs.megatron_bridge
    assert knobs.bridge_harness[1] == "--cuda_graph_scope moe_router,moe_preprocess"
    assert knobs.environment == ("NCCL_GRAPH_REGISTER=0",)


@pytest.mark.parametrize("given", [Given(core_version="0.17.0"), Given(bridge_version="0.4.0")])
def test_modules_were_a_scope_before_core_0_18(given: Given) -> None:
    knobs = HST_3.knobs(Run(Observed(moe=True), given))
    assert "--cuda-graph-scope moe_router moe_preprocess" in knobs.megatron_lm
    assert "model.cuda_graph_scope=[moe_router,moe_preprocess]" in knobs.megatron_bridge


def test_recompute_that_forbids_graphs_is_cured_by_the_selective_one_and_hides_no_choice() -> None:
    full = Run(Observed(moe=True, recompute_full=True, recompute_modules=("moe",)), DROPLESS)
    assert state(HST_3, "CUDA-graph guide", full) == "met"
    assert cure(HST_3, "no full recompute", full) == "MEM-2"
    assert cure(HST_3, "moe is not recomputed", full) == "MEM-2"
    assert "MEM-9" in HST_3.excludes


def test_padding_takes_preprocessing_out_of_the_graphs() -> None:
    run = Run(Observed(moe=True, dispatcher="alltoall"), Given(routing="dropless", router_padding=True))
    assert "--cuda-graph-modules moe_router" in HST_3.knobs(run).megatron_lm


def test_a_dense_model_gets_no_graph_of_a_router() -> None:
    run = Run(Observed(moe=False))
    assert "moe" not in " ".join(HST_3.knobs(run).megatron_lm)
    assert not [one for one in HST_3.preconditions(run) if "moe" in one.text]


def test_graphs_of_parts_and_of_the_whole_step_are_never_in_one_plan() -> None:
    assert "HST-7" in HST_3.excludes
    assert "HST-3" in HST_7.excludes


@pytest.mark.parametrize(
    ("version", "router", "told"),
    [("2.7.0", 72, "met"), ("2.6.0", 72, "unmet"), ("2.1.0", 31, "met"), (None, 72, "unknown")],
)
def test_the_router_fusion_needs_a_newer_transformer_engine_than_the_permute_fusion(
    version: str | None, router: float, told: str
) -> None:
    run = Run(Observed(router_kernels_per_layer=router, permute_fused=False), Given(te_version=version))
    assert state(HST_4, "Transformer Engine", run) == told


def test_only_what_is_unfused_is_switched_on() -> None:
    run = Run(Observed(router_kernels_per_layer=72, permute_fused=True))
    assert HST_4.knobs(run).megatron_lm[0] == "--moe-router-fusion"
    assert "--moe-permute-fusion" not in HST_4.knobs(run).megatron_lm


def test_hybridep_takes_the_permutation_in_since_core_0_17_1() -> None:
    flag = "--moe-permute-fusion-into-hybridep"
    assert flag in HST_4.knobs(Run(Observed(dispatcher="hybridep"))).megatron_lm
    older = Run(Observed(dispatcher="hybridep"), Given(core_version="0.17.0"))
    assert flag not in HST_4.knobs(older).megatron_lm


def test_a_dense_model_gets_the_fusion_of_its_loss_alone() -> None:
    knobs = HST_4.knobs(Run(Observed(moe=False)))
    assert knobs.megatron_lm == ("--cross-entropy-loss-fusion", "--cross-entropy-fusion-impl native")
    assert HST_4.preconditions(Run(Observed(moe=False))) == ()


def test_norms_quantise_in_cudnn_for_mxfp8_only() -> None:
    assert "NVTE_NORM_FWD_USE_CUDNN=1" in HST_4.knobs(Run(given=Given(precision="mxfp8"))).environment
    assert HST_4.knobs(Run(given=Given(precision="bf16"))).environment == ()


@pytest.mark.parametrize(
    ("run", "flags"),
    [
        (Run(given=Given(tp=4)), ("--tensor-model-parallel-size 2", TWICE)),
        (Run(given=Given(tp=1)), (TWICE,)),
        (Run(Observed(tp_active=True)), (TWICE, HALF)),
        (Run(), (TWICE,)),
    ],
)
def test_tensor_parallelism_is_halved_where_there_is_some(run: Run, flags: tuple[str, ...]) -> None:
    assert (*HST_5.knobs(run).megatron_lm, *sentences(HST_5.change(run), run)) == flags


TUNED = Given(gpu="GB200", routing="dropless", precision="mxfp8", te_op_fuser=True)


@pytest.mark.parametrize(
    ("core", "flags"),
    [
        (None, {"--cuda-graph-impl full_iteration", "--moe-paged-stash"}),
        ("0.17.1", {"--cuda-graph-impl local", "--cuda-graph-scope full_iteration"}),
    ],
)
def test_the_graph_of_the_step_is_spelled_by_version(core: str | None, flags: set[str]) -> None:
    knobs = HST_7.knobs(Run(Observed(moe=True), Given(routing="dropless", core_version=core)))
    assert flags <= set(knobs.megatron_lm)
    assert "--no-check-for-nan-in-loss-and-grad" in knobs.megatron_lm
    assert "rerun_state_machine.check_for_nan_in_loss=false" in knobs.megatron_bridge


def test_drop_and_pad_needs_no_stash() -> None:
    knobs = HST_7.knobs(Run(Observed(moe=True), Given(routing="drop_pad")))
    assert not [flag for flag in knobs.megatron_lm if "stash" in flag or "rank-capacity" in flag]


def test_the_stash_comes_with_the_budget_it_cannot_be_without() -> None:
    knobs = HST_7.knobs(Run(Observed(moe=True), Given(routing="dropless")))
    assert "--moe-expert-rank-capacity-factor 1.5" in knobs.megatron_lm
    assert "model.moe_paged_stash=true" in knobs.megatron_bridge


def test_less_of_the_optimizer_goes_to_the_cpu_where_its_pause_is_seen() -> None:
    costs: dict[WallId, dict[str, int]] = {"host_overhead": {"cpu_optimizer": 9, "python": 1}}
    seen = Run(cost_by_kind_ns=costs, total_ns={"host_overhead": 10})
    assert [one.state for one in HST_9.preconditions(seen)] == ["met", "unknown"]
    assert [one.state for one in HST_9.preconditions(Run())] == ["unmet", "unknown"]
    assert HST_9.knobs(seen).megatron_lm[0] == "--optimizer-offload-fraction 0.5"
    half = configured({"optimizer.optimizer_offload_fraction": 0.5})
    assert HST_9.knobs(half).megatron_bridge[0] == "optimizer.optimizer_offload_fraction=0.25"


def test_where_nothing_of_the_optimizer_is_offloaded_nothing_of_it_is_taken_back() -> None:
    undivided: dict[WallId, dict[str, int]] = {"host_overhead": {}}
    figures = Run(cost_by_kind_ns=undivided, total_ns={"host_overhead": 10})
    assert next(one.state for one in HST_9.preconditions(figures)) == "unmet"
    offloaded = configured({"optimizer.optimizer_cpu_offload": True})
    assert next(one.state for one in HST_9.preconditions(offloaded)) == "met"


def test_garbage_that_is_collected_by_hand_is_not_guessed_from_long_pauses() -> None:
    by_hand = configured({"train.manual_gc": True})
    assert "unmet" in [one.state for one in HST_2.preconditions(by_hand)]
    assert "garbage" not in name_of("long_python_pauses")


@pytest.mark.parametrize(
    ("shown", "title"),
    [
        (Observed(moe=True), "CUDA graphs of router and preprocessing"),
        (Observed(moe=False), "CUDA graphs of attention"),
    ],
)
def test_the_title_of_graphs_names_the_modules_that_its_flags_name(shown: Observed, title: str) -> None:
    run = Run(shown, DROPLESS)
    assert HST_3.of_run(HST_3, run).title == title
    words = {"attn": "attention", "moe_router": "router", "moe_preprocess": "preprocessing"}
    flags = " ".join(HST_3.knobs(run).megatron_lm).split("--cuda-graph-modules ")[1].split(" --")[0]
    assert all(words[flag] in title for flag in flags.split())


def test_a_module_that_is_captured_already_stays_captured() -> None:
    values: dict[str, Value] = {"num_moe_experts": 128, "cuda_graph_impl": "transformer_engine"}
    run = configured({**values, "cuda_graph_modules": ("attn", "moe_preprocess")})
    assert HST_3.change(run).set["cuda_graph_modules"] == ("attn", "moe_router", "moe_preprocess")


@pytest.mark.parametrize(("recorder", "asked"), [(None, True), ("nsys", False)])
def test_collections_that_no_figure_names_may_be_in_the_time_of_python(
    recorder: str | None, asked: bool
) -> None:
    run = Run(Observed(recorder=recorder), cost_by_kind_ns={"host_overhead": {"python": 100, "launch": 100}})
    assert ("python" in HST_2.of_run(HST_2, run).kinds) is asked


def test_a_graph_of_the_whole_step_is_refused_for_its_own_reason_before_another_fix() -> None:
    values: dict[str, Value] = {
        "num_moe_experts": 128,
        "moe_router_topk": 8,
        "moe_token_dispatcher_type": "alltoall",
    }
    run = replace(
        configured(values),
        given=Given(gpu="H100", precision="bf16", core_version="0.16.1", routing="dropless"),
        cost_by_kind_ns={"host_overhead": {"launch": 300}},
        window_ns=1000,
    )
    refused = {one.fix.id: one for one in make_plan(run, ["host_overhead"], CATALOGUE).refused}
    assert refused["HST-7"].because == "needs: no expert size goes back to the host"


@pytest.mark.parametrize(
    ("pageable", "exposed_frac", "said"),
    [
        (True, 0.0, "pin_memory=True"),
        (True, 0.06, "pin_memory=True"),
        (None, 0.06, "pin_memory=True"),
        (None, 0.04, ""),
        (False, 0.04, ""),
        (False, 0.06, "a stream of their own"),
    ],
)
def test_input_is_pinned_where_it_is_pageable_and_copied_ahead_where_it_is_pinned_and_exposed(
    pageable: bool | None, exposed_frac: float, said: str
) -> None:
    form = HST_10.pytorch
    assert form is not None
    change = form.change(Run(Observed(pageable_input=pageable, exposed_input_frac=exposed_frac)))
    lines = "\n".join(change.pytorch)
    assert said in lines
    assert ("pin_memory" in lines) is ("pin_memory" in said)

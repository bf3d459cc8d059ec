"""The rules of NVIDIA's guides one by one: seeds 002 and 003, the MoE workflow."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace

import pytest

from heuristics.config.observed import Observed
from heuristics.fixes.catalogue import CATALOGUE, WALL_ORDER
from heuristics.fixes.fix import Fix
from heuristics.guides.cuda_graphs import choose_graphs
from heuristics.guides.dispatcher import choose_dispatcher
from heuristics.guides.modules import MODULES
from heuristics.guides.precision import ROUTER, choose_precision
from heuristics.guides.recompute import choose_recompute
from heuristics.run.run import WALL_IDS
from tests.doubles.runs import given_too, run_by, run_of, shown_too, unmet
from traces.sections.tables import WallId
from traces.settings.settings import settings

# ---- seeds 002 and 003: bottleneck -> primary fixes ----


@pytest.mark.parametrize(
    ("wall", "fixes"),
    [
        pytest.param(
            "memory",
            (
                CATALOGUE["MEM-2"],
                CATALOGUE["MEM-4"],
                CATALOGUE["MEM-6"],
                CATALOGUE["MEM-8"],
            ),
            id="seeds 002 and 003: memory",
        ),
        pytest.param(
            "communication",
            (
                CATALOGUE["COM-2"],
                CATALOGUE["COM-1"],
                CATALOGUE["COM-4"],
                CATALOGUE["COM-5"],
                CATALOGUE["COM-6"],
            ),
            id="seeds 002 and 003: communication",
        ),
        pytest.param(
            "host_overhead",
            (
                CATALOGUE["HST-3"],
                CATALOGUE["HST-2"],
                CATALOGUE["HST-5"],
                CATALOGUE["HST-1"],
            ),
            id="seeds 002 and 003: host overhead",
        ),
        pytest.param(
            "compute",
            (CATALOGUE["CMP-1"], CATALOGUE["CMP-2"], CATALOGUE["CMP-3"]),
            id="seeds 002 and 003: compute",
        ),
    ],
)
def test_seeds_002_and_003_primary_fixes_of_a_bottleneck_in_their_order(
    wall: WallId, fixes: tuple[Fix, ...]
) -> None:
    assert {fix.wall for fix in fixes} == {wall}
    places = [WALL_ORDER[wall].index(fix.id) for fix in fixes]
    assert places[0] == 0
    assert all(earlier < later for earlier, later in itertools.pairwise(places))


def test_seeds_002_and_003_compute_ends_with_the_dispatchers_own_kernels() -> None:
    assert any("COM-3" in order for order in WALL_ORDER.values())
    knobs = CATALOGUE["COM-3"].knobs(run_of(Observed(dispatcher="deepep"), gpu="H100", ep=64))
    assert any("num-sms" in flag for flag in knobs.megatron_lm)


def test_seed_002_manual_garbage_collection_has_its_flag() -> None:
    assert "--manual-gc" in CATALOGUE["HST-2"].knobs(run_of()).megatron_lm


# ---- seeds 002 and 003: memory first ----


def test_seeds_002_and_003_selective_recompute_before_offload_before_full_recompute() -> None:
    order = WALL_ORDER["memory"]
    assert order.index("MEM-2") < order.index("MEM-6") < order.index("MEM-9")


def test_seeds_002_and_003_full_recompute_only_when_the_run_still_does_not_fit() -> None:
    assert choose_recompute(run_of(memory_tight=True)).granularity == "selective"
    assert choose_recompute(run_of(Observed(recompute_full=True))).granularity == "selective"


@pytest.mark.parametrize(
    "label", ["layernorm", "core_attn", "moe_act", "mlp", "shared_experts", "mla_up_proj"]
)
def test_seeds_002_and_003_the_modules_to_recompute_first_are_known(label: str) -> None:
    assert label in MODULES


# ---- seeds 002 and 003: parallelism and overlap ----


def test_seeds_002_and_003_experts_take_ep_before_tp_in_a_layout_of_their_own() -> None:
    knobs = CATALOGUE["COM-10"].knobs(run_of(gpu="H100", ep=16, tp=2))
    assert knobs.megatron_lm == ("--expert-model-parallel-size 8", "--expert-tensor-parallel-size 1")


@pytest.mark.parametrize(
    ("fix", "flag"),
    [
        pytest.param(
            CATALOGUE["COM-1"], "--overlap-moe-expert-parallel-comm", id="seeds 002 and 003: EP overlap"
        ),
        pytest.param(CATALOGUE["COM-4"], "--overlap-grad-reduce", id="seeds 002 and 003: DP overlap"),
        pytest.param(CATALOGUE["COM-5"], "--tp-comm-overlap", id="seeds 002 and 003: TP overlap"),
    ],
)
def test_seeds_002_and_003_visible_communication_is_overlapped_too(fix: Fix, flag: str) -> None:
    assert flag in fix.knobs(run_of()).megatron_lm
    assert fix.id in WALL_ORDER["communication"]


def test_seeds_002_and_003_the_dispatcher_is_a_fix_and_not_the_first_knob() -> None:
    run = run_of(Observed(dispatcher="alltoall"), {"ep_a2a": 5}, gpu="GB300", ep=64)
    assert choose_dispatcher(run).rule == "not-first-knob"


# ---- seeds 002 and 003: low precision ----


@pytest.mark.parametrize(
    ("what", "recipe"),
    [
        pytest.param({"gpu": "H100"}, "fp8_blockwise", id="seed 003 FP8: Hopper"),
        pytest.param({"gpu": "B200"}, "mxfp8", id="seed 003 FP8: Blackwell"),
        pytest.param({"gpu": "GB200"}, "mxfp8", id="seed 003 FP8: Blackwell NVL72"),
        pytest.param(
            {"gpu": "GB200", "precision": "mxfp8"},
            "nvfp4",
            id="seed 003 FP8: Blackwell speed-first, FP8 stable",
        ),
        pytest.param(
            {"gpu": "GB200", "precision": "mxfp8", "stage": "bring_up"},
            "mxfp8",
            id="seed 003 FP8: no NVFP4 before FP8 is stable",
        ),
    ],
)
def test_seed_003_recipe_to_start_with(what: Mapping[str, object], recipe: str) -> None:
    assert choose_precision(run_by(what)).recipe == recipe


def test_seed_003_the_router_stays_in_fp32() -> None:
    assert ROUTER == "fp32"
    knobs = CATALOGUE["CMP-3"].knobs(run_of(Observed(moe=True), gpu="H100"))
    assert "--moe-router-dtype fp32" in knobs.megatron_lm


# ---- seed 003: CUDA graphs and pitfalls ----


def test_seed_003_dropless_starts_with_parts_and_never_with_the_iteration() -> None:
    choice = choose_graphs(run_of(Observed(moe=True), routing="dropless"))
    assert (choice.impl, choice.modules) == ("transformer_engine", ("attn", "moe_router", "moe_preprocess"))
    assert "full_iteration" in choice.row.never


def test_seed_003_graphs_take_gigabytes_and_static_shapes() -> None:
    choice = choose_graphs(run_of(Observed(moe=True), routing="dropless"))
    assert any("a few GB" in note for note in choice.notes)
    changing = replace(
        run_of(Observed(moe=True), routing="dropless"), settings=settings({"variable_seq_lengths": True}, "t")
    )
    assert choose_graphs(changing).impl == "none"
    assert any("fixed shapes" in refusal.reason for refusal in choose_graphs(changing).refused)


def test_seed_003_the_iteration_is_for_drop_and_pad() -> None:
    assert "full_iteration" in choose_graphs(run_of(Observed(moe=True), routing="drop_pad")).then


def test_seed_003_pitfall_1_what_does_not_fit_comes_first_and_compute_last() -> None:
    assert WALL_IDS[0] == "memory"
    assert WALL_IDS[-1] == "compute"


def test_seed_003_pitfall_3_precisions_are_not_compared_by_mfu() -> None:
    fix = CATALOGUE["CMP-3"]
    assert any("MFU can look lower" in effect for effect in fix.side_effects)
    assert "not by MFU" in fix.verify


def test_seed_003_pitfall_4_graphs_of_parts_go_with_selective_recompute_only() -> None:
    full = run_of(Observed(moe=True, recompute_full=True), routing="dropless", gpu="H100")
    assert choose_graphs(full).impl == "none"
    selective = shown_too(full, recompute_full=False, recompute_modules=("moe_act",))
    assert choose_graphs(selective).impl == "transformer_engine"
    assert "no full recompute" in unmet(CATALOGUE["HST-3"], full)


def test_seed_003_pitfall_5_experts_get_their_own_layout_where_they_span_the_domain() -> None:
    run = run_of(Observed(dispatcher="deepep"), gpu="H100", ep=64, etp=1, memory_tight=False)
    assert unmet(CATALOGUE["COM-10"], run) == []
    assert unmet(CATALOGUE["COM-10"], given_too(run, ep=8)) == [
        "EP x ETP is more than one NVLink domain holds"
    ]

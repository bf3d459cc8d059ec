"""The rules of NVIDIA's guides one by one: seed 000, token dispatchers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from heuristics.config.observed import Observed
from heuristics.fixes.catalogue import CATALOGUE, WALL_ORDER
from heuristics.guides.cuda_graphs import choose_graphs
from heuristics.guides.dispatcher import backend_extras, backend_notes, choose_dispatcher
from tests.doubles.runs import run_by, run_of

# ---- seed 000: hardware, EP degree, model family ----


@pytest.mark.parametrize(
    ("what", "first"),
    [
        pytest.param({"gpu": "H100", "ep": 64}, "deepep", id="seed 000 hardware: H100"),
        pytest.param({"gpu": "B200", "ep": 64}, "deepep", id="seed 000 hardware: B200"),
        pytest.param({"gpu": "GB200", "ep": 64}, "hybridep", id="seed 000 hardware: GB200 NVL72"),
        pytest.param({"gpu": "GB300", "ep": 64}, "hybridep", id="seed 000 hardware: GB300 NVL72"),
        pytest.param({"ep": 64}, "alltoall", id="seed 000 hardware: unknown"),
        pytest.param(
            {"gpu": "H100", "ep": 64, "stage": "bring_up"}, "alltoall", id="seed 000 hardware: first bring-up"
        ),
        pytest.param({"gpu": "H100", "ep": 8}, "alltoall", id="seed 000 EP: small"),
        pytest.param({"gpu": "H100", "ep": 16}, "deepep", id="seed 000 EP: medium"),
        pytest.param({"gpu": "GB200", "ep": 32}, "hybridep", id="seed 000 EP: large, NVL72"),
        pytest.param(
            {"gpu": "GB200", "ep": 64, "family": "dsv3"}, "hybridep", id="seed 000 family: DSV3, GB200"
        ),
        pytest.param(
            {"gpu": "GB300", "ep": 32, "family": "dsv3"}, "hybridep", id="seed 000 family: DSV3, GB300"
        ),
        pytest.param({"gpu": "H100", "ep": 64, "family": "dsv3"}, "deepep", id="seed 000 family: DSV3, H100"),
        pytest.param(
            {"gpu": "H100", "ep": 32, "family": "qwen3_235b"},
            "deepep",
            id="seed 000 family: Qwen3 235B, H100",
        ),
        pytest.param(
            {"gpu": "GB200", "ep": 32, "family": "qwen3_235b"},
            "hybridep",
            id="seed 000 family: Qwen3 235B, GB200",
        ),
        pytest.param(
            {"gpu": "H100", "ep": 16, "family": "qwen3_30b"}, "deepep", id="seed 000 family: Qwen3 30B"
        ),
        pytest.param(
            {"gpu": "GB200", "ep": 32, "family": "qwen3_next", "precision": "bf16"},
            None,
            id="seed 000 family: Qwen3-Next in BF16 is a close race",
        ),
        pytest.param(
            {"gpu": "GB200", "ep": 32, "family": "qwen3_next", "precision": "mxfp8"},
            "hybridep",
            id="seed 000 family: Qwen3-Next in FP8",
        ),
        pytest.param(
            {"gpu": "GB200", "ep": 32, "family": "qwen3_next", "memory_tight": True},
            "hybridep",
            id="seed 000 family: Qwen3-Next, memory tight",
        ),
        pytest.param(
            {"gpu": "GB200", "ep": 32, "family": "vlm", "stage": "bring_up"},
            "alltoall",
            id="seed 000 family: MoE VLM starts simple",
        ),
        pytest.param(
            {"gpu": "GB200", "ep": 32, "family": "vlm"},
            "hybridep",
            id="seed 000 family: MoE VLM then tests HybridEP",
        ),
    ],
)
def test_seed_000_first_dispatcher(what: Mapping[str, object], first: str | None) -> None:
    choice = choose_dispatcher(run_by(what))
    assert choice.first == first


def test_seed_000_small_ep_is_second_order_and_may_be_either() -> None:
    choice = choose_dispatcher(run_of(gpu="H100", ep=8))
    assert choice.candidates == ("alltoall", "deepep")
    assert "at small EP the dispatcher" in choice.notes[0]


def test_seed_000_dsv3_the_choice_matters_more_as_ep_and_pp_grow() -> None:
    assert "more as EP and PP grow" in choose_dispatcher(run_of(gpu="GB200", family="dsv3", ep=64)).notes[0]


def test_seed_000_qwen3_235b_on_gb200_gains_memory_head_room() -> None:
    notes = choose_dispatcher(run_of(gpu="GB200", family="qwen3_235b", ep=32)).notes
    assert "somewhat faster, and it needs less memory" in notes[0]


# ---- seed 000: when to use each ----


@pytest.mark.parametrize(
    ("what", "first"),
    [
        pytest.param({"stage": "bring_up", "gpu": "GB200"}, "alltoall", id="seed 000 alltoall: bring-up"),
        pytest.param({"gpu": "B200", "ep": 4}, "alltoall", id="seed 000 alltoall: small EP"),
        pytest.param({"gpu": "H200", "ep": 64}, "deepep", id="seed 000 deepep: Hopper"),
        pytest.param({"gpu": "B200", "ep": 64}, "deepep", id="seed 000 deepep: B200"),
        pytest.param({"gpu": "GB200"}, "hybridep", id="seed 000 hybridep: GB200"),
        pytest.param({"gpu": "GB300"}, "hybridep", id="seed 000 hybridep: GB300"),
        pytest.param({"gpu": "GB200", "ep": 72}, "hybridep", id="seed 000 hybridep: large EP"),
        pytest.param(
            {"gpu": "GB200", "ep": 8, "memory_tight": True}, "hybridep", id="seed 000 hybridep: memory"
        ),
    ],
)
def test_seed_000_when_to_use_each(what: Mapping[str, object], first: str) -> None:
    assert choose_dispatcher(run_by(what)).first == first


def test_seed_000_alltoall_is_what_a_communication_regression_is_debugged_with() -> None:
    debugging = run_of(Observed(dispatcher="deepep"), gpu="H100", ep=64, stage="bring_up")
    assert choose_dispatcher(debugging).first == "alltoall"


def test_seed_000_deepep_once_expert_communication_across_nodes_shows() -> None:
    run = run_of(Observed(dispatcher="alltoall", internode=True), {"ep_a2a": 30}, gpu="H100", ep=64)
    assert choose_dispatcher(run).first == "deepep"
    hidden = replace(run, cost_by_kind_ns={"communication": {"ep_a2a": 3}})
    assert choose_dispatcher(hidden).first == "alltoall"


def test_seed_000_deepep_is_an_intermediate_step_before_hybridep() -> None:
    assert choose_dispatcher(run_of(gpu="B200", ep=64)).candidates[:2] == ("deepep", "hybridep")


# ---- seed 000: tuning parameters ----


@pytest.mark.parametrize("backend", ["deepep", "hybridep"])
def test_seed_000_a_backend_is_selected_by_type_and_backend_together(backend: str) -> None:
    run = run_of(gpu="H100" if backend == "deepep" else "GB200", ep=64, core_version="0.18.0")
    knobs = CATALOGUE["COM-2"].knobs(run)
    assert knobs.megatron_lm[:2] == (
        "--moe-token-dispatcher-type flex",
        f"--moe-flex-dispatcher-backend {backend}",
    )


def test_seed_000_deepep_starts_with_20_sms() -> None:
    assert backend_extras(run_of(core_version="0.16.0"), "deepep") == ("--moe-deepep-num-sms 20",)


def test_seed_000_hybridep_sweeps_sms_from_16_to_32() -> None:
    assert backend_extras(run_of(core_version="0.16.0"), "hybridep") == (
        "--moe-hybridep-num-sms 16, then 32",
    )


def test_seed_000_ranks_per_nvlink_domain_must_match_the_deployment() -> None:
    said = ("NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN=8",)
    assert run_of(gpu="GB200", ep=64, env=said).config.right_topology is False
    assert run_of(gpu="H100", ep=64, env=said).config.right_topology is True


# ---- seed 000: key interactions ----


def test_seed_000_cuda_graphs_pair_with_attention_router_and_preprocess_on_dropless() -> None:
    choice = choose_graphs(run_of(Observed(moe=True), routing="dropless"))
    assert choice.modules == ("attn", "moe_router", "moe_preprocess")


def test_seed_000_ep_overlap_comes_after_the_backend() -> None:
    order = WALL_ORDER["communication"]
    assert order.index("COM-2") < order.index("COM-1")


def test_seed_000_fp8_raises_the_weight_of_communication_and_host() -> None:
    low = choose_dispatcher(run_of(gpu="H100", ep=64, precision="fp8_blockwise"))
    assert any("communication and host overhead take" in note for note in low.notes)
    assert not any("raises the" in note for note in choose_dispatcher(run_of(precision="bf16")).notes)


@pytest.mark.parametrize("gpu", ["GB200", "GB300"])
def test_seed_000_cpu_affinity_can_matter_as_much_as_the_dispatcher(gpu: str) -> None:
    run = run_of(Observed(dispatcher="alltoall"), gpu=gpu, ep=64, cpu_bound_to_numa=False)
    assert choose_dispatcher(run).before == ("HST-1",)
    assert CATALOGUE["HST-1"].id == "HST-1"


def test_seed_000_a_poor_pipeline_layout_can_erase_what_a_dispatcher_gains() -> None:
    run = run_of(Observed(dispatcher="alltoall"), {"ep_a2a": 20, "pp_p2p": 30}, gpu="H100", ep=64)
    assert choose_dispatcher(run).before == ("COM-6",)
    assert CATALOGUE["COM-6"].id == "COM-6"


# ---- seed 000: pitfalls ----


def test_seed_000_pitfall_2_hybridep_is_no_winner_off_its_hardware() -> None:
    run = run_of(gpu="H100", ep=64)
    assert choose_dispatcher(run).first != "hybridep"
    assert any("depends on the topology" in note for note in backend_notes(run, "hybridep"))
    assert not any("sensitive" in note for note in backend_notes(run_of(gpu="GB200", ep=64), "hybridep"))


@pytest.mark.parametrize("backend", ["deepep", "hybridep"])
def test_seed_000_pitfall_3_sm_counts_are_starts_to_tune(backend: str) -> None:
    note = f"this SM count of {backend} is only a start: the best depends on the workload and on EP"
    assert f"{note}, so try several" in backend_notes(run_of(), backend)
    assert CATALOGUE["COM-3"].id in WALL_ORDER["communication"]


def test_seed_000_pitfall_5_memory_head_room_justifies_hybridep_by_itself() -> None:
    run = run_of(
        Observed(dispatcher="alltoall"),
        {"ep_a2a": 1},
        gpu="GB200",
        ep=32,
        family="qwen3_235b",
        memory_tight=True,
    )
    assert choose_dispatcher(run).first == "hybridep"

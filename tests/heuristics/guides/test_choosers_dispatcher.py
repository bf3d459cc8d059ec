"""The dispatcher chooser: each row of the catalogue's test table, B01 to B30, with its seed file."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heuristics.config.about import Given, Guidance
from heuristics.config.observed import Observed
from heuristics.guides.cuda_graphs import choose_graphs
from heuristics.guides.dispatcher import (
    DispatcherChoice,
    backend_extras,
    backend_notes,
    choose_dispatcher,
    refusals,
)
from heuristics.run.run import Run
from tests.doubles.runs import BOTH, given_too, run_by, run_of
from traces.settings.settings import Framework, settings


def newer(run: Run) -> Run:
    return replace(run, given=replace(run.given, guidance="main-2026-08"))


def said(choice: DispatcherChoice) -> str:
    return " ".join(choice.notes)


def test_b01_seed_000_h100_across_nodes_takes_deepep_with_20_sms() -> None:
    choice = choose_dispatcher(run_of(gpu="H100", ep=64, family="dsv3", core_version="0.18.0"))
    assert (choice.first, choice.rule) == ("deepep", "dsv3-hopper")
    assert choice.extras == ("--moe-deepep-num-sms 20",)


def test_b02_seed_000_b200_takes_deepep_and_a_platform_may_have_hybridep() -> None:
    choice = choose_dispatcher(run_of(gpu="B200", ep=32))
    assert choice.first == "deepep"
    assert "hybridep" in choice.candidates
    assert "unless this platform has its own HybridEP" in said(choice)


def test_b03_seed_000_gb200_takes_hybridep_with_the_domain_of_its_ep() -> None:
    choice = choose_dispatcher(run_of(gpu="GB200", ep=64, core_version="0.16.1"))
    assert choice.first == "hybridep"
    assert choice.extras == (
        "NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN=64",
        "USE_MNNVL=1",
        "--segment 16",
        "--moe-hybridep-num-sms 16, then 32",
    )


def test_b04_seed_000_gb300_with_ep_32_has_32_ranks_a_domain() -> None:
    choice = choose_dispatcher(run_of(gpu="GB300", ep=32))
    assert choice.first == "hybridep"
    assert "NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN=32" in choice.extras
    assert "--segment 8" in choice.extras
    one_node = backend_extras(run_of(gpu="GB300", ep=4), "hybridep")
    assert not any("segment" in extra for extra in one_node)


@pytest.mark.parametrize("guidance", BOTH)
def test_b05_seed_000_an_unknown_gpu_in_bring_up_takes_alltoall(guidance: Guidance) -> None:
    choice = choose_dispatcher(run_of(stage="bring_up", guidance=guidance))
    assert (choice.first, choice.rule) == ("alltoall", "bring-up")
    assert "correctness first" in said(choice)


def test_b05_seed_000_an_unknown_gpu_of_a_tuned_run_takes_alltoall_and_asks_for_the_gpu_first() -> None:
    choice = choose_dispatcher(run_of())
    assert (choice.first, choice.rule) == ("alltoall", "unknown-gpu")
    assert choice.asks[0] == "--gpu-model"


@pytest.mark.parametrize("guidance", BOTH)
def test_b06_seed_000_bring_up_on_h100_takes_alltoall(guidance: Guidance) -> None:
    assert (
        choose_dispatcher(run_of(gpu="H100", ep=16, stage="bring_up", guidance=guidance)).first == "alltoall"
    )


def test_b07_a_small_ep_whose_experts_are_cut_across_nodes_is_not_small() -> None:
    assert choose_dispatcher(run_of(gpu="H100", ep=8, etp=2)).first == "deepep"


@pytest.mark.parametrize("gpu", ["H100", "B200", "GB200", None])
def test_b07_seed_000_small_ep_is_second_order(gpu: str | None) -> None:
    choice = choose_dispatcher(run_of(gpu=gpu, ep=4))
    assert (choice.first, choice.rule) == ("alltoall", "small-ep")
    assert "at small EP the dispatcher" in said(choice)
    assert ("deepep" in choice.candidates) is (gpu != "GB200")


def test_b08_seed_000_medium_ep_on_h100_often_pays_for_deepep() -> None:
    choice = choose_dispatcher(run_of(gpu="H100", ep=16, family="other"))
    assert (choice.first, choice.rule) == ("deepep", "medium-ep")
    assert "often becomes worthwhile" in said(choice)


def test_b09_seed_000_large_ep_on_gb200_takes_hybridep() -> None:
    choice = choose_dispatcher(run_of(gpu="GB200", ep=64, family="other", memory_tight=False))
    assert (choice.first, choice.rule) == ("hybridep", "large-ep-nvl72")
    assert choose_dispatcher(run_of(gpu="GB200", ep=32, family="other")).rule == "large-ep-nvl72"
    assert choose_dispatcher(run_of(gpu="GB200", ep=31, family="other")).rule == "nvl72"


def test_b10_seed_000_dsv3_on_gb200_takes_hybridep_more_so_as_ep_and_pp_grow() -> None:
    choice = choose_dispatcher(run_of(gpu="GB200", ep=64, pp=4, family="dsv3"))
    assert (choice.first, choice.rule) == ("hybridep", "dsv3-nvl72")
    assert "more as EP and PP grow" in said(choice)


def test_b11_seed_000_dsv3_on_h100_takes_deepep() -> None:
    assert choose_dispatcher(run_of(gpu="H100", ep=32, family="dsv3")).first == "deepep"


def test_b12_seed_000_qwen3_235b_on_h100_the_two_guides_contradict_each_other() -> None:
    run = run_of(gpu="H100", ep=32, family="qwen3_235b")
    older = choose_dispatcher(run)
    assert older.first == "deepep"
    current = choose_dispatcher(run, "main-2026-08")
    assert (current.first, current.extras) == ("alltoall", ("--overlap-moe-expert-parallel-comm",))
    assert choose_dispatcher(newer(run)) == current


def test_b13_seed_000_qwen3_235b_on_gb200_takes_hybridep_for_memory_too() -> None:
    choice = choose_dispatcher(run_of(gpu="GB200", ep=32, family="qwen3_235b"))
    assert choice.first == "hybridep"
    assert choice.candidates == ("hybridep", "alltoall")
    assert [refusal.what for refusal in choice.refused] == ["deepep"]
    assert "needs less memory" in said(choice)


def test_b14_seed_000_qwen3_30b_on_h100_the_two_guides_contradict_each_other() -> None:
    run = run_of(gpu="H100", ep=16, family="qwen3_30b")
    choice, other = choose_dispatcher(run), choose_dispatcher(run, "main-2026-08")
    assert choice.first == "deepep"
    assert "save time too, but less" in said(choice)
    assert other.first == "hybridep"
    assert "fastest on 16 H100" in said(other)


@pytest.mark.parametrize("guidance", BOTH)
def test_b15_seed_000_qwen3_next_in_bf16_has_no_winner(guidance: Guidance) -> None:
    run = run_of(gpu="GB200", ep=32, family="qwen3_next", precision="bf16", guidance=guidance)
    choice = choose_dispatcher(run)
    assert choice.first is None
    assert choice.candidates == ("alltoall", "hybridep")


@pytest.mark.parametrize("guidance", BOTH)
@pytest.mark.parametrize("why", [{"precision": "mxfp8"}, {"precision": "bf16", "memory_tight": True}])
def test_b16_seed_000_qwen3_next_in_fp8_or_tight_memory_takes_hybridep(
    why: dict[str, object], guidance: Guidance
) -> None:
    choice = choose_dispatcher(
        run_by({"gpu": "GB200", "ep": 32, "family": "qwen3_next", "guidance": guidance} | why)
    )
    assert choice.first == "hybridep"
    assert "grouped GEMM" in said(choice)


def test_b17_seed_000_a_vlm_starts_simple_and_tests_hybridep_once_stable() -> None:
    run = run_of(gpu="GB200", ep=32, family="vlm", stage="bring_up")
    choice = choose_dispatcher(run)
    assert (choice.first, choice.candidates) == ("alltoall", ("alltoall", "hybridep"))
    assert "real vision data" in said(choice)
    assert choose_dispatcher(run_of(gpu="GB200", ep=32, family="vlm")).first == "hybridep"


def test_b21_seed_000_hybridep_on_h100_is_allowed_across_two_domains_of_eight() -> None:
    run = run_of(Observed(dispatcher="hybridep"), gpu="H100", ep=16, etp=1)
    assert refusals(run, ("hybridep",)) == ()
    extras = backend_extras(run, "hybridep")
    assert extras[:2] == ("NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN=8", "USE_MNNVL=0")
    notes = " ".join(backend_notes(run, "hybridep"))
    assert "depends on the topology" in notes
    assert "inter-node path" in notes
    current = choose_dispatcher(newer(run))
    assert (current.first, current.candidates) == (None, ("deepep", "hybridep"))
    assert set(extras) <= set(current.extras)


@pytest.mark.parametrize(
    ("core", "flag"), [("0.18.0", "--moe-deepep-num-sms 20"), ("0.19.0", "--moe-flex-dispatcher-num-sms 20")]
)
def test_b22_seed_000_deepep_starts_at_20_sms_which_is_rarely_best(core: str, flag: str) -> None:
    choice = choose_dispatcher(run_of(gpu="H100", ep=16, core_version=core))
    assert choice.extras == (flag,)
    assert "only a start" in said(choice)


def test_b22_the_b200_snapshot_of_dsv3_takes_24_sms() -> None:
    choice = choose_dispatcher(run_of(gpu="B200", ep=32, family="dsv3", core_version="0.17.0"))
    assert choice.extras == ("--moe-deepep-num-sms 24",)


def test_b23_seed_000_hybridep_sweeps_from_16_sms_to_the_32_of_the_harness() -> None:
    choice = choose_dispatcher(run_of(gpu="GB200", ep=64, core_version="0.16.0"))
    assert choice.extras[-1] == "--moe-hybridep-num-sms 16, then 32"
    assert "only a start" in said(choice)


@pytest.mark.parametrize("guidance", BOTH)
def test_b24_seeds_002_and_003_communication_that_does_not_show_changes_no_dispatcher(
    guidance: Guidance,
) -> None:
    run = run_of(Observed(dispatcher="alltoall"), {"ep_a2a": 9}, gpu="GB200", ep=64, guidance=guidance)
    choice = choose_dispatcher(run)
    assert (choice.first, choice.candidates, choice.rule) == ("alltoall", ("alltoall",), "not-first-knob")
    assert "cannot save much" in said(choice)
    visible = replace(run, cost_by_kind_ns={"communication": {"ep_a2a": 10}})
    assert choose_dispatcher(visible).first == "hybridep"


def test_b24_bring_up_is_not_about_speed() -> None:
    run = run_of(Observed(dispatcher="deepep"), {"ep_a2a": 1}, gpu="H100", ep=64, stage="bring_up")
    assert choose_dispatcher(run).first == "alltoall"


def test_b24_what_goes_with_another_dispatcher_is_left_out_where_the_present_one_stays() -> None:
    run = run_of(
        Observed(dispatcher="deepep"),
        {"ep_dispatch": 1},
        gpu="H100",
        ep=32,
        family="qwen3_235b",
        core_version="0.18",
    )
    assert choose_dispatcher(newer(run)).extras == ("--moe-deepep-num-sms 20",)


def test_b24_send_and_receive_that_may_be_experts_count_as_visible() -> None:
    run = run_of(Observed(dispatcher="alltoall"), {"ep_a2a": 5, "sendrecv_unresolved": 5}, gpu="GB200", ep=64)
    assert choose_dispatcher(run).first == "hybridep"


def test_b25_seed_000_after_a_change_to_low_precision_the_costs_are_measured_again() -> None:
    run = run_of(Observed(dispatcher="alltoall"), {"ep_a2a": 30}, gpu="H100", ep=32)
    assert "measure again" not in said(choose_dispatcher(given_too(run, precision="bf16")))
    assert "after a change of precision, measure again" in said(
        choose_dispatcher(given_too(run, precision="fp8_blockwise"))
    )


def test_b26_seed_000_on_gb200_binding_comes_before_a_swap() -> None:
    run = run_of(Observed(dispatcher="alltoall"), gpu="GB200", ep=64, cpu_bound_to_numa=False)
    assert choose_dispatcher(run).before == ("HST-1",)
    assert choose_dispatcher(replace(run, given=replace(run.given, cpu_bound_to_numa=True))).before == ()
    unknown = choose_dispatcher(replace(run, given=replace(run.given, cpu_bound_to_numa=None)))
    assert unknown.before == ()
    assert "--cpu-bound-to-numa" in unknown.asks
    assert choose_dispatcher(replace(run, observed=Observed(dispatcher="hybridep"))).before == ()


def test_b27_seed_000_a_poor_pipeline_layout_comes_before_a_swap() -> None:
    shown = Observed(dispatcher="alltoall")
    layout_first = run_of(shown, {"ep_a2a": 15, "pp_p2p": 16}, gpu="H100", ep=32)
    assert choose_dispatcher(layout_first).before == ("COM-6",)
    as_much = run_of(shown, {"ep_a2a": 16, "pp_p2p": 16}, gpu="H100", ep=32)
    assert choose_dispatcher(as_much).before == ()


def test_b28_seed_000_graphs_of_a_dropless_run_by_both_guides() -> None:
    run = run_of(Observed(moe=True), routing="dropless")
    assert choose_graphs(run).modules == ("attn", "moe_router", "moe_preprocess")
    assert choose_graphs(run, "main-2026-08").modules == ("moe_router", "moe_preprocess")


def test_b29_seed_000_a_wrong_domain_on_gb200_is_named_before_any_tuning() -> None:
    for ranks, right in (("8", False), ("32", True)):
        run = run_of(gpu="GB200", ep=32, env=(f"NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN={ranks}",))
        assert run.config.right_topology is right


@pytest.mark.parametrize("family", ["qwen3_235b", "qwen3_30b", "qwen3_next"])
def test_b30_seed_000_tight_memory_keeps_hybridep_though_it_saves_little_time(family: str) -> None:
    shown = Observed(dispatcher="hybridep")
    run = run_of(shown, {"ep_dispatch": 2}, gpu="GB200", ep=32, family=family, memory_tight=True)
    choice = choose_dispatcher(run)
    assert (choice.first, choice.rule) == ("hybridep", "memory-tight")
    assert "needs less memory" in said(choice)
    swap = replace(run, observed=Observed(dispatcher="alltoall"))
    assert choose_dispatcher(swap).first == "hybridep"


@pytest.mark.parametrize(
    ("framework", "overlap", "sms"),
    [
        ("megatron_lm", "--overlap-moe-expert-parallel-comm", "--moe-deepep-num-sms 20"),
        (
            "megatron_bridge",
            "comm_overlap.overlap_moe_expert_parallel_comm=true",
            "model.moe_deepep_num_sms=20",
        ),
    ],
)
def test_what_goes_with_a_dispatcher_is_spelled_for_the_framework(
    framework: Framework, overlap: str, sms: str
) -> None:
    known = Given(gpu="H100", family="qwen3_235b", core_version="0.17.1")
    run = replace(Run(given=known), settings=settings({}, "a", framework))
    assert overlap in choose_dispatcher(run).extras
    assert sms in backend_extras(run, "deepep")

"""Communication fixes: what each needs of a run, how it is spelled by version, and what it says of itself."""

from __future__ import annotations

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.fixes.change import sentences
from heuristics.fixes.facts import backend_to_set
from heuristics.fixes.fix import Fix
from heuristics.run.run import Run
from tests.doubles.fixes import configured
from traces.names.kernels import COMM_KINDS
from traces.settings.settings import Value

COM_1 = CATALOGUE["COM-1"]
COM_2 = CATALOGUE["COM-2"]
COM_3 = CATALOGUE["COM-3"]
COM_4 = CATALOGUE["COM-4"]
COM_5 = CATALOGUE["COM-5"]
COM_6 = CATALOGUE["COM-6"]
COM_10 = CATALOGUE["COM-10"]
COM_11 = CATALOGUE["COM-11"]
FIXES = (COM_1, COM_2, COM_3, COM_4, COM_5, COM_6, COM_10, COM_11)


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
    assert fix.wall == "communication"
    assert set(fix.kinds) <= set(COMM_KINDS)
    assert (knobs.megatron_lm and knobs.megatron_bridge) or sentences(fix.change(Run()), Run())
    assert all(flag.startswith("--") for flag in knobs.megatron_lm)
    assert all(override.split("=")[0].count(".") == 1 for override in knobs.megatron_bridge)
    assert fix.sources
    assert fix.verify
    assert fix.versions
    assert all(gain.source for gain in fix.gains)


@pytest.mark.parametrize("fix", [one for one in FIXES if one is not COM_11], ids=lambda fix: fix.id)
def test_nothing_is_met_or_unmet_where_nothing_is_known(fix: Fix) -> None:
    assert {one.state for one in fix.preconditions(Run())} == {"unknown"}


@pytest.mark.parametrize("fix", FIXES, ids=lambda fix: fix.id)
def test_whatever_is_unknown_says_what_would_tell(fix: Fix) -> None:
    run = Run(Observed(dispatcher="hybridep", moe=True), Given(gpu="GB200"))
    for known in (run, Run()):
        assert not [one.text for one in fix.preconditions(known) if one.state == "unknown" and not one.cure]


SEED_H100 = Given(gpu="H100", ep=64, tp=1, guidance="seed", flex_package=True, routing="dropless")


def test_the_dispatcher_of_the_guide_is_set_with_its_type() -> None:
    knobs = COM_2.knobs(Run(Observed(dispatcher="alltoall"), SEED_H100))
    assert knobs.megatron_lm[:2] == (
        "--moe-token-dispatcher-type flex",
        "--moe-flex-dispatcher-backend deepep",
    )
    assert "model.moe_flex_dispatcher_backend=deepep" in knobs.megatron_bridge
    assert knobs.bridge_harness == ("--moe_flex_dispatcher_backend deepep",)


def test_deepep_has_a_switch_of_its_own_before_core_0_16() -> None:
    old = Given(gpu="H100", ep=64, tp=1, guidance="seed", flex_package=True, core_version="0.15.0")
    knobs = COM_2.knobs(Run(Observed(dispatcher="alltoall"), old))
    assert "--moe-enable-deepep" in knobs.megatron_lm
    assert "model.moe_enable_deepep=true" in knobs.megatron_bridge


def test_hybridep_comes_with_the_ranks_of_its_nvlink_domain() -> None:
    run = Run(Observed(dispatcher="alltoall"), Given(gpu="GB200", ep=64, tp=1, flex_package=True))
    knobs = COM_2.knobs(run)
    assert "--moe-flex-dispatcher-backend hybridep" in knobs.megatron_lm
    assert "NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN=64" in knobs.environment
    assert "USE_MNNVL=1" in knobs.environment


def test_without_a_winner_the_first_candidate_that_does_not_run_is_set() -> None:
    run = Run(Observed(dispatcher="deepep"), Given(gpu="B200", ep=64, tp=1, flex_package=True))
    assert backend_to_set(run) == "hybridep"


def test_a_run_that_should_stay_with_alltoall_gets_it_spelled_back() -> None:
    knobs = COM_2.knobs(Run(Observed(dispatcher="deepep"), Given(stage="bring_up")))
    assert knobs.megatron_lm == ("--moe-token-dispatcher-type alltoall",)
    assert knobs.bridge_harness == ("--moe_flex_dispatcher_backend None",)


def test_the_option_for_benchmarks_is_never_a_knob() -> None:
    knobs = COM_11.knobs(Run())
    assert not [flag for flag in knobs.megatron_lm + knobs.megatron_bridge if "force" in flag]


def test_the_sm_count_is_spelled_by_version_and_backend() -> None:
    newest = COM_3.knobs(Run(Observed(dispatcher="deepep")))
    older = COM_3.knobs(Run(Observed(dispatcher="deepep"), Given(core_version="0.18.0")))
    hybrid = COM_3.knobs(Run(Observed(dispatcher="hybridep"), Given(bridge_version="0.5.0")))
    assert newest.megatron_lm == ("--moe-flex-dispatcher-num-sms 24",)
    assert older.megatron_lm == ("--moe-deepep-num-sms 24",)
    assert older.megatron_bridge == ("model.moe_deepep_num_sms=24",)
    assert hybrid.megatron_lm == ("--moe-hybridep-num-sms 32",)


def test_hybridep_is_told_at_most_eight_ranks_on_nvl8() -> None:
    knobs = COM_3.knobs(Run(Observed(dispatcher="hybridep"), Given(gpu="H100", ep=16)))
    assert knobs.environment == ("NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN=8", "USE_MNNVL=0")


def test_virtual_stages_align_the_parameter_gathers() -> None:
    assert "ddp.align_param_gather=true" in COM_4.knobs(Run(given=Given(pp=4, vpp=2))).megatron_bridge
    assert "ddp.align_param_gather=true" not in COM_4.knobs(Run()).megatron_bridge


def test_one_hardware_queue_is_for_gpus_before_blackwell() -> None:
    assert COM_5.knobs(Run(given=Given(gpu="H100"))).environment == ("CUDA_DEVICE_MAX_CONNECTIONS=1",)
    assert COM_5.knobs(Run(given=Given(gpu="B200"))).environment == ()


def test_layouts_are_spelled_since_core_0_13() -> None:
    older, newer = Run(given=Given(core_version="0.12.0")), Run(given=Given(core_version="0.13.0"))
    assert state(COM_6, "Megatron-Core", newer) == "met"
    for run, flag in (
        (older, "--num-layers-per-virtual-pipeline-stage"),
        (newer, "--pipeline-model-parallel-layout"),
    ):
        assert COM_6.knobs(run).megatron_lm == ()
        (said,) = sentences(COM_6.change(run), run)
        assert said.startswith(f"Set {flag} ")


@pytest.mark.parametrize(("ep", "domain", "fitting"), [(64, 8, 8), (12, 8, 6), (7, 4, 1)])
def test_the_ep_that_fits_divides_the_one_there_is(ep: int, domain: int, fitting: int) -> None:
    knobs = COM_10.knobs(Run(given=Given(ep=ep, nvlink_domain=domain)))
    assert knobs.megatron_lm == (
        f"--expert-model-parallel-size {fitting}",
        "--expert-tensor-parallel-size 1",
    )


@pytest.mark.parametrize(
    ("given", "core"),
    [
        (Given(core_version="0.17.1"), "0.17.1"),
        (Given(core_version="0.17.1", bridge_version="0.6.0"), "0.17.1"),
        (Given(bridge_version="0.3.1"), "0.16.1"),
        (Given(bridge_version="v0.6.0"), "0.19.0"),
        (Given(bridge_version="0.9.0"), None),
        (Given(), None),
    ],
)
def test_the_core_is_the_one_given_else_that_of_the_bridge(given: Given, core: str | None) -> None:
    assert Run(given=given).config.core_text == core


def test_an_unknown_core_counts_as_the_newest() -> None:
    assert not Run().config.core_before("99.0")
    assert Run(given=Given(core_version="0.18.2")).config.core_before("0.19.0")
    assert not Run(given=Given(core_version="0.19.0")).config.core_before("0.19.0")


maybe = st.one_of(st.none(), st.booleans())
shares = st.one_of(st.none(), st.floats(0, 1))
sizes = st.one_of(st.none(), st.sampled_from([1, 2, 4, 7, 8, 32, 64, 96]))
RUNS = st.builds(
    Run,
    st.builds(
        Observed,
        moe=maybe,
        dispatcher=st.sampled_from(
            ["alltoall", "deepep", "hybridep", "ncclep", "allgather", "none", "unknown"]
        ),
        internode=maybe,
        ep_overlap=maybe,
        recompute_full=maybe,
        a2a_waiting_frac=shares,
    ),
    st.builds(
        Given,
        gpu=st.sampled_from([None, "A100", "H100", "B200", "B300", "GB200", "VR200", "L40"]),
        nvlink_domain=sizes,
        ep=sizes,
        tp=sizes,
        pp=sizes,
        vpp=sizes,
        stage=st.sampled_from([None, "bring_up", "tuned"]),
        routing=st.sampled_from([None, "dropless", "force_balance", "drop_pad"]),
        flex_package=maybe,
        cpu_bound_to_numa=maybe,
        core_version=st.sampled_from([None, "0.12.0", "0.15.3", "0.16.1", "0.18.0", "0.19.0"]),
        guidance=st.sampled_from(["seed", "main-2026-08"]),
    ),
)


@drawn(RUNS)
def test_whatever_is_known_the_knobs_are_spelled_and_the_unknown_has_a_cure(run: Run) -> None:
    for fix in FIXES:
        knobs = fix.knobs(run)
        has_it = fix.change(run).in_run(run).get("moe_token_dispatcher_type", ...) == run.active.dispatcher
        assert knobs.megatron_lm or knobs.megatron_bridge or has_it or sentences(fix.change(run), run)
        assert not [flag for flag in knobs.megatron_lm if "None" in flag or not flag.startswith("--")]
        assert not [one for one in fix.preconditions(run) if one.state == "unknown" and not one.cure]


@drawn(RUNS)
def test_a_dispatcher_that_runs_is_never_recommended(run: Run) -> None:
    backend = backend_to_set(run)
    running = state(COM_2, "is not in use yet", run)
    assert (running == "unmet") == (backend == run.observed.dispatcher)


def test_a_layout_that_equals_the_split_as_it_is_is_no_change() -> None:
    sizes: dict[str, Value] = {
        "num_layers": 94,
        "pipeline_model_parallel_size": 8,
        "virtual_pipeline_model_parallel_size": 4,
    }
    counted: dict[str, Value] = {
        "account_for_embedding_in_pipeline_split": True,
        "account_for_loss_in_pipeline_split": True,
    }
    fix = CATALOGUE["COM-6"]
    made = [
        any("is not set yet" in one.text for one in fix.preconditions(configured(sizes, more)))
        for more in (counted, {}, counted | {"num_layers": 96})
    ]
    assert made == [True, False, False]

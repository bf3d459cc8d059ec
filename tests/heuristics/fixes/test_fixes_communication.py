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


@pytest.mark.parametrize(
    ("run", "told"),
    [
        (Run(given=Given(ep=1)), "unmet"),
        (Run(given=Given(ep=8)), "met"),
        (Run(Observed(dispatcher="alltoall")), "met"),
        (Run(Observed(dispatcher="none")), "unmet"),
        (Run(Observed(moe=False)), "unmet"),
        (Run(Observed(dispatcher="allgather")), "unknown"),
        (Run(Observed(dispatcher="alltoall"), Given(ep=1)), "unmet"),
    ],
)
def test_experts_are_spread_by_what_was_given_else_by_the_dispatcher_that_runs(run: Run, told: str) -> None:
    for fix in (COM_1, COM_2, COM_10, COM_11):
        assert state(fix, "EP above 1", run) == told


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


@pytest.mark.parametrize(
    ("dispatcher", "told"), [("alltoall", "met"), ("deepep", "unmet"), ("unknown", "unknown")]
)
def test_a_dispatcher_that_runs_already_is_no_fix(dispatcher: str, told: str) -> None:
    assert state(COM_2, "is not in use yet", Run(Observed(dispatcher=dispatcher), SEED_H100)) == told


@pytest.mark.parametrize(("installed", "told"), [(True, "met"), (None, "unknown")])
def test_a_flex_backend_needs_its_package(installed: bool | None, told: str) -> None:
    given = Given(gpu="GB200", ep=64, tp=1, flex_package=installed)
    assert state(COM_2, "can be imported", Run(Observed(dispatcher="alltoall"), given)) == told


@pytest.mark.parametrize(
    ("core", "told"), [("0.16.0", "met"), ("0.12.0", "met"), ("0.11.0", "unmet"), (None, "unknown")]
)
def test_deepep_needs_the_core_that_has_it(core: str | None, told: str) -> None:
    given = Given(gpu="H100", ep=64, tp=1, guidance="seed", flex_package=True, core_version=core)
    assert state(COM_2, "Megatron-Core", Run(Observed(dispatcher="alltoall"), given)) == told


@pytest.mark.parametrize(("routing", "told"), [("dropless", "met"), (None, "unknown")])
def test_limits_of_a_backend_are_preconditions(routing: str | None, told: str) -> None:
    given = Given(gpu="H100", ep=64, tp=1, guidance="seed", flex_package=True)
    if routing is not None:
        given = SEED_H100
    assert state(COM_2, "pad expert inputs", Run(Observed(dispatcher="alltoall"), given)) == told


def test_binding_comes_before_the_dispatcher_where_the_guide_says_so() -> None:
    given = Given(gpu="GB200", ep=64, tp=1, flex_package=True, cpu_bound_to_numa=False)
    run = Run(Observed(dispatcher="alltoall"), given)
    assert (state(COM_2, "HST-1 is done", run), cure(COM_2, "HST-1 is done", run)) == (
        "unmet",
        "HST-1",
    )


@pytest.mark.parametrize(("waiting", "told"), [(0.2, "met"), (0.5, "met"), (0.6, "unmet"), (None, "unknown")])
def test_no_dispatcher_is_named_where_waiting_dominates(waiting: float | None, told: str) -> None:
    run = Run(Observed(a2a_waiting_frac=waiting))
    for fix in (COM_2, COM_3):
        assert state(fix, "waiting is at most", run) == told
    assert waiting is None or cure(COM_2, "waiting is at most", run) == "COM-11"


@pytest.mark.parametrize(
    ("waiting", "told"), [(0.6, "met"), (0.5, "unmet"), (0.2, "unmet"), (None, "unknown")]
)
def test_routing_is_balanced_only_where_waiting_dominates(waiting: float | None, told: str) -> None:
    assert state(COM_11, "waiting is more than", Run(Observed(a2a_waiting_frac=waiting))) == told


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (Given(routing="dropless"), "met"),
        (Given(routing="force_balance"), "unmet"),
        (Given(routing="drop_pad"), "unmet"),
        (Given(), "unknown"),
    ],
)
def test_routing_that_is_even_already_cannot_be_balanced(given: Given, told: str) -> None:
    assert state(COM_11, "forced to balance", Run(given=given)) == told


def test_the_option_for_benchmarks_is_never_a_knob() -> None:
    knobs = COM_11.knobs(Run())
    assert not [flag for flag in knobs.megatron_lm + knobs.megatron_bridge if "force" in flag]


@pytest.mark.parametrize(
    ("dispatcher", "told"),
    [("deepep", "met"), ("hybridep", "met"), ("alltoall", "unmet"), ("unknown", "unknown")],
)
def test_sms_are_given_to_flex_backends_only(dispatcher: str, told: str) -> None:
    run = Run(Observed(dispatcher=dispatcher))
    assert state(COM_3, "dispatches tokens", run) == told
    assert cure(COM_3, "dispatches tokens", run) == "COM-2"


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


def test_hybridep_asks_for_the_topology_it_is_told() -> None:
    unknown = Run(Observed(dispatcher="hybridep"), Given(gpu="GB200"))
    assert state(COM_3, "NVLink domain", unknown) == "unknown"
    assert cure(COM_3, "NVLink domain", unknown) == "--ep"
    assert COM_3.knobs(unknown).environment == ()
    assert (
        state(COM_3, "NVLink domain", Run(Observed(dispatcher="hybridep"), Given(gpu="GB200", ep=32)))
        == "met"
    )


@pytest.mark.parametrize(("active", "told"), [(True, "met"), (False, "unmet"), (None, "unknown")])
def test_data_parallel_overlap_needs_data_parallel_collectives(active: bool | None, told: str) -> None:
    assert state(COM_4, "collectives run", Run(Observed(dp_active=active))) == told


def test_virtual_stages_align_the_parameter_gathers() -> None:
    assert "ddp.align_param_gather=true" in COM_4.knobs(Run(given=Given(pp=4, vpp=2))).megatron_bridge
    assert "ddp.align_param_gather=true" not in COM_4.knobs(Run()).megatron_bridge


@pytest.mark.parametrize(
    ("text", "met", "unmet"),
    [
        ("overlap is active", Run(Observed(tp_overlap=False)), Run(Observed(tp_overlap=True))),
        ("(TP above 1)", Run(given=Given(tp=2)), Run(given=Given(tp=1))),
        ("(TP above 1)", Run(Observed(tp_active=True)), Run(Observed(tp_active=False))),
    ],
)
def test_tensor_parallel_overlap_needs_tensor_parallelism_without_it(text: str, met: Run, unmet: Run) -> None:
    assert (state(COM_5, text, met), state(COM_5, text, unmet)) == ("met", "unmet")


def test_a_known_transformer_engine_is_one_that_is_used() -> None:
    assert state(COM_5, "Transformer Engine", Run(given=Given(te_version="2.8"))) == "met"


def test_one_hardware_queue_is_for_gpus_before_blackwell() -> None:
    assert COM_5.knobs(Run(given=Given(gpu="H100"))).environment == ("CUDA_DEVICE_MAX_CONNECTIONS=1",)
    assert COM_5.knobs(Run(given=Given(gpu="B200"))).environment == ()


@pytest.mark.parametrize(
    ("run", "told"),
    [
        (Run(given=Given(pp=2)), "met"),
        (Run(given=Given(pp=1)), "unmet"),
        (Run(Observed(pp_active=True)), "met"),
        (Run(Observed(pp_active=True), Given(pp=1)), "unmet"),
        (Run(), "unknown"),
    ],
)
def test_a_layout_needs_pipeline_stages(run: Run, told: str) -> None:
    assert state(COM_6, "pipeline stages", run) == told


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


@pytest.mark.parametrize(
    ("run", "told"),
    [
        (Run(given=Given(gpu="H100", ep=16, etp=1)), "met"),
        (Run(given=Given(gpu="H100", ep=8, tp=4)), "met"),
        (Run(given=Given(gpu="H100", ep=8, etp=1)), "unmet"),
        (Run(given=Given(gpu="GB200", ep=64, etp=1)), "unmet"),
        (Run(Observed(internode=True), Given(gpu="H100")), "met"),
        (Run(Observed(internode=False)), "unmet"),
        (Run(Observed(internode=False), Given(gpu="H100", ep=16, etp=1)), "met"),
        (Run(given=Given(ep=16)), "unknown"),
    ],
)
def test_folding_needs_experts_spread_beyond_one_nvlink_domain(run: Run, told: str) -> None:
    assert state(COM_10, "NVLink domain", run) == told


@pytest.mark.parametrize(("ep", "domain", "fitting"), [(64, 8, 8), (12, 8, 6), (7, 4, 1)])
def test_the_ep_that_fits_divides_the_one_there_is(ep: int, domain: int, fitting: int) -> None:
    knobs = COM_10.knobs(Run(given=Given(ep=ep, nvlink_domain=domain)))
    assert knobs.megatron_lm == (
        f"--expert-model-parallel-size {fitting}",
        "--expert-tensor-parallel-size 1",
    )


@pytest.mark.parametrize(("tight", "told"), [(True, "unmet"), (False, "met"), (None, "unknown")])
def test_fewer_expert_ranks_need_memory(tight: bool | None, told: str) -> None:
    assert state(COM_10, "memory holds", Run(given=Given(memory_tight=tight))) == told


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


def test_an_unknown_gpu_is_asked_for_where_the_guide_keeps_alltoall() -> None:
    run = Run(Observed(dispatcher="alltoall"))
    assert state(COM_2, "is not in use yet", run) == "unmet"
    assert "--gpu-model" in cure(COM_2, "is not in use yet", run)


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

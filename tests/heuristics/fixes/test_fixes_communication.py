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


def test_without_a_winner_the_first_candidate_that_does_not_run_is_set() -> None:
    run = Run(Observed(dispatcher="deepep"), Given(gpu="B200", ep=64, tp=1, flex_package=True))
    assert backend_to_set(run) == "hybridep"


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

"""Overlap of expert all-to-all (COM-1): what Megatron asserts, where it does not pay, how it is spelled."""

from __future__ import annotations

import pytest

from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.fixes.precondition import Precondition
from heuristics.run.run import Run

COM_1 = CATALOGUE["COM-1"]

VIRTUAL = "virtual_pipeline_model_parallel_size, pipeline_model_parallel_layout"


def need(text: str, run: Run) -> Precondition:
    """The one precondition with this text in it."""
    (found,) = [one for one in COM_1.preconditions(run) if text in one.text]
    return found


def state(text: str, run: Run) -> str:
    return need(text, run).state


def cure(text: str, run: Run) -> str:
    return need(text, run).cure


@pytest.mark.parametrize(
    ("text", "met", "unmet"),
    [
        ("overlap is active", Run(Observed(ep_overlap=False)), Run(Observed(ep_overlap=True))),
        ("alltoall or flex", Run(Observed(dispatcher="deepep")), Run(Observed(dispatcher="allgather"))),
        ("BF16 or FP16", Run(given=Given(precision="bf16")), Run(given=Given(precision="fp32"))),
        ("with full recompute", Run(Observed(recompute_full=False)), Run(Observed(recompute_full=True))),
        ("PyTorch", Run(given=Given(torch_version="2.6.0")), Run(given=Given(torch_version="2.5.1"))),
        ("Megatron-Core", Run(given=Given(core_version="0.14.0")), Run(given=Given(core_version="0.13.1"))),
        ("virtual", Run(given=Given(pp=4, vpp=2)), Run(given=Given(pp=4, vpp=1))),
        ("virtual", Run(given=Given(pp=1)), Run(Observed(pp_active=True), Given(vpp=1))),
        ("virtual", Run(Observed(pp_active=False)), Run(given=Given(pp=2, vpp=1))),
    ],
)
def test_overlap_of_expert_all_to_all_needs_what_megatron_asserts(text: str, met: Run, unmet: Run) -> None:
    assert (state(text, met), state(text, unmet)) == ("met", "unmet")


def test_pipeline_stages_without_a_word_on_virtual_ones_are_unknown() -> None:
    run = Run(given=Given(pp=4))
    assert (state("virtual", run), cure("virtual", run)) == ("unknown", VIRTUAL)


def test_stages_without_virtual_ones_are_cured_by_a_layout() -> None:
    assert cure("virtual", Run(given=Given(pp=4, vpp=1))) == "COM-6"


def test_recompute_is_cured_by_the_selective_one() -> None:
    full = Run(Observed(recompute_full=True, recompute_modules=("moe",)))
    assert cure("with full recompute", full) == "MEM-2"
    assert cure("with recompute of moe", full) == "MEM-2"
    assert "MEM-9" in COM_1.excludes


def test_recompute_of_moe_was_allowed_beside_the_overlap_up_to_core_0_16() -> None:
    older = Run(Observed(recompute_modules=("moe",)), Given(core_version="0.16.1"))
    assert not [one for one in COM_1.preconditions(older) if "recompute of moe" in one.text]
    newer = Run(Observed(recompute_modules=("moe",)), Given(core_version="0.17.0"))
    assert state("with recompute of moe", newer) == "unmet"


@pytest.mark.parametrize(
    ("dispatcher", "told"), [("hybridep", "met"), ("alltoall", "unmet"), ("unknown", "unknown")]
)
def test_on_nvl72_the_overlap_waits_for_hybridep(dispatcher: str, told: str) -> None:
    run = Run(Observed(dispatcher=dispatcher), Given(gpu="GB200"))
    assert state("HybridEP is in use", run) == told
    assert cure("HybridEP is in use", run) == "COM-2"
    hopper = Run(Observed(dispatcher=dispatcher), Given(gpu="H100"))
    assert not [one for one in COM_1.preconditions(hopper) if "HybridEP is in use" in one.text]


def test_a_small_ep_with_alltoall_asks_for_the_number_of_nodes() -> None:
    small = Run(Observed(dispatcher="alltoall"), Given(ep=4))
    assert state("more than two nodes", small) == "unknown"
    large = Run(Observed(dispatcher="alltoall"), Given(ep=8))
    assert not [one for one in COM_1.preconditions(large) if "more than two nodes" in one.text]


@pytest.mark.parametrize(
    ("run", "connections"),
    [
        (Run(Observed(dispatcher="alltoall"), Given(gpu="H100")), 8),
        (Run(Observed(dispatcher="hybridep"), Given(gpu="H100")), 32),
        (Run(Observed(dispatcher="alltoall"), Given(gpu="B200")), 32),
    ],
)
def test_the_overlap_needs_several_hardware_queues(run: Run, connections: int) -> None:
    assert COM_1.knobs(run).environment == (f"CUDA_DEVICE_MAX_CONNECTIONS={connections}",)


def test_the_overlap_warns_that_tp_wants_one_hardware_queue_before_blackwell() -> None:
    assert any("CUDA_DEVICE_MAX_CONNECTIONS" in effect and "TP" in effect for effect in COM_1.side_effects)


def test_the_harness_flag_that_adds_delayed_weight_gradients_is_not_used() -> None:
    assert "--moe_a2a_overlap true" not in COM_1.knobs(Run()).bridge_harness

"""The rules of NVIDIA's guides one by one: seeds 001 and 004, expert-parallel overlap."""

from __future__ import annotations

import pytest

from heuristics.config.observed import Observed
from heuristics.fixes.catalogue import CATALOGUE
from tests.doubles.runs import given_too, run_by, shown_too, unmet

# ---- seeds 001 and 004: expert-parallel overlap ----

READY = run_by(
    {"ep": 8, "pp": 2, "vpp": 2, "torch_version": "2.6.0", "core_version": "0.18.0", "precision": "bf16"},
    Observed(moe=True, dispatcher="alltoall", ep_overlap=False, recompute_full=False, recompute_modules=()),
)


def test_seed_001_a_run_that_meets_every_prerequisite_may_overlap() -> None:
    assert unmet(CATALOGUE["COM-1"], READY) == []


@pytest.mark.parametrize("dispatcher", ["alltoall", "deepep", "hybridep"])
def test_seed_001_overlap_goes_with_alltoall_and_with_both_flex_backends(dispatcher: str) -> None:
    assert unmet(CATALOGUE["COM-1"], shown_too(READY, dispatcher=dispatcher)) == []


def test_seed_001_one_stage_needs_no_virtual_ones() -> None:
    assert unmet(CATALOGUE["COM-1"], given_too(READY, pp=1, vpp=None)) == []


def test_seeds_001_and_004_shared_expert_overlap_goes_off_with_it() -> None:
    knobs = CATALOGUE["COM-1"].knobs(READY)
    assert "comm_overlap.overlap_moe_expert_parallel_comm=true" in knobs.megatron_bridge
    assert "model.moe_shared_expert_overlap=false" in knobs.megatron_bridge


def test_seed_001_plain_overlap_is_tried_without_delayed_weight_gradients() -> None:
    assert "comm_overlap.delay_wgrad_compute=false" in CATALOGUE["COM-1"].knobs(READY).megatron_bridge

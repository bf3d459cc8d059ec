"""Fixes of the memory wall: what each needs, how it is spelled, and with what it must not go."""

from __future__ import annotations

import pytest

from heuristics.config.observed import Observed
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.fixes.fix import Fix
from heuristics.run.run import Run
from tests.doubles.fixes import given, need, states

MEM_1 = CATALOGUE["MEM-1"]
MEM_2 = CATALOGUE["MEM-2"]
MEM_4 = CATALOGUE["MEM-4"]
MEM_5 = CATALOGUE["MEM-5"]
MEM_6 = CATALOGUE["MEM-6"]
MEM_7 = CATALOGUE["MEM-7"]
MEM_8 = CATALOGUE["MEM-8"]
MEM_9 = CATALOGUE["MEM-9"]
CARDS = (MEM_1, MEM_2, MEM_4, MEM_5, MEM_6, MEM_7, MEM_8, MEM_9)


@pytest.mark.parametrize("fix", CARDS, ids=lambda fix: fix.id)
def test_nothing_unknown_refuses_a_memory_fix(fix: Fix) -> None:
    unmet = [one.text for one in fix.preconditions(Run()) if one.state == "unmet"]
    # an unknown GPU has no flex backend in the dispatcher guide
    assert unmet == [] or fix is MEM_5


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


def test_optimizer_offload_takes_fp8_gather_only_with_delayed_scaling() -> None:
    runs = [given(precision=name) for name in ("bf16", "fp8_delayed", "mxfp8", None)]
    assert states(MEM_7, "gathered in FP8", *runs) == ["met", "met", "unknown", "unknown"]
    assert {"MEM-4", "CMP-3"} <= set(MEM_7.excludes)


def test_full_recompute_is_the_last_resort() -> None:
    runs = [given(memory_tight=False), given(memory_tight=True), Run()]
    assert states(MEM_9, "does not fit", *runs) == ["unmet", "unknown", "unknown"]
    assert {"MEM-2", "MEM-6", "COM-1", "HST-3"} <= set(MEM_9.excludes)
    assert "MEM-9" in MEM_2.excludes

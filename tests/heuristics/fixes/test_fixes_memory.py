"""Fixes of the memory wall: what each needs, how it is spelled, and with what it must not go."""

from __future__ import annotations

from heuristics.config.observed import Observed
from heuristics.fixes.catalogue import CATALOGUE
from tests.doubles.fixes import given, need

MEM_2 = CATALOGUE["MEM-2"]
MEM_9 = CATALOGUE["MEM-9"]


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

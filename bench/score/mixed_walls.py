"""Walls together, behind each other, none, and captures that show less than a whole run."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from bench.score.scenario import COMM, COMP, DENSE, HOST, MEM, PLAIN, TUNED, Scenario
from bench.simulate.recorded import View

_STEPS: Final = View()
_BARE: Final = View(ranges="none")
_TWO_STEPS: Final = replace(_BARE, begin_frac=1.0, end_frac=1.0)
"""Megatron's own capture: two whole steps out of a run, and no range that names them."""
_EVERY: Final = replace(
    PLAIN,
    dispatch_us=500.0,
    python_us=20.0,
    recompute="full",
    expert_tile_count=60,
    graph_attention=True,
    graph_router=True,
)
"""Every handicap, and graphs: what a broken capture can hide."""

TWO_WALLS: Final = (
    Scenario("exchange and recompute", COMM, replace(PLAIN, dispatch_us=230, recompute="full"), MEM),
    Scenario(
        "exchange and garbage collection",
        COMM,
        replace(PLAIN, dispatch_us=400, gc_pause_ms=3.5, gc_per_layer_frac=0.9, end_of_step="read_back"),
        HOST,
    ),
    Scenario("exchange and few tiles", COMM, replace(PLAIN, dispatch_us=400, expert_tile_count=60), COMP),
    Scenario("recompute and few tiles", MEM, replace(TUNED, recompute="full", expert_tile_count=70), COMP),
    Scenario(
        "recompute and a starved loader",
        MEM,
        replace(TUNED, recompute="full", data_stall_ms=8, end_of_step="read_back"),
        HOST,
    ),
    Scenario(
        "few tiles and a starved loader",
        COMP,
        replace(TUNED, expert_tile_count=60, data_stall_ms=11, end_of_step="read_back"),
        HOST,
    ),
    Scenario(
        "pipeline bubbles and offload",
        COMM,
        replace(TUNED, pipeline_us=60, pipeline_bubble_us=9_000, offload_mib=32, host_link_gb_per_s=25),
        MEM,
    ),
    Scenario(
        "gradients after the backward and dense GEMMs of few tiles",
        COMM,
        replace(TUNED, gradient_overlap=False, gradient_us=800, dense_tile_count=70),
        COMP,
    ),
    Scenario(
        "all-gather and recompute on an A100",
        COMM,
        replace(PLAIN, gpu="A100", dispatcher="allgather", dispatch_us=700, recompute="moe"),
        MEM,
    ),
    Scenario(
        "DeepEP late and few tiles",
        COMM,
        replace(PLAIN, dispatcher="deepep", dispatch_us=120, peer_late_us=200, expert_tile_count=60),
        COMP,
    ),
)

MASKED: Final = (
    Scenario(
        "exchange behind a host that is later",
        HOST,
        replace(TUNED, gpu="GB200", python_us=40, dispatch_us=150, token_sync=False),
        masked=COMM,
    ),
    Scenario(
        "host behind the exchange",
        COMM,
        replace(TUNED, gpu="H100", dispatch_us=1_000, python_us=56, token_sync=False),
        masked=HOST,
    ),
    Scenario(
        "few tiles behind a host that is later",
        HOST,
        replace(TUNED, gpu="GB200", python_us=75, expert_tile_count=60, token_sync=False),
        masked=COMP,
    ),
    Scenario(
        "host behind few tiles",
        COMP,
        replace(TUNED, expert_tile_count=16, python_us=60, token_sync=False),
        masked=HOST,
    ),
    Scenario(
        "exchange under few tiles",
        COMP,
        replace(
            TUNED,
            ep_overlap=True,
            microbatch_count=4,
            layer_count=3,
            expert_tile_count=24,
            dispatch_us=300,
            token_sync=False,
        ),
        masked=COMM,
    ),
)

HEALTHY_RUNS: Final = (
    Scenario(
        "exchange hidden behind the other microbatch",
        None,
        replace(TUNED, ep_overlap=True, microbatch_count=3),
    ),
    Scenario("DeepEP within one domain", None, replace(TUNED, dispatcher="deepep")),
    Scenario(
        "HybridEP, captured in part",
        None,
        replace(TUNED, dispatcher="hybridep", graph_attention=True, graph_router=True, graph_preprocess=True),
    ),
    Scenario("eight microbatches", None, replace(TUNED, microbatch_count=8, layer_count=2)),
    Scenario(
        "long kernels on a GB200",
        None,
        replace(
            TUNED,
            gpu="GB200",
            attention_us=400,
            dense_gemm_us=500,
            expert_gemm_us=1_100,
            python_us=1.5,
            token_sync=False,
        ),
    ),
    Scenario("norms and activations again, which is cheap", None, replace(TUNED, recompute="norm_act")),
    Scenario("two optimizers", None, replace(TUNED, optimizers="two_adams", dispatcher="allgather")),
)

DENSE_RUNS: Final = (
    Scenario("dense and tuned", None, DENSE),
    Scenario("dense, tensor parallel", COMM, replace(DENSE, tensor_parallel_us=120)),
    Scenario("dense, slow Python", HOST, replace(DENSE, gpu="GB200", python_us=45, api_us=5)),
    Scenario("dense, every layer again", MEM, replace(DENSE, recompute="full")),
    Scenario("dense, few tiles", COMP, replace(DENSE, dense_tile_count=60)),
    Scenario("dense, on an A100", None, replace(DENSE, gpu="A100")),
)

TWO_STEPS: Final = (
    Scenario(
        "two steps of an all-to-all across nodes",
        COMM,
        replace(PLAIN, step_count=4, dispatch_us=600, peer_late_us=30),
        view=_TWO_STEPS,
    ),
    Scenario(
        "two steps of slow Python",
        HOST,
        replace(TUNED, step_count=4, gpu="GB200", python_us=30, api_us=6),
        view=_TWO_STEPS,
    ),
    Scenario(
        "two steps of full recompute",
        MEM,
        replace(TUNED, step_count=4, recompute="full"),
        view=_TWO_STEPS,
    ),
    Scenario(
        "two steps of few tiles",
        COMP,
        replace(TUNED, step_count=4, expert_tile_count=48, optimizers="two_adams"),
        view=_TWO_STEPS,
    ),
    Scenario(
        "two tuned steps",
        None,
        replace(TUNED, step_count=4, ep_overlap=True, microbatch_count=3),
        view=_TWO_STEPS,
    ),
    Scenario(
        "two steps and no more",
        COMM,
        replace(PLAIN, step_count=2, dispatcher="hybridep", dispatch_us=400, end_of_step="read_back"),
        view=_BARE,
    ),
)

BROKEN_RUNS: Final = (
    Scenario("no calls", COMM, _EVERY, view=replace(_STEPS, calls=False)),
    Scenario("replays not recorded", COMM, _EVERY, view=replace(_STEPS, schema="2.9.1", graphs="graph")),
    Scenario("replays recorded whole", COMM, _EVERY, view=replace(_STEPS, graphs="graph")),
    Scenario("no GPU table", COMM, _EVERY, view=replace(_STEPS, gpu_table=False)),
    Scenario("clocks 325 ms apart", COMM, _EVERY, view=_STEPS, damage="clocks +325"),
    Scenario("clocks 156 ms apart", COMM, _EVERY, view=_STEPS, damage="clocks -156"),
    Scenario(
        "begins and ends within steps",
        COMM,
        replace(PLAIN, step_count=4, dispatch_us=600),
        view=replace(_BARE, begin_frac=0.6, end_frac=0.5),
    ),
    Scenario(
        "old schema without events, cut on both sides",
        COMM,
        replace(PLAIN, step_count=4, dispatch_us=600),
        view=View(schema="2.9.1", ranges="none", events=False, begin_frac=0.4, end_frac=0.3),
    ),
)

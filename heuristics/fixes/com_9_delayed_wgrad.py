"""COM-9: weight gradients later, where expert all-to-all of backward has nothing to hide under.

Changes backward under the overlap: gradients of weights are computed apart from those of activations, beside
the dispatch of the next layer. Helps, if at all, after COM-1 has been measured alone, and where backward's
all-to-all is still exposed. Refused without the overlap, without Transformer Engine's layers, and, with CUDA
graphs, by older Transformer Engines and attention bias.
"""

from __future__ import annotations

from typing import Final

from heuristics.fixes.fix import Fix, Gain, Knobs, Precondition
from heuristics.fixes.preconditions import already_so, at_least, evident, holds, is_not, kept_in_section
from heuristics.guides.facts import EP_KINDS
from heuristics.guides.graph_modules import captured_alone, replays
from heuristics.guides.recompute_modules import has_shared_experts
from heuristics.run.run import Run

_FUSION: Final = "gradient_accumulation_fusion"
_ALONE: Final = "2.8.0"
_GRAPHED: Final = "2.10.0"
_IN_GRAPH: Final = "2.12.0"


def knobs(run: Run) -> Knobs:
    """Switch it on; in Bridge beside the overlap, as that section overwrites the model's fields."""
    overlap = kept_in_section(run, "overlap_moe_expert_parallel_comm")
    return Knobs(
        megatron_lm=("--delay-wgrad-compute",),
        megatron_bridge=("comm_overlap.delay_wgrad_compute=true", *overlap),
        bridge_harness=("--moe_a2a_overlap true",),
    )


def preconditions(run: Run) -> tuple[Precondition, ...]:
    """The strictest of what Megatron-Core, Megatron-LM and Megatron-Bridge ask for."""
    implementation, fused = run.config.first("transformer_impl"), run.config.on(_FUSION)
    needs = [
        *already_so("delay_wgrad_compute", run.config.overlap("delay_wgrad_compute") is True),
        evident(
            "expert all-to-all overlap is active, and was measured without it",
            run.active.ep_overlap,
            "COM-1 alone first, then a recording",
        ),
        at_least("Megatron-Core", run.config.core_text, "0.14.0", "--core-version"),
        holds(
            "layers are Transformer Engine's",
            None if implementation is None else implementation == "transformer_engine",
            "--transformer-impl transformer_engine",
        ),
        at_least("Transformer Engine", run.config.version_text("te"), _needed(run), "--te-version"),
        holds(
            "gradient_accumulation_fusion is on", fused, "gradient_accumulation_fusion of the configuration"
        ),
    ]
    if run.config.core_before("0.17.0"):
        legacy = run.config.on("moe_use_legacy_grouped_gemm")
        needs.append(
            is_not("grouped GEMM is not the legacy one", legacy, "--moe-use-legacy-grouped-gemm left out")
        )
    if captured_alone(run, "attn") is not False and replays(run) is not False:
        needs.append(
            is_not("attention has no bias, where a graph holds it", _bias(run), "--disable-bias-linear")
        )
    return tuple(needs)


def _needed(run: Run) -> str:
    """Transformer Engine for it: more beside graphs of parts, most where they hold weight gradients."""
    if replays(run) is not True or run.config.graph_impl not in (None, "transformer_engine"):
        return _ALONE
    held = [captured_alone(run, "attn")]
    if has_shared_experts(run) is not False and run.config.on("moe_shared_expert_overlap") is not True:
        held.append(captured_alone(run, "moe_router"))
    return _IN_GRAPH if True in held else _GRAPHED


def _bias(run: Run) -> bool | None:
    biases = [run.config.on(name) for name in ("add_bias_linear", "add_qkv_bias")]
    return True if True in biases else None if None in biases else False


FIX: Final = Fix(
    id="COM-9",
    wall="communication",
    title="Delay weight gradients to hide more of expert all-to-all",
    kinds=EP_KINDS,
    knobs=knobs,
    preconditions=preconditions,
    versions=(
        "Megatron-Core 0.13 and later, asserts the overlap since 0.14. moe_delay_wgrad_compute is no field "
        "of any release. Transformer Engine: 2.7 or 2.8 by the guide asked, 2.10 beside graphs of parts, "
        "2.12 where they hold attention or shared experts"
    ),
    gains=(
        Gain(
            "31.31 s to 31.20 s a step, which is noise: Qwen3-30B-A3B, 16 H100, EP16, alltoall, BF16",
            "Megatron-Bridge, skills/nemo-mbridge-perf-expert-parallel-overlap/SKILL.md",
        ),
    ),
    side_effects=(
        "inputs of linear layers are kept for longer: the peak of memory may rise",
        "gradient reduction of data parallelism starts later",
    ),
    excludes=("COM-14", "MEM-9"),
    verify="GEMMs of weight gradients run beside dispatch of backward, whose exposed part falls",
    sources=(
        (
            "Megatron-LM, megatron/core/transformer/transformer_config.py and megatron/training/arguments.py "
            "at d98e8a64"
        ),
        "Megatron-Bridge, src/megatron/bridge/training/comm_overlap.py at 067f987d",
        "Megatron-Bridge skill perf-expert-parallel-overlap",
    ),
)

"""COM-9: weight gradients later, where expert all-to-all of backward has nothing to hide under.

Changes backward under the overlap: gradients of weights are computed apart from those of activations, beside
the dispatch of the next layer. Helps, if at all, after COM-1 has been measured alone, and where backward's
all-to-all is still exposed. Refused without the overlap, without Transformer Engine's layers, and, with CUDA
graphs, by older Transformer Engines and attention bias.
"""

from __future__ import annotations

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix, Gain, Precondition
from heuristics.fixes.preconditions import already_so, holds, is_not, te_at_least
from heuristics.guides.facts import EP_KINDS
from heuristics.guides.graph_modules import captured_alone, replays
from heuristics.guides.recompute_modules import has_shared_experts
from heuristics.run.run import Run

_KNOB: Final = "delay_wgrad_compute"
_GRAPHED: Final = "2.10.0"
_IN_GRAPH: Final = "2.12.0"


def change(run: Run) -> Change:
    """Switch it on."""
    del run
    return Change({_KNOB: True}, harness=("--moe_a2a_overlap true",))


def advice(run: Run) -> tuple[Precondition, ...]:
    """The overlap measured alone, and what CUDA graphs ask for beside it."""
    needs = [
        *already_so(_KNOB, run.config.overlap(_KNOB) is True),
        holds(
            "expert all-to-all overlap is active, and was measured without it",
            run.active.ep_overlap,
            "COM-1 alone first, then a recording",
            blocks=True,
        ),
    ]
    if replays(run) and run.config.graph_impl in (None, "transformer_engine"):
        needs.append(te_at_least(run, _beside_graphs(run), " beside CUDA graphs"))
    if captured_alone(run, "attn") is not False and replays(run) is not False:
        biased = run.config.any_on("add_bias_linear", "add_qkv_bias")
        needs.append(is_not("attention has no bias, where a graph holds it", biased, "--disable-bias-linear"))
    return tuple(needs)


def _beside_graphs(run: Run) -> str:
    """Transformer Engine beside graphs of parts: most where they hold weight gradients."""
    held = [captured_alone(run, "attn")]
    if has_shared_experts(run) is not False and run.config.on("moe_shared_expert_overlap") is not True:
        held.append(captured_alone(run, "moe_router"))
    return _IN_GRAPH if True in held else _GRAPHED


FIX: Final = Fix(
    id="COM-9",
    wall="communication",
    title="Delay weight gradients to hide more of expert all-to-all",
    kinds=EP_KINDS,
    change=change,
    advice=advice,
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

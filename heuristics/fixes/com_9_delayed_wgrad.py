"""COM-9: weight gradients later, where expert all-to-all of backward has nothing to hide under.

Changes backward under the overlap: gradients of weights are computed apart from those of activations, beside
the dispatch of the next layer. Helps, if at all, after COM-1 has been measured alone, and where backward's
all-to-all is still exposed. Refused without the overlap, without Transformer Engine's layers, and, with CUDA
graphs, by older Transformer Engines and attention bias.
"""

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix, Gain
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import already_so, holds
from heuristics.guides.facts import EP_KINDS
from heuristics.run.run import Run

_KNOB: Final = "delay_wgrad_compute"


def change(run: Run) -> Change:
    """Switch it on."""
    del run
    return Change({_KNOB: True}, harness=("--moe_a2a_overlap true",))


def advice(run: Run) -> tuple[Precondition, ...]:
    """The overlap, measured alone."""
    text = "expert all-to-all overlap is active, and was measured without it"
    cure = "COM-1 alone first, then a recording"
    return (
        *already_so(_KNOB, run.config.overlap(_KNOB) is True),
        holds(text, run.active.ep_overlap, cure, blocks=True),
    )


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

"""COM-14: the experts' weight gradients under the dispatch of backward, with FSDP.

Changes backward of the experts: their weight gradients run on a stream of their own after those of
activations, while the dispatch of backward travels; FSDP's reduce-scatter waits for them. Helps where
Megatron-FSDP runs and the overlap of microbatches does not. Refused beside that overlap and beside delayed
weight gradients.
"""

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import already, expert_parallel, grouped_gemm, holds
from heuristics.guides.facts import EP_KINDS
from heuristics.run.run import Run

_KNOB: Final = "overlap_dispatch_backward_with_experts_wgrad"


def change(run: Run) -> Change:
    """Switch it on."""
    del run
    return Change({_KNOB: True})


def advice(run: Run) -> tuple[Precondition, ...]:
    """FSDP, where nothing else does the same."""
    return (
        *already(run, _KNOB),
        expert_parallel(run),
        holds(
            "Megatron-FSDP shards the model",
            run.config.on("ddp.use_megatron_fsdp"),
            told_by="use_megatron_fsdp of the configuration",
            blocks=True,
        ),
        grouped_gemm(run),
    )


FIX: Final = Fix(
    id="COM-14",
    wall="communication",
    title="Overlap the backward dispatch with experts' weight gradients",
    kinds=EP_KINDS,
    change=change,
    advice=advice,
    versions="Megatron-Core 0.18 and later, with Transformer Engine 2.3",
    side_effects=("FSDP's reduce-scatter of expert gradients starts later",),
    excludes=("COM-1", "COM-9"),
    verify="NVTX ranges delayed_expert_wgrad lie beside dispatch of backward, whose exposed part falls",
    sources=(
        (
            "Megatron-LM, megatron/core/model_parallel_config.py and "
            "megatron/core/transformer/transformer_config.py at d98e8a64"
        ),
    ),
)

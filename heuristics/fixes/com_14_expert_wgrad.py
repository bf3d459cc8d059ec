"""COM-14: the experts' weight gradients under the dispatch of backward, with FSDP.

Changes backward of the experts: their weight gradients run on a stream of their own after those of
activations, while the dispatch of backward travels; FSDP's reduce-scatter waits for them. Helps where
Megatron-FSDP runs and the overlap of microbatches does not. Refused beside that overlap and beside delayed
weight gradients.
"""

from __future__ import annotations

from typing import Final

from heuristics.fixes.fix import Fix, Knobs, Precondition
from heuristics.fixes.preconditions import already, at_least, evident, expert_parallel, holds, is_not
from heuristics.guides.facts import EP_KINDS
from heuristics.run.run import Run

_KNOB: Final = "overlap_dispatch_backward_with_experts_wgrad"


def knobs(run: Run) -> Knobs:
    """Switch it on."""
    del run
    return Knobs(
        megatron_lm=(f"--{_KNOB.replace('_', '-')}",),
        megatron_bridge=(f"model.{_KNOB}=true",),
    )


def preconditions(run: Run) -> tuple[Precondition, ...]:
    """FSDP, and neither of the two that do the same in other ways."""
    return (
        *already(run, _KNOB),
        expert_parallel(run),
        evident(
            "Megatron-FSDP shards the model",
            run.config.on("ddp.use_megatron_fsdp"),
            "use_megatron_fsdp of the configuration",
        ),
        is_not(
            "no expert all-to-all overlap",
            run.active.ep_overlap,
            "overlap_moe_expert_parallel_comm=false",
        ),
        is_not(
            "weight gradients are not delayed otherwise",
            run.config.overlap("delay_wgrad_compute"),
            "delay_wgrad_compute=false",
        ),
        holds("experts run as grouped GEMM", run.active.grouped_gemm, "CMP-1"),
        at_least("Megatron-Core", run.config.core_text, "0.18.0", "--core-version"),
        at_least("Transformer Engine", run.config.version_text("te"), "2.3.0", "--te-version"),
    )


FIX: Final = Fix(
    id="COM-14",
    wall="communication",
    title="Hide backward's dispatch under the experts' weight gradients",
    kinds=EP_KINDS,
    knobs=knobs,
    preconditions=preconditions,
    versions="Megatron-Core 0.18 and later, with Transformer Engine 2.3",
    gains=(),
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

"""MEM-12: attention's activations freed earlier in the overlapped schedule.

Changes the order within the overlap of expert all-to-all: backward of attention comes before the other
microbatch's experts, so that its activations are gone before theirs are made. Helps only where the overlap
runs and its peak does not fit. Part of the overlap is lost for it.
"""

from __future__ import annotations

from typing import Final

from heuristics.fixes.fix import Fix, Knobs, Precondition
from heuristics.fixes.preconditions import already, at_least, evident
from heuristics.run.run import Run

_KNOB: Final = "ep_overlap_early_attn_memory_release"


def knobs(run: Run) -> Knobs:
    """Switch it on."""
    del run
    return Knobs(
        megatron_lm=(f"--{_KNOB.replace('_', '-')}",),
        megatron_bridge=(f"model.{_KNOB}=true",),
    )


def preconditions(run: Run) -> tuple[Precondition, ...]:
    """The overlap whose peak it lowers."""
    return (
        *already(run, _KNOB),
        evident("expert all-to-all overlap is active", run.active.ep_overlap, "COM-1"),
        at_least("Megatron-Core", run.config.core_text, "0.16.0", "--core-version"),
    )


FIX: Final = Fix(
    id="MEM-12",
    wall="memory",
    title="Free attention's activations earlier under the overlap",
    kinds=(),
    knobs=knobs,
    preconditions=preconditions,
    versions="Megatron-Core 0.16 and later; it asserts the overlap of expert all-to-all",
    gains=(),
    side_effects=("combine of forward and dispatch of backward have nothing to hide under any more",),
    excludes=("MEM-9",),
    verify="allocated peak falls; how much expert all-to-all is exposed again says what it cost",
    sources=(
        (
            "Megatron-LM, megatron/core/model_parallel_config.py and "
            "megatron/core/transformer/transformer_config.py at d98e8a64"
        ),
    ),
    wins=("recompute", "allocator"),  # with room, both can go
)

"""MEM-12: attention's activations freed earlier in the overlapped schedule.

Changes the order within the overlap of expert all-to-all: backward of attention comes before the other
microbatch's experts, so that its activations are gone before theirs are made. Helps only where the overlap
runs and its peak does not fit. Part of the overlap is lost for it.
"""

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import already, overlapped
from heuristics.run.run import Run

_KNOB: Final = "ep_overlap_early_attn_memory_release"


def change(run: Run) -> Change:
    """Switch it on."""
    del run
    return Change({_KNOB: True})


def advice(run: Run) -> tuple[Precondition, ...]:
    """The overlap whose peak it lowers."""
    return (*already(run, _KNOB), overlapped(run))


FIX: Final = Fix(
    id="MEM-12",
    wall="memory",
    title="Free attention activations earlier during EP overlap",
    change=change,
    advice=advice,
    versions="Megatron-Core 0.16 and later; it asserts the overlap of expert all-to-all",
    side_effects=("combine of forward and dispatch of backward have nothing to hide under any more",),
    excludes=("MEM-9",),
    verify="allocated peak falls; the expert all-to-all that is exposed again is its cost",
    sources=(
        (
            "Megatron-LM, megatron/core/model_parallel_config.py and "
            "megatron/core/transformer/transformer_config.py at d98e8a64"
        ),
    ),
    wins=("recompute", "allocator"),  # with room, both can go
)

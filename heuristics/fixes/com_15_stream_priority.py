"""COM-15: communication's streams before compute's.

Changes the priority of the stream that overlapped expert all-to-all runs on, and of NCCL's: their blocks are
placed first as soon as SMs get free, so that a transfer starts when it can, not when a GEMM ends. Helps only
where the overlap runs and dispatch or combine start late.
"""

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import already, expert_parallel, overlapped
from heuristics.guides.facts import EP_KINDS
from heuristics.run.run import Run

_KNOB: Final = "high_priority_a2a_comm_stream"


def change(run: Run) -> Change:
    """Megatron's stream and NCCL's."""
    del run
    return Change({_KNOB: True, "env.TORCH_NCCL_HIGH_PRIORITY": "1"})


def advice(run: Run) -> tuple[Precondition, ...]:
    """The overlap, whose stream it is."""
    return (*already(run, _KNOB), expert_parallel(run), overlapped(run))


FIX: Final = Fix(
    id="COM-15",
    wall="communication",
    title="Give expert all-to-all a higher stream priority",
    kinds=EP_KINDS,
    change=change,
    advice=advice,
    versions=(
        "high_priority_a2a_comm_stream since Megatron-Core 0.18; TORCH_NCCL_HIGH_PRIORITY is PyTorch's, in "
        "every recipe of Megatron-Bridge's"
    ),
    side_effects=("GEMMs beside it wait for their SMs",),
    verify="dispatch and combine start sooner after what they wait for, exposed time falls",
    sources=(
        "Megatron-LM, megatron/core/transformer/transformer_config.py at d98e8a64",
        (
            "Megatron-Bridge, src/megatron/bridge/perf_recipes/environment.py and deepseek/common.py at "
            "067f987d"
        ),
    ),
)

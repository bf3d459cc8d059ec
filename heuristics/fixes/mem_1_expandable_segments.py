"""MEM-1: expandable segments of PyTorch's allocator.

Changes how the allocator takes memory from the driver: segments grow in place, so that freed pieces of odd
sizes fit again. Helps where steady steps allocate and free, or one rank runs out of memory while much of
what it reserved is not allocated: fragmentation, at no cost in speed. Forbidden beside NCCL user buffers.
With CUDA graphs of Transformer Engine, NCCL must not register graph buffers.
"""

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix, Form, Gain
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import is_not, no_user_buffers
from heuristics.guides.modules import replays
from heuristics.run.run import Run

_VARIABLE: Final = "PYTORCH_CUDA_ALLOC_CONF"
_EXPANDABLE: Final = "expandable_segments:True"


def change(run: Run) -> Change:
    """Environment of every rank; NCCL's goes with it unless it is known that no CUDA graph replays."""
    no_register = {} if replays(run) is False else {"env.NCCL_GRAPH_REGISTER": "0"}
    return Change({f"env.{_VARIABLE}": _EXPANDABLE, **no_register})


def advice(run: Run) -> tuple[Precondition, ...]:
    """A trace shows neither the environment nor how NCCL got its buffers."""
    allocator = run.config.first(f"env.{_VARIABLE}")
    fact = None if allocator is None else _EXPANDABLE in str(allocator)
    told = f"{_VARIABLE} in the run's environment"
    return is_not("expandable segments are not set yet", fact, told_by=told), no_user_buffers(run)


FIX: Final = Fix(
    id="MEM-1",
    wall="memory",
    with_room=True,
    title="Use expandable memory segments in PyTorch",
    kinds=("allocator",),
    change=change,
    advice=advice,
    versions=(
        "any Megatron release; NCCL_GRAPH_REGISTER=0 is asserted beside CUDA graphs of Transformer Engine"
    ),
    gains=(
        Gain(
            "out of memory to passing, at about 704 TFLOP/s per GPU as before: Llama3 70B SFT, 32 H100, FP8"
            " current scaling, TP4 PP4 VPP5 DP2, sequence 4096",
            "Megatron-Bridge, skills/nemo-mbridge-perf-memory-tuning/SKILL.md",
        ),
    ),
    side_effects=("CUDA graphs of Transformer Engine assert unless NCCL_GRAPH_REGISTER=0",),
    verify="no allocating or freeing calls in steady steps; reserved memory comes closer to allocated",
    sources=(
        "Megatron-Bridge skill perf-memory-tuning at 067f987d",
        "Megatron-Bridge, docs/performance-guide.md at 067f987d",
        "Megatron-LM, megatron/training/arguments.py at d98e8a64",
    ),
    direct=("allocator",),
    changes=lambda run: ("no_retries",),
    any_program=True,
    pytorch=Form(
        title="Use expandable memory segments in PyTorch",
        code=(),
        environment=("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",),
        verify="no cudaFree and cudaMalloc in steady steps",
        sources=("PyTorch, docs/source/notes/cuda.rst",),
        changes=lambda run: ("no_retries",),
    ),
)

"""HST-8: the optimizer's step as one CUDA graph.

Changes the optimizer's launches, which graphs of layers and of the iteration leave out, to one. Helps where
the host holds the optimizer back; no trace tells its launches from the step's others yet, so it comes last.
Experimental. Refused where the step decides anything on the host, as a part of it on the CPU does, and by
Megatron-FSDP 2.
"""

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import already, holds, is_not, no_second_fsdp, optimizer_is, training
from heuristics.run.run import Run

_KNOB: Final = "optimizer.optimizer_cuda_graph"


def change(run: Run) -> Change:
    """Switch it on."""
    del run
    return Change({_KNOB: True})


def advice(run: Run) -> tuple[Precondition, ...]:
    """A step of Adam that stays on the GPU."""
    late, told = "the host is late for launches of the optimizer", "NVTX ranges around the optimizer's step"
    on_cpu = run.config.on("optimizer.optimizer_cpu_offload")
    return (
        *already(run, _KNOB),
        training(run),
        holds(late, None, told_by=told),
        is_not("no part of the optimizer steps on the CPU", on_cpu, "--optimizer-cpu-offload left out"),
        optimizer_is(run, "the optimizer is Adam", "adam"),
        no_second_fsdp(run),
    )


FIX: Final = Fix(
    id="HST-8",
    wall="host_overhead",
    title="One CUDA graph for the optimizer's step",
    kinds=("launch", "python", "arrival"),
    change=change,
    advice=advice,
    versions="Megatron-Core 0.17 and later, experimental, for Adam",
    side_effects=(
        "captured buffers stay allocated",
        "a step that skips or decides by its gradients fails in capture or replay",
    ),
    excludes=("MEM-7",),
    verify="one graph launch in the optimizer's range, and no gaps in it",
    sources=(
        "Megatron-Bridge, docs/training/cuda-graphs.md at 067f987d",
        (
            "Megatron-LM, megatron/core/optimizer/optimizer_cuda_graph.py and megatron/training/training.py "
            "at d98e8a64"
        ),
        "Megatron-Bridge, src/megatron/bridge/training/config.py at 067f987d (not with Megatron-FSDP 2)",
    ),
)

"""HST-8: the optimizer's step as one CUDA graph.

Changes the optimizer's launches, which graphs of layers and of the iteration leave out, to one. Helps where
the host holds the optimizer back; no trace tells its launches from the step's others yet, so it comes last.
Experimental. Refused where the step decides anything on the host, as a part of it on the CPU does, and by
Megatron-FSDP 2.
"""

from __future__ import annotations

from typing import Final

from heuristics.fixes.fix import Fix, Knobs, Precondition
from heuristics.fixes.preconditions import already, at_least, holds, is_not
from heuristics.run.run import Run

_KNOB: Final = "optimizer.optimizer_cuda_graph"


def knobs(run: Run) -> Knobs:
    """Switch it on."""
    del run
    return Knobs(megatron_lm=("--optimizer-cuda-graph",), megatron_bridge=(f"{_KNOB}=true",))


def preconditions(run: Run) -> tuple[Precondition, ...]:
    """A step of Adam that stays on the GPU."""
    kind = run.config.first("optimizer.optimizer")
    return (
        *already(run, _KNOB),
        holds("it is a training step, with an optimizer", run.active.training, "record a whole step"),
        holds(
            "the host is late for launches of the optimizer", None, "NVTX ranges around the optimizer's step"
        ),
        at_least("Megatron-Core", run.config.core_text, "0.17.0", "--core-version"),
        is_not(
            "no part of the optimizer steps on the CPU",
            run.config.on("optimizer.optimizer_cpu_offload"),
            "--optimizer-cpu-offload left out",
        ),
        holds("the optimizer is Adam", None if kind is None else kind == "adam", "--optimizer adam"),
        is_not(
            "Megatron-FSDP 2 does not run",
            run.config.second_fsdp,
            "--megatron-fsdp-version 1",
        ),
    )


FIX: Final = Fix(
    id="HST-8",
    wall="host_overhead",
    title="One CUDA graph for the optimizer's step",
    kinds=("launch", "python", "arrival"),
    knobs=knobs,
    preconditions=preconditions,
    versions="Megatron-Core 0.17 and later, experimental, for Adam",
    gains=(),
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

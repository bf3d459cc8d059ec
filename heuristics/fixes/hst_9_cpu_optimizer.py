"""HST-9: less of the optimizer on the CPU.

Changes how much of the optimizer's state the CPU steps, and whether its copies overlap with that. Helps where
the GPU waits at the end of each step for the CPU between the copies of gradients and of weights. What comes
back to the GPU takes its memory there; nothing else forbids it.
"""

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix, Form, Gain
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import holds
from heuristics.run.run import Run
from traces.limits import Limit

LESS: Final = Limit(
    0.5,
    "of the fraction so far",
    "ours: Megatron-Bridge's skill perf-cpu-offloading measures about as much for every further quarter",
)
_OFFLOAD: Final = "optimizer.optimizer_cpu_offload"
_FRACTION: Final = "optimizer.optimizer_offload_fraction"


def change(run: Run) -> Change:
    """Half of the fraction, which is 1 where it is not set, with its copies overlapped."""
    now = run.config.first(_FRACTION)
    fraction = (float(now) if isinstance(now, int | float) else 1.0) * LESS.value
    return Change({_FRACTION: fraction, "optimizer.overlap_cpu_optimizer_d2h_h2d": True})


def advice(run: Run) -> tuple[Precondition, ...]:
    """That the CPU steps it is configured, or seen by its copies; whether memory has room nothing tells."""
    asked, seen = run.config.on(_OFFLOAD), run.seen_ns("host_overhead", ("cpu_optimizer",))
    steps = asked is not False and (asked or bool(seen))
    return (
        holds("the CPU steps the optimizer between its copies", steps),
        holds("memory has room for the state that comes back", None, told_by="--config FILE and --log FILE"),
    )


FIX: Final = Fix(
    id="HST-9",
    wall="host_overhead",
    title="Keep less of the optimizer on the CPU",
    kinds=("cpu_optimizer",),
    change=change,
    advice=advice,
    versions="every Megatron-Core release here; without --optimizer-cpu-offload none of it is on the CPU",
    gains=(
        Gain(
            "step 1.9, 2.5, 3.2 and 4.2 times as long at 25, 50, 75 and 100 % on the CPU, about 7 % less "
            "with overlapped copies: Qwen3-30B-A3B, 16 H100, TP2 PP2 EP4",
            "Megatron-Bridge, skills/nemo-mbridge-perf-cpu-offloading/card.yaml",
        ),
    ),
    side_effects=("the state that comes back takes memory of the GPU",),
    excludes=("MEM-7",),
    verify="the pause between the copies of gradients and of weights at the end of each step gets shorter",
    sources=(
        "Megatron-LM, megatron/training/arguments.py at d98e8a64",
        "Megatron-Bridge skill perf-cpu-offloading at 067f987d",
    ),
    pytorch=Form(
        title="Run the optimizer on the GPU",
        code=("no CPUOffloadPolicy for fully_shard, no CPUOffload for FSDP, no offload of the optimizer",),
        verify="no pause between the copies of gradients and of weights at the end of each step",
        sources=("PyTorch, torch/distributed/fsdp",),
        side_effects=("the optimizer's state takes memory of the GPU",),
        advice=advice,
    ),
)

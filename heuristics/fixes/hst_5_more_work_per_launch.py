"""HST-5: more work behind each launch: a larger micro-batch, less tensor parallelism.

Changes the shapes: kernels grow, launches a token fall. Helps where the host cannot keep up and kernels are
short. Needs memory for the larger activations. With pipeline stages fewer microbatches make the bubble
larger.
"""

from __future__ import annotations

from typing import Final

from heuristics.fixes.fix import Fix, Knobs, Precondition
from heuristics.fixes.preconditions import head_room, holds, tensor_parallel
from heuristics.run import Run
from traces.limits import Limit

SHORT: Final = Limit(
    0.5, "fraction of kernels under 10 us", "ours: below it most launches already carry enough work"
)


def knobs(run: Run) -> Knobs:
    """Twice the micro-batch (2N of the N there is), and half the tensor parallelism where there is some."""
    tp = run.given.tp
    halves = tensor_parallel(run) is True and (tp is None or tp % 2 == 0)
    half = "TP/2" if tp is None else tp // 2
    return Knobs(
        megatron_lm=("--micro-batch-size 2N", *((f"--tensor-model-parallel-size {half}",) if halves else ())),
        megatron_bridge=(
            "train.micro_batch_size=2N",
            *((f"model.tensor_model_parallel_size={half}",) if halves else ()),
        ),
        bridge_harness=(
            "--micro_batch_size 2N",
            *((f"--tensor_model_parallel_size {half}",) if halves else ()),
        ),
    )


def preconditions(run: Run) -> tuple[Precondition, ...]:
    """Short kernels, and memory. What a larger micro-batch takes cannot be told from the peak alone."""
    short = run.shown.short_kernel_frac
    return (
        holds(
            f"more than {SHORT.value:.0%} of the kernels run under 10 us",
            None if short is None else short > SHORT.value,
            "record kernels, not whole graphs" if short is None else "",
        ),
        head_room(run, None),
    )


FIX: Final = Fix(
    id="HST-5",
    wall="host_overhead",
    title="Give each launch more work",
    kinds=("launch", "python", "arrival"),
    knobs=knobs,
    preconditions=preconditions,
    versions=(
        "every release here; the global batch size must stay divisible by micro-batch and data parallelism"
    ),
    gains=(),
    side_effects=(
        "activations grow with the micro-batch, weights a rank with a smaller TP",
        "fewer microbatches: a larger pipeline bubble, and less for overlap of expert all-to-all to pair",
    ),
    excludes=(),
    verify="the median kernel gets longer, launches a step fall, launch_starved time falls",
    sources=(
        "Megatron-Bridge, docs/training/moe-optimization.md and docs/performance-guide.md at 067f987d",
        "Megatron-LM, megatron/core/transformer/moe/README.md at d98e8a64",
    ),
)

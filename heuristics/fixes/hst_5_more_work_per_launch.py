"""HST-5: more work behind each launch: a larger micro-batch, less tensor parallelism.

Changes the shapes: kernels grow, launches a token fall. Helps where the host cannot keep up and kernels are
short. Needs memory for the larger activations. With pipeline stages fewer microbatches make the bubble
larger.
"""

from __future__ import annotations

from typing import Final

from heuristics.fixes.batch import batch_needs, doubled
from heuristics.fixes.fix import Fix, Form, Knobs, Precondition
from heuristics.fixes.preconditions import head_room, holds, tensor_parallel
from heuristics.run.run import Run
from traces.limits import Limit

SHORT: Final = Limit(
    0.5, "fraction of kernels under 10 us", "ours: below it most launches already carry enough work"
)


def knobs(run: Run) -> Knobs:
    """Twice the micro-batch (2N of the N there is), and half the tensor parallelism where there is some."""
    batch = doubled(run)
    if not _halves(run):
        return batch
    half: int | str = run.config.tp // 2 if run.config.tp else "TP/2"
    alone = half == 1 and run.config.on("sequence_parallel")
    return Knobs(
        megatron_lm=(
            *batch.megatron_lm,
            f"--tensor-model-parallel-size {half}",
            *(("(leave out --sequence-parallel)",) if alone else ()),
        ),
        megatron_bridge=(
            *batch.megatron_bridge,
            f"model.tensor_model_parallel_size={half}",
            *(("model.sequence_parallel=false",) if alone else ()),
        ),
        bridge_harness=(*batch.bridge_harness, f"--tensor_model_parallel_size {half}"),
    )


def _halves(run: Run) -> bool:
    """Whether TP can go down: not to 1 where its overlap is on, which wants more."""
    tp = run.config.tp
    if tensor_parallel(run) is not True or (tp is not None and tp % 2):
        return False
    return not (tp == 2 and run.active.tp_overlap)


def preconditions(run: Run) -> tuple[Precondition, ...]:
    """Short kernels, and memory. What a larger micro-batch takes cannot be told from the peak alone."""
    short = run.active.short_kernel_frac
    return (
        holds(
            f"more than {SHORT.value:.0%} of the kernels run under 10 us",
            None if short is None else short > SHORT.value,
            "record kernels, not whole graphs" if short is None else "",
        ),
        head_room(run, None),
        *batch_needs(run, ranks_times=2 if _halves(run) else 1),
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
    pytorch=Form(
        title="Give each launch more work",
        code=("a larger batch on each GPU, with fewer steps of gradient accumulation",),
        verify="kernels get longer, and fewer for each sample",
        sources=("ours: the same launches for more samples",),
        side_effects=("a larger batch keeps more activations",),
        preconditions=lambda run: (
            holds("memory has room for a larger batch", None, "torch.cuda.max_memory_reserved()"),
        ),
    ),
)

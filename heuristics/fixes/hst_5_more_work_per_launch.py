"""HST-5: more work behind each launch: a larger micro-batch, less tensor parallelism.

Changes the shapes: kernels grow, launches a token fall. Helps where the host cannot keep up and kernels are
short. Needs memory for the larger activations. With pipeline stages fewer microbatches make the bubble
larger.
"""

from typing import Final

from heuristics.fixes.batch import batch_needs, doubled
from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix, Form
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import head_room, holds, larger_batch
from heuristics.run.run import Run
from traces.limits import Limit
from traces.settings.settings import Value
from traces.spelling import chosen

SHORT: Final = Limit(
    0.5, "fraction of kernels under 10 us", "ours: below it most launches already carry enough work"
)


def change(run: Run) -> Change:
    """Twice the micro-batch (2N of the N there is), and half the tensor parallelism where there is some."""
    return Change({**doubled(run), **half_tp(run)})


def half_tp(run: Run) -> dict[str, Value]:
    """Half the tensor parallelism, TP/2 where it is unknown; nothing where it cannot go down."""
    if not _halves(run):
        return {}
    half: Value = run.config.tp // 2 if run.config.tp else "TP/2"
    alone = half == 1 and run.config.on("sequence_parallel")
    off: dict[str, Value] = {"sequence_parallel": False} if alone else {}
    return {"tensor_model_parallel_size": half, **off}


def _halves(run: Run) -> bool:
    """Whether TP can go down: not to 1 where its overlap is on, which wants more."""
    tp = run.config.tp
    if run.config.tensor_parallel is not True or (tp is not None and tp % 2):
        return False
    return not (tp == 2 and run.active.tp_overlap)


def advice(run: Run) -> tuple[Precondition, ...]:
    """Short kernels, and memory. What a larger micro-batch takes cannot be told from the peak alone."""
    short = run.active.short_kernel_frac
    return (
        holds(
            f"more than {chosen(SHORT.value)} of the kernels run under 10 us",
            None if short is None else short > SHORT.value,
            told_by="record kernels, not whole graphs",
        ),
        head_room(run, None),
        *batch_needs(run, ranks_times=2 if _halves(run) else 1),
    )


FIX: Final = Fix(
    id="HST-5",
    wall="host_overhead",
    title="Give each launch more work",
    kinds=("launch", "python", "arrival"),
    change=change,
    advice=advice,
    versions=(
        "every release here; the global batch size must stay divisible by micro-batch and data parallelism"
    ),
    side_effects=(
        "activations grow with the micro-batch, weights a rank with a smaller TP",
        "fewer microbatches: a larger pipeline bubble, and less for overlap of expert all-to-all to pair",
    ),
    verify="the median kernel gets longer, launches a step fall, launch_starved time falls",
    sources=(
        "Megatron-Bridge, docs/training/moe-optimization.md and docs/performance-guide.md at 067f987d",
        "Megatron-LM, megatron/core/transformer/moe/README.md at d98e8a64",
    ),
    any_program=True,
    per_token=lambda run: True,
    pytorch=Form(
        title="Give each launch more work",
        code=("a larger batch on each GPU, with fewer steps of gradient accumulation",),
        inference=("a larger batch: more requests, or more tokens, in each pass",),
        per_token=True,
        verify="kernels get longer, and fewer for each sample",
        sources=("ours: the same launches for more samples",),
        side_effects=("a larger batch keeps more activations",),
        advice=larger_batch,
    ),
)

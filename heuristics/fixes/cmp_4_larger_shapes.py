"""CMP-4: larger shapes for each GEMM.

Changes how much one kernel multiplies: experts whole on their rank (ETP 1), fewer of them by a larger EP,
more tokens by a larger micro-batch. Helps where GEMMs have too few blocks to fill the GPU; on filled SMs it
is a lever. Forbidden without memory for larger activations; EP beyond one NVLink domain costs more in
traffic than shapes give.
"""

from typing import Final

from heuristics.config.sizes import experts_divide, wider_ep
from heuristics.fixes.batch import MICRO_BATCH, batch_needs, doubled
from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix, Form
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import head_room, holds, larger_batch
from heuristics.run.run import Run
from traces.names.kernels import compute_classes


def change(run: Run) -> Change:
    """ETP 1 where experts are cut; else twice the EP inside the domain; else twice the micro-batch."""
    if _experts_cut(run):
        return Change({"expert_tensor_parallel_size": 1})
    if ep := wider_ep(run):
        return Change({"expert_model_parallel_size": ep})
    return Change(doubled(run))


def _experts_cut(run: Run) -> bool:
    return run.active.moe is not False and (run.config.expert_tensor_size or 1) > 1


def advice(run: Run) -> tuple[Precondition, ...]:
    """What each of the three changes needs; memory is what a larger micro-batch takes."""
    if not _experts_cut(run) and (ep := wider_ep(run)):
        told = "num_moe_experts of the configuration"
        return (holds(f"EP {ep} divides the experts", experts_divide(run, ep), told_by=told),)
    return head_room(run, None), *(() if _experts_cut(run) else batch_needs(run))


FIX: Final = Fix(
    id="CMP-4",
    wall="compute",
    title="Use larger GEMM shapes",
    change=change,
    advice=advice,
    versions="every Megatron-Core release here; expert_tensor_parallel_size is TP where it is not set",
    side_effects=(
        (
            "a larger micro-batch keeps more activations, and leaves fewer microbatches: a larger pipeline "
            "bubble"
        ),
        "ETP 1 puts whole experts, and their optimizer state, on each rank",
        "a larger EP sends more of the tokens off the rank",
    ),
    verify="rows of each expert's GEMM grow, SM fill rises, kernels get fewer",
    sources=(
        (
            "Megatron-LM, megatron/core/transformer/moe/README.md at d98e8a64 (guideline 4, ETP of parallel"
            " folding)"
        ),
        "Megatron-Bridge, docs/training/moe-optimization.md at 067f987d",
        "Megatron-Bridge skill perf-moe-dispatcher-selection",
    ),
    direct=("gemm", "grouped_gemm", "attention", "convolution"),
    wins=compute_classes(),  # a larger FP32 GEMM does without tensor cores as well
    per_token=lambda run: MICRO_BATCH in change(run).set,
    pytorch=Form(
        title="Use larger GEMM shapes",
        code=("a larger batch on each GPU, with fewer steps of gradient accumulation",),
        inference=("a larger batch: more requests, or more tokens, in each pass",),
        per_token=True,
        verify="GEMMs have more rows, SM fill rises",
        sources=("ours: more rows are more blocks",),
        side_effects=("a larger batch keeps more activations",),
        advice=larger_batch,
    ),
)

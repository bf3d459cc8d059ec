"""MEM-17: a pipeline layout whose fullest stage holds less.

Changes which layers a stage holds, by the estimate of memory. Helps where one stage fills its GPU while
others have room: early stages hold activations of more microbatches, the last one the loss and MTP.
Forbidden beside the counts of layers for the first and last stage. COM-6 balances the same layout by time.
"""

from typing import Final

from heuristics.config.sizes import even_layout
from heuristics.fixes.change import Change
from heuristics.fixes.com_6_pp_layout import by_layout
from heuristics.fixes.fix import Fix
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import holds
from heuristics.guides.stage_memory import UNEVEN, stage_memory
from heuristics.run.run import Run
from traces.settings.spelling import LAYOUT
from traces.spelling import chosen, gigabytes

_SIZES: Final = "--config with the model's sizes, batch sizes and world size"


def change(run: Run) -> Change:
    """The layout whose fullest stage is estimated to hold least; of equal stages where none can be."""
    found = stage_memory(run)
    if found is not None:
        return by_layout(run, found.layout, found.virtual)
    return by_layout(run, *(even_layout(run) or (LAYOUT, 0)))


def advice(run: Run) -> tuple[Precondition, ...]:
    """Stages that the estimate shows to be uneven, and a layout that evens them."""
    stages = holds(
        "layers are cut into pipeline stages (PP above 1)", run.config.pipeline_parallel, "", "--pp"
    )
    found = stage_memory(run)
    if found is None:
        text = "the estimate of memory shows uneven stages"
        return stages, holds(text, None, told_by=_SIZES, blocks=True)
    uneven = (
        f"stages are uneven in memory: the fullest is estimated at {gigabytes(found.fullest)}, "
        f"the emptiest at {gigabytes(min(found.stages))}"
    )
    best = f"in its fullest stage: {gigabytes(found.best)}"
    less = f"another layout holds at least {chosen(UNEVEN.value)} less {best}"
    fits = found.freed >= UNEVEN.value * found.fullest
    return stages, holds(uneven, found.is_uneven, "MEM-8"), holds(less, fits, "MEM-8")


FIX: Final = Fix(
    id="MEM-17",
    wall="memory",
    title="Balance the memory of the pipeline stages",
    change=change,
    advice=advice,
    versions="pipeline_model_parallel_layout since Megatron-Core 0.13; COM-6 has its letters",
    side_effects=(
        "stages of unequal layers take unequal time: the longest one sets the pace",
        "checkpoints are cut by stage: load through a distributed one",
    ),
    excludes=("COM-6",),
    verify="allocated peaks of all pipeline ranks come closer, and the largest falls",
    sources=(
        "Megatron-Bridge, docs/training/moe-optimization.md at 067f987d: MTP and loss on stages of their own",
        "Megatron-LM, megatron/core/transformer/pipeline_parallel_layer_layout.py at d98e8a64",
        "ours: which layout, by the estimate of memory by stage",
    ),
)

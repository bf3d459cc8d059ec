"""COM-6: a pipeline layout whose stages take equal time, and virtual stages.

Changes which layers a stage holds. Helps where sends and receives between stages are exposed, or stages wait
at warm-up and cool-down; a bad layout erases what a better dispatcher gains. Forbidden beside the counts of
layers for the first and last stage. More virtual stages mean smaller bubbles and more transfers; without them
Megatron cannot hide the transfers at all.
"""

from typing import Final

from heuristics.config.sizes import OTHER_LAYOUTS, even_layout, present_layout, virtual_stages
from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import already_so, holds
from heuristics.run.run import Run
from traces.settings.settings import Value
from traces.settings.spelling import LAYOUT
from traces.settings.values import fullest_rank

_VIRTUAL: Final = "virtual_pipeline_model_parallel_size"
_LAYERS: Final = "num_layers_per_virtual_pipeline_stage"


def change(run: Run) -> Change:
    """Virtual stages that divide a rank's layers; where none do, or some are cut already, stages by name.

    LAYOUT and N are the model's, to be filled in; before 0.13 only equal stages can be asked for.
    """
    virtual, layout = _virtual(run), even_layout(run)
    if virtual is not None:
        return Change({_VIRTUAL: virtual}, megatron_lm=_without_others(run))
    if run.config.core_before("0.13.0"):
        filled_in = Change(megatron_lm={_LAYERS: "N"}, megatron_bridge={_VIRTUAL: "N"}, harness=())
        return filled_in if layout is None else Change()
    return by_layout(run, *(layout or (LAYOUT, 0)))


def by_layout(run: Run, named: str, virtual: int) -> Change:
    """Stages by name, with their number a rank where that is known (0: it is not)."""
    count: dict[str, Value] = {_VIRTUAL: virtual if virtual > 1 else None} if virtual else {}
    whole: dict[str, Value] = {"pipeline_model_parallel_layout": named, **_without_others(run)}
    return Change(whole, megatron_bridge=count, since="0.13.0")


def _without_others(run: Run) -> dict[str, Value]:
    return {name: None for name in OTHER_LAYOUTS if run.config.first(name) is not None}


def _virtual(run: Run) -> int | None:
    """Virtual stages to add, where there are none so far and layers divide."""
    return None if run.config.pp_layout or (run.config.vpp or 1) > 1 else virtual_stages(run)


def advice(run: Run) -> tuple[Precondition, ...]:
    """Pipeline stages, of which there may be virtual ones: those take microbatches in rounds."""
    stages, number, pp = run.config.pipeline_parallel, run.config.microbatches, run.config.pp
    cut = (
        holds("layers are cut into pipeline stages (PP above 1)", stages, told_by="--pp"),
        *already_so("pipeline_model_parallel_layout, with stages as even as they can be,", _is_made(run)),
    )
    if number is None or pp is None:
        return cut
    text = "the number of microbatches is a multiple of PP, as virtual stages need"
    return holds(text, number % pp == 0, "global_batch_size of the configuration"), *cut


def _is_made(run: Run) -> bool:
    """Whether a rank has no more to compute, by the split as it is, than one of the layout we name.

    Not where it would add the virtual stages that there are none of: they shorten warm-up and cool-down.
    """
    now, named = run.config.pp_layout or present_layout(run), even_layout(run)
    if now is None or named is None or run.config.pp is None or named[1] > (run.config.vpp or 1):
        return False
    own, best = fullest_rank(now, run.config.pp), fullest_rank(named[0], run.config.pp)
    return own is not None and best is not None and own <= best


FIX: Final = Fix(
    id="COM-6",
    wall="communication",
    title="Balance the pipeline stages, with virtual stages",
    kinds=("pp_p2p",),
    change=change,
    advice=advice,
    versions=(
        "pipeline_model_parallel_layout since Megatron-Core 0.13; of it, "
        "--num-virtual-stages-per-pipeline-rank and --num-layers-per-virtual-pipeline-stage only one may be "
        "set. E is the embedding, t a layer, m MTP, L the loss, | a border: Et*3|(tt|)*29m|L is "
        "DeepSeek-V3 on PP8 with 4 virtual stages"
    ),
    side_effects=(
        "more virtual stages, more sends and receives",
        "fewer layers a stage change the peak of memory by stage",
    ),
    excludes=("MEM-17",),
    verify="stages compute for equal time, waits at warm-up and cool-down shrink, exposed pp_p2p falls",
    sources=(
        (
            "Megatron-LM, megatron/core/transformer/transformer_config.py and megatron/training/arguments.py "
            "at d98e8a64"
        ),
        "Megatron-LM, megatron/core/transformer/moe/README.md at d98e8a64",
        "Megatron-Bridge, docs/training/moe-optimization.md at 067f987d",
    ),
)

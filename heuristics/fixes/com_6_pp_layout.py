"""COM-6: a pipeline layout whose stages take equal time, and virtual stages.

Changes which layers a stage holds. Helps where sends and receives between stages are exposed, or stages wait
at warm-up and cool-down; a bad layout erases what a better dispatcher gains. Forbidden beside the counts of
layers for the first and last stage. More virtual stages mean smaller bubbles and more transfers; without them
Megatron cannot hide the transfers at all.
"""

from __future__ import annotations

from typing import Final

from heuristics.config.sizes import even_layout, virtual_stages
from heuristics.fixes.fix import Fix, Knobs, Precondition
from heuristics.fixes.preconditions import asked, at_least, holds, pipeline_parallel
from heuristics.run.run import Run

_COUNT: Final = "--num-virtual-stages-per-pipeline-rank"
_COUNTS: Final = {
    "num_layers_in_first_pipeline_stage": "--decoder-first-pipeline-num-layers",
    "num_layers_in_last_pipeline_stage": "--decoder-last-pipeline-num-layers",
}
"""Field of Megatron-Core -> flag of Megatron-LM."""
_OTHERS: Final = {
    "num_layers_per_virtual_pipeline_stage": "--num-layers-per-virtual-pipeline-stage",
    **_COUNTS,
}


def knobs(run: Run) -> Knobs:
    """Virtual stages that divide a rank's layers; where none do, or some are cut already, stages by name.

    LAYOUT and N are the model's, to be filled in; before 0.13 only equal stages can be asked for.
    """
    virtual, layout = _virtual(run), even_layout(run)
    if virtual is not None:
        return _stages(virtual, run)
    if run.config.core_before("0.13.0"):
        return _stages("N", run) if layout is None else Knobs()
    named, stages = layout or ("LAYOUT", 0)
    size = stages if stages > 1 else "null"
    count_too = (f"model.virtual_pipeline_model_parallel_size={size}",) if stages else ()
    return Knobs(
        megatron_lm=(f'--pipeline-model-parallel-layout "{named}"', *_left_out(run)),
        megatron_bridge=(f'model.pipeline_model_parallel_layout="{named}"', *count_too, *_nulls(run)),
        bridge_harness=(f'--pipeline_model_parallel_layout "{named}"',),
    )


def _virtual(run: Run) -> int | None:
    """Virtual stages to add, where there are none so far and layers divide."""
    return None if run.config.pp_layout or (run.config.vpp or 1) > 1 else virtual_stages(run)


def _stages(size: int | str, run: Run) -> Knobs:
    flag = "--num-layers-per-virtual-pipeline-stage" if size == "N" else _COUNT
    return Knobs(
        megatron_lm=(f"{flag} {size}", *(() if size == "N" else _left_out(run))),
        megatron_bridge=(f"model.virtual_pipeline_model_parallel_size={size}",),
    )


def _left_out(run: Run) -> tuple[str, ...]:
    """Flags that say the same another way, of which Megatron-LM takes one only."""
    return tuple(
        f"(leave out {flag})" for name, flag in _OTHERS.items() if run.config.first(name) is not None
    )


def _nulls(run: Run) -> tuple[str, ...]:
    """The same in Megatron-Bridge, where a layout goes with no layer counts of single stages."""
    return tuple(f"model.{name}=null" for name in _COUNTS if run.config.first(name) is not None)


def preconditions(run: Run) -> tuple[Precondition, ...]:
    """Pipeline stages, of which there may be virtual ones."""
    stages = pipeline_parallel(run)
    return (
        *_interleaved(run),
        holds("layers are cut into pipeline stages (PP above 1)", stages, asked(stages, "--pp")),
        at_least("Megatron-Core", run.config.core_text, "0.13.0", "--core-version"),
    )


def _interleaved(run: Run) -> tuple[Precondition, ...]:
    """Virtual stages take microbatches in rounds of the stages; said where the sizes are known."""
    number, pp = run.config.microbatches, run.config.pp
    if number is None or pp is None:
        return ()
    text = "microbatches are a multiple of the stages, as virtual ones take them in rounds"
    return (holds(text, number % pp == 0, "global_batch_size of the configuration"),)


FIX: Final = Fix(
    id="COM-6",
    wall="communication",
    title="Balance the pipeline stages, with virtual stages",
    kinds=("pp_p2p",),
    knobs=knobs,
    preconditions=preconditions,
    versions=(
        "pipeline_model_parallel_layout since Megatron-Core 0.13; of it, "
        "--num-virtual-stages-per-pipeline-rank and --num-layers-per-virtual-pipeline-stage only one may be "
        "set. E is the embedding, t a layer, m MTP, L the loss, | a border: Et*3|(tt|)*29m|L is "
        "DeepSeek-V3 on PP8 with 4 virtual stages"
    ),
    gains=(),
    side_effects=(
        "more virtual stages, more sends and receives",
        "fewer layers a stage change the peak of memory by stage",
    ),
    excludes=(),
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

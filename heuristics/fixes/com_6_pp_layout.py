"""COM-6: a pipeline layout whose stages take equal time, and virtual stages.

Changes which layers a stage holds. Helps where sends and receives between stages are exposed, or stages wait
at warm-up and cool-down; a bad layout erases what a better dispatcher gains. Forbidden beside the counts of
layers for the first and last stage. More virtual stages mean smaller bubbles and more transfers; without them
Megatron cannot hide the transfers at all.
"""

from __future__ import annotations

from typing import Final

from heuristics.fixes.fix import Fix, Knobs, Precondition
from heuristics.fixes.preconditions import (
    asked,
    at_least,
    core_before,
    core_version,
    holds,
    pipeline_parallel,
)
from heuristics.run import Run


def knobs(run: Run) -> Knobs:
    """LAYOUT and N are the model's, to be filled in; before 0.13 only equal stages can be asked for."""
    if core_before(run, "0.13.0"):
        return Knobs(
            megatron_lm=("--num-layers-per-virtual-pipeline-stage N",),
            megatron_bridge=("model.virtual_pipeline_model_parallel_size=N",),
        )
    return Knobs(
        megatron_lm=('--pipeline-model-parallel-layout "LAYOUT"',),
        megatron_bridge=('model.pipeline_model_parallel_layout="LAYOUT"',),
        bridge_harness=('--pipeline_model_parallel_layout "LAYOUT"',),
    )


def preconditions(run: Run) -> tuple[Precondition, ...]:
    """Pipeline stages, and a layout that is not already given in another way."""
    stages = pipeline_parallel(run)
    return (
        holds("layers are cut into pipeline stages (PP above 1)", stages, asked(stages, "--pp")),
        at_least("Megatron-Core", core_version(run), "0.13.0", "--core-version"),
        holds(
            "no layer counts are set for the first or last stage",
            None,
            "num_layers_in_first_pipeline_stage and num_layers_in_last_pipeline_stage of the configuration",
        ),
    )


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

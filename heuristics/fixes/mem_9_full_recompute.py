"""MEM-9: recompute of whole layers.

Changes backward to run every layer's forward again, its all-to-all included; only layer inputs are kept.
The last resort: where selective recompute, low precision, offload and other parallel sizes still do not
fit. Forbidden with expert all-to-all overlap, with CUDA graphs other than of the full iteration, and with
layer-level CPU offloading.
"""

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import holds, is_not, no_layer_offload
from heuristics.guides.modules import replays
from heuristics.guides.recompute import choose_recompute
from heuristics.run.run import Run
from traces.cures import cure


def change(run: Run) -> Change:
    """Every layer; with `block` and fewer layers, only the first ones of each stage."""
    layers, stages = run.config.positive("num_layers"), run.config.pp
    each = layers // stages if layers and stages else "N"
    return Change(
        {"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1},
        harness=(f"--recompute_num_layers {each}",),
    )


def advice(run: Run) -> tuple[Precondition, ...]:
    """Nothing narrower is left, and what it asserts against is off."""
    shown = run.active
    narrower = choose_recompute(run).granularity != "full"
    return (
        is_not(
            "whole layers are not recomputed yet",
            shown.recompute_full,
            told_by=cure("threads", shown.recorder),
        ),
        holds(
            "selective recompute has been tried and does not fit",
            False if run.config.memory_tight is False else None if narrower else True,
            "MEM-2",
        ),
        is_not("no expert all-to-all overlap", shown.ep_overlap, "overlap_moe_expert_parallel_comm=false"),
        holds(
            "CUDA graphs are off, or of the whole iteration",
            True if replays(run) is False else run.config.full_iteration,
            "cuda_graph_impl=none",
        ),
        no_layer_offload(run),
    )


FIX: Final = Fix(
    id="MEM-9",
    wall="memory",
    title="Recompute whole layers",
    change=change,
    advice=advice,
    versions=(
        "every Megatron-Core release here; method and number of layers must be set. The harness's flag uses"
        " block"
    ),
    side_effects=(
        "about 30 % more compute",
        "dispatch and combine run three times per layer and microbatch instead of twice",
        "expert all-to-all overlap and CUDA graphs of single modules become impossible",
    ),
    excludes=("MEM-2", "MEM-6", "MEM-12", "COM-1", "COM-9", "HST-3"),
    verify="the run fits; every layer's forward runs twice",
    sources=(
        "Megatron-Bridge, docs/performance-guide.md at 067f987d",
        "Megatron-LM, megatron/core/transformer/transformer_config.py at d98e8a64",
        "Megatron-Bridge skill perf-activation-recompute",
    ),
    wins=("offload", "allocator"),
)

"""HST-7: forward and backward of a whole step as one CUDA graph.

Changes thousands of launches to one; the optimizer stays outside. Helps where the host holds back even the
parts that graphs of single modules cannot hold. Allowed only where no size is read back: without experts,
with drop-and-pad, or with HybridEP's fixed budgets (HST-6) and paged stash. NaN checks must be off, and
memory must hold up to twice the peak.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from heuristics.fixes import hst_6_fewer_syncs
from heuristics.fixes.fix import Fix, Knobs, Precondition
from heuristics.fixes.preconditions import (
    asked,
    at_least,
    head_room,
    holds,
    is_not,
    no_layer_offload,
    static_shapes,
)
from heuristics.guides.cuda_graphs import choose_graphs
from heuristics.guides.facts import is_sync_free
from heuristics.guides.graph_choice import graph_knobs
from heuristics.run.run import Run
from traces.cures import cure
from traces.limits import Limit

WHOLE: Final = Limit(
    0.8, "fraction of kernel work in CUDA graphs", "ours: all but the optimizer, which no such graph holds"
)
GROWTH: Final = Limit(
    1.5, "times the peak memory", "Megatron-Bridge skill perf-cuda-graphs: 1.5 to 2 times; the lower end here"
)


def knobs(run: Run) -> Knobs:
    """One graph, spelled for the version; dropless routing adds HST-6's budget and the stash it feeds."""
    core = run.config.core_text
    choice = replace(choose_graphs(run), impl="full_iteration", modules=())
    stash = _dropless(run) and not run.config.core_before("0.18.0")
    budget = hst_6_fewer_syncs.knobs(run) if stash else Knobs()
    return Knobs(
        megatron_lm=(
            *graph_knobs(choice, core, bridge=False),
            "--te-rng-tracker",
            "--no-check-for-nan-in-loss-and-grad",
            *budget.megatron_lm,
            *(("--moe-paged-stash",) if stash else ()),
        ),
        megatron_bridge=(
            *graph_knobs(choice, core, bridge=True),
            "model.use_te_rng_tracker=true",
            "rng.te_rng_tracker=true",
            "rerun_state_machine.check_for_nan_in_loss=false",
            "ddp.check_for_nan_in_grad=false",
            *budget.megatron_bridge,
            *(("model.moe_paged_stash=true",) if stash else ()),
        ),
        bridge_harness=("--cuda_graph_impl local", "--cuda_graph_scope full_iteration"),
    )


def preconditions(run: Run) -> tuple[Precondition, ...]:
    """Nothing read back in the step, shapes that stay, and memory for every buffer at once."""
    peak, whole = run.active.peak_bytes, _is_whole(run)
    return (
        holds("no expert size goes back to the host", _sizes_stay(run), _sizes_cure(run)),
        is_not(
            "no graph of the whole step runs yet", whole, asked(whole, cure("graphs", run.active.recorder))
        ),
        static_shapes(run),
        no_layer_offload(run),
        at_least(
            "Megatron-Core",
            run.config.core_text,
            "0.18.0" if _dropless(run) else "0.15.0",
            "--core-version",
        ),
        head_room(run, None if peak is None else peak * (GROWTH.value - 1)),
    )


def _dropless(run: Run) -> bool:
    return run.active.moe is not False and run.config.routing != "drop_pad"


def _is_whole(run: Run) -> bool | None:
    if run.config.graph_impl == "full_iteration":
        return True
    return None if run.active.graph_frac is None else run.active.graph_frac > WHOLE.value


def _sizes_stay(run: Run) -> bool | None:
    return is_sync_free(run) if _dropless(run) else True


def _sizes_cure(run: Run) -> str:
    """HST-6 makes it so where NVIDIA's recipes do: MXFP8 on Blackwell."""
    if _sizes_stay(run) is None:
        return "--gpu-model, --routing, --precision, --te-op-fuser"
    blackwell = run.config.hardware_class in ("blackwell_nvl8", "nvl72")
    return "HST-6" if blackwell and run.precision == "mxfp8" else "drop-and-pad routing"


FIX: Final = Fix(
    id="HST-7",
    wall="host_overhead",
    title="One CUDA graph for forward and backward",
    kinds=("launch", "python", "arrival", "sync", "token_count_sync"),
    knobs=knobs,
    preconditions=preconditions,
    versions=(
        "cuda_graph_impl=full_iteration since Megatron-Core 0.18, 0.15 to 0.17 local with scope "
        "full_iteration; Megatron-Bridge's harness says local and full_iteration in every version. Dropless "
        "routing needs 0.18, experimental"
    ),
    gains=(),
    side_effects=(
        "1.5 to 2 times the peak memory",
        "NaN checks of loss and gradients go off",
        "dropless: steps over the expert budget run twice",
    ),
    excludes=("HST-3",),
    verify="one graph launch a step, launch_starved gone from forward and backward; few repeated steps",
    sources=(
        (
            "Megatron-LM, megatron/core/transformer/transformer_config.py and "
            "megatron/training/arguments.py at d98e8a64"
        ),
        "Megatron-LM, docs/user-guide/features/paged_stash.md at d98e8a64",
        (
            "Megatron-Bridge, src/megatron/bridge/perf_recipes/deepseek/common.py at 067f987d (GB200, GB300 "
            "and B300)"
        ),
        "Megatron-Bridge skill perf-cuda-graphs",
    ),
)

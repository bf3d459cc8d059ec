"""HST-7: forward and backward of a whole step as one CUDA graph.

Changes thousands of launches to one; the optimizer stays outside. Helps where the host holds back even the
parts that graphs of single modules cannot hold. Allowed only where no size is read back: without experts,
with drop-and-pad, or with HybridEP's fixed budgets (HST-6) and paged stash. NaN checks must be off, and
memory must hold up to twice the peak.
"""

from dataclasses import replace
from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix
from heuristics.fixes.hst_6_fewer_syncs import BUDGETED
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import (
    head_room,
    holds,
    is_not,
    no_layer_offload,
    static_shapes,
)
from heuristics.guides.cuda_graphs import RNG_TRACKER, choose_graphs, graph_change
from heuristics.guides.facts import is_sync_free
from heuristics.run.run import Run
from traces.cures import cure
from traces.limits import Limit
from traces.settings.settings import Value

WHOLE: Final = Limit(
    0.8, "fraction of kernel work in CUDA graphs", "ours: all but the optimizer, which no such graph holds"
)
GROWTH: Final = Limit(
    1.5, "times the peak memory", "Megatron-Bridge skill perf-cuda-graphs: 1.5 to 2 times; the lower end here"
)


def change(run: Run) -> Change:
    """One graph, in the release's knobs; dropless routing adds HST-6's budget and the stash it feeds."""
    choice = replace(choose_graphs(run), impl="full_iteration", modules=())
    stash = _dropless(run) and not run.config.core_before("0.18.0")
    named: dict[str, Value] = {"cuda_graph_modules": ()} if run.config.names("cuda_graph_modules") else {}
    return Change(
        {
            **named,  # a graph of everything takes no names
            **graph_change(choice, run.config.core_text),
            **RNG_TRACKER,
            "rerun.check_for_nan_in_loss": False,
            "ddp.check_for_nan_in_grad": False,
            **({**BUDGETED, "moe_paged_stash": True} if stash else {}),
        },
        harness=("--cuda_graph_impl local", "--cuda_graph_scope full_iteration"),
        by_release=True,
        since="0.18.0" if _dropless(run) else "0.15.0",
    )


def advice(run: Run) -> tuple[Precondition, ...]:
    """Nothing read back in the step, shapes that stay, and memory for every buffer at once."""
    peak = run.active.peak_bytes
    return (
        holds(
            "no expert size goes back to the host",
            _sizes_stay(run),
            _sizes_met_by(run),
            "--gpu-model, --routing, --precision, --te-op-fuser",
        ),
        is_not(
            "no graph of the whole step runs yet", _is_whole(run), told_by=cure("graphs", run.active.recorder)
        ),
        static_shapes(run),
        no_layer_offload(run),
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


def _sizes_met_by(run: Run) -> str:
    """HST-6 makes it so where NVIDIA's recipes do: MXFP8 on Blackwell."""
    blackwell = run.config.hardware_class in ("blackwell_nvl8", "nvl72")
    return "HST-6" if blackwell and run.precision == "mxfp8" else "drop-and-pad routing"


FIX: Final = Fix(
    id="HST-7",
    wall="host_overhead",
    title="One CUDA graph for forward and backward",
    kinds=("launch", "python", "arrival", "sync", "token_count_sync"),
    change=change,
    advice=advice,
    versions=(
        "cuda_graph_impl=full_iteration since Megatron-Core 0.18, 0.15 to 0.17 local with scope "
        "full_iteration; Megatron-Bridge's harness uses local and full_iteration in every version. Dropless "
        "routing needs 0.18, experimental"
    ),
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

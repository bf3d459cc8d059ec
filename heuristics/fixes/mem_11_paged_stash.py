"""MEM-11: what backward keeps of the experts, packed in pages.

Changes how activations of routed experts are kept: packed into pages of a buffer for what was routed, not for
the budget. Helps only where experts have a fixed budget per rank (HST-6), whose buffers are sized for the
worst rank. Refused without that budget, beside layer-level CPU offloading, and where fine-grained offload
takes the experts' activations. A step whose tokens overflow the pages runs again.
"""

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import (
    already,
    dispatched_by,
    expert_parallel,
    grouped_gemm,
    holds,
    is_not,
    no_layer_offload,
)
from heuristics.run.run import Run
from traces.limits import Limit

PAGES: Final = Limit(
    1.2,
    "times the activations of perfect balance, on the GPU",
    "Megatron-Bridge, src/megatron/bridge/perf_recipes/deepseek/common.py at 067f987d",
)
SPILL: Final = Limit(
    1.0,
    "times the activations of perfect balance, on the host",
    "Megatron-Bridge, src/megatron/bridge/perf_recipes/deepseek/common.py at 067f987d",
)
_EXPERTS: Final = frozenset({"expert_fc1", "moe_act", "fused_group_mlp"})
_STASH: Final = "moe_paged_stash"


def change(run: Run) -> Change:
    """The stash with the buffers of Megatron-Bridge's tuned recipes; what overflows goes to the host."""
    del run
    factor = f"{_STASH}_buffer_size_factor"
    return Change({_STASH: True, f"{factor}_cuda": PAGES.value, f"{factor}_cpu": SPILL.value})


def advice(run: Run) -> tuple[Precondition, ...]:
    """A budget whose buffers are worth packing, and nothing else that moves the same activations."""
    shown, offloaded = run.active, run.config.names("offload_modules")
    moved = None if offloaded is None else bool(_EXPERTS & {*offloaded})
    return (
        *already(run, _STASH),
        expert_parallel(run),
        holds(
            "experts have a fixed budget (moe_expert_rank_capacity_factor)",
            run.config.on("moe_expert_rank_capacity_factor"),
            "HST-6",
            blocks=True,
        ),
        dispatched_by(run, "HybridEP dispatches tokens", "hybridep", "ncclep"),
        grouped_gemm(run),
        no_layer_offload(run),
        is_not(
            "no activations of experts are offloaded",
            False if shown.offload is False else moved,
            told_by="offload_modules of the configuration",
        ),
    )


FIX: Final = Fix(
    id="MEM-11",
    wall="memory",
    title="Keep expert activations in a paged stash",
    change=change,
    advice=advice,
    versions="Megatron-Core 0.18 and later, experimental; with HybridEP, from 0.19 also with NCCL EP",
    side_effects=(
        "steps that overflow the pages run twice: size them from the imbalance that is measured",
        "what spills takes host memory and copies",
    ),
    excludes=("MEM-6",),
    verify="allocated peak falls towards what balanced routing needs; few repeated steps",
    sources=(
        "Megatron-LM, docs/user-guide/features/paged_stash.md at d98e8a64",
        "Megatron-LM, megatron/core/transformer/transformer_config.py at d98e8a64",
        "Megatron-Bridge, src/megatron/bridge/perf_recipes/deepseek/common.py at 067f987d",
    ),
    wins=("recompute", "allocator"),  # with room, both can go
)

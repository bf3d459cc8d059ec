"""HST-6: expert buffers of a fixed budget, so that no layer waits for its token counts.

Changes dropless routing with HybridEP from buffers sized by each layer's counts, which the host must read, to
a budget per rank. Helps where each MoE layer ends in such a read. alltoall always reads its splits before the
exchange, fused permutation or not, so HybridEP comes first. Needs Megatron-Core 0.18 and Transformer Engine's
op fuser. A step whose tokens exceed the budget runs again without it.
"""

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix, Form
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import (
    already,
    dispatched_by,
    expert_parallel,
    grouped_gemm,
    head_room,
    holds,
    is_not,
)
from heuristics.run.run import Run
from traces.limits import Limit

BUDGET: Final = Limit(
    1.5,
    "times the tokens of perfect balance",
    "Megatron-Bridge, src/megatron/bridge/perf_recipes/deepseek/common.py at 067f987d",
)
_FACTOR: Final = "moe_expert_rank_capacity_factor"
BUDGETED: Final = {_FACTOR: BUDGET.value, "use_transformer_engine_op_fuser": True}
"""The budget of Megatron-Bridge's tuned recipes, with what it asserts."""


def change(run: Run) -> Change:
    """The budget."""
    del run
    return Change(BUDGETED)


def advice(run: Run) -> tuple[Precondition, ...]:
    """A read of token counts in each layer, HybridEP, and routing that is not of fixed size already."""
    routing, syncs = run.config.routing, run.active.token_count_sync
    return (
        *already(run, _FACTOR, active=False if syncs else None),
        expert_parallel(run),
        holds("layers wait for their token counts", syncs, told_by="record CUDA API calls and copies"),
        dispatched_by(run, "HybridEP dispatches tokens", "hybridep"),
        is_not(
            "experts are not padded to capacity",
            None if routing is None else routing == "drop_pad",
            "nothing to do: sizes are fixed already",
            "--routing",
        ),
        grouped_gemm(run),
        head_room(run, None),
    )


FIX: Final = Fix(
    id="HST-6",
    wall="host_overhead",
    title="Fixed expert budgets, no token-count syncs",
    kinds=("token_count_sync",),
    wins=("token_count_sync", "launch", "python"),
    change=change,
    advice=advice,
    versions=(
        "moe_expert_rank_capacity_factor since Megatron-Core 0.18, experimental. With alltoall only: leave "
        "capacity factor and padding for quantisation off, which move the read before the first permutation"
    ),
    side_effects=(
        (
            "buffers are sized for the budget, balanced or not: more memory (moe_paged_stash packs what "
            "backward keeps)"
        ),
        "steps over budget run twice: pick the factor from the imbalance that is measured",
    ),
    verify=(
        "no copy of token counts and no wait for it in MoE layers; the count of repeated steps stays near "
        "zero"
    ),
    sources=(
        (
            "Megatron-LM, megatron/core/transformer/moe/token_dispatcher.py and "
            "docs/user-guide/features/paged_stash.md at d98e8a64"
        ),
        "Megatron-LM, megatron/core/transformer/transformer_config.py at d98e8a64",
        "Megatron-Bridge, src/megatron/bridge/perf_recipes/deepseek/common.py at 067f987d",
    ),
    changes=lambda run: ("token_counts_stay",),
    pytorch=Form(
        title="Avoid reading GPU values on the host within a step",
        code=(
            'torch.cuda.set_sync_debug_mode("warn") (names every line that waits)',
            "loss.detach() summed on the GPU, .item() every N steps",
        ),
        verify="fewer synchronising calls within steps",
        sources=("PyTorch, torch/cuda/__init__.py",),
        kinds=("sync", "token_count_sync"),
    ),
)

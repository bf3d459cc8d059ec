"""HST-6: expert buffers of a fixed budget, so that no layer waits for its token counts.

Changes dropless routing with HybridEP from buffers sized by each layer's counts, which the host must read, to
a budget per rank. Helps where each MoE layer ends in such a read. alltoall always reads its splits before the
exchange, fused permutation or not, so HybridEP comes first. Needs Megatron-Core 0.18 and Transformer Engine's
op fuser. A step whose tokens exceed the budget runs again without it.
"""

from __future__ import annotations

from typing import Final

from heuristics.fixes.fix import Fix, Form, Knobs, Precondition
from heuristics.fixes.preconditions import already, asked, at_least, expert_parallel, head_room, holds, is_not
from heuristics.run.run import Run
from traces.limits import Limit

BUDGET: Final = Limit(
    1.5,
    "times the tokens of perfect balance",
    "Megatron-Bridge, src/megatron/bridge/perf_recipes/deepseek/common.py at 067f987d",
)


def knobs(run: Run) -> Knobs:
    """The budget of Megatron-Bridge's tuned recipes, with what it asserts."""
    del run
    return Knobs(
        megatron_lm=(
            f"--moe-expert-rank-capacity-factor {BUDGET.value}",
            "--use-transformer-engine-op-fuser",
        ),
        megatron_bridge=(
            f"model.moe_expert_rank_capacity_factor={BUDGET.value}",
            "model.use_transformer_engine_op_fuser=true",
        ),
    )


def preconditions(run: Run) -> tuple[Precondition, ...]:
    """A read of token counts in each layer, HybridEP, and routing that is not of fixed size already."""
    shown, routing = run.active, run.config.routing
    syncs = shown.token_count_sync
    return (
        *already(run, "moe_expert_rank_capacity_factor", active=False if syncs else None),
        expert_parallel(run),
        holds("layers wait for their token counts", syncs, asked(syncs, "record CUDA API calls and copies")),
        holds(
            "HybridEP dispatches tokens",
            None if shown.dispatcher == "unknown" else shown.dispatcher == "hybridep",
            "COM-2",
        ),
        is_not(
            "experts are not padded to capacity",
            None if routing is None else routing == "drop_pad",
            "--routing" if routing is None else "nothing to do: sizes are fixed already",
        ),
        at_least("Megatron-Core", run.config.core_text, "0.18.0", "--core-version"),
        holds("experts run as grouped GEMM", shown.grouped_gemm, "CMP-1"),
        head_room(run, None),
    )


FIX: Final = Fix(
    id="HST-6",
    wall="host_overhead",
    title="Fixed expert budgets, no token-count syncs",
    kinds=("token_count_sync",),
    wins=("token_count_sync", "launch", "python"),
    knobs=knobs,
    preconditions=preconditions,
    versions=(
        "moe_expert_rank_capacity_factor since Megatron-Core 0.18, experimental. With alltoall only: leave "
        "capacity factor and padding for quantisation off, which move the read before the first permutation"
    ),
    gains=(),
    side_effects=(
        (
            "buffers are sized for the budget, balanced or not: more memory (moe_paged_stash packs what "
            "backward keeps)"
        ),
        "steps over budget run twice: pick the factor from the imbalance that is measured",
    ),
    excludes=(),
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
        title="Read no GPU value within a step",
        code=(
            'torch.cuda.set_sync_debug_mode("warn") (names every line that waits)',
            "loss.detach() summed on the GPU, .item() every N steps",
        ),
        verify="fewer synchronising calls within steps",
        sources=("PyTorch, torch/cuda/__init__.py",),
        kinds=("sync", "token_count_sync"),
    ),
)

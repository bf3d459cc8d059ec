"""COM-10: expert ranks inside one NVLink domain, with a layout of their own.

Changes EP and ETP apart from the attention's TP, CP and DP (parallel folding); PP stays common to both. Helps
where expert all-to-all crosses nodes because EP x ETP is more than NVLink connects. ETP is TP where nobody
sets it, so 1 alone may do. A smaller EP puts more experts on each rank: memory must hold them.
"""

from __future__ import annotations

from math import gcd
from typing import Final

from heuristics.fixes.fix import Fix, Knobs, Precondition
from heuristics.fixes.preconditions import asked, expert_parallel, holds, is_not, right_topology
from heuristics.guides.facts import EP_KINDS
from heuristics.run.run import Run


def expert_ranks(run: Run) -> int | None:
    """Largest divisor of EP, hence of the experts, that one NVLink domain holds; None where unknown."""
    ep, domain = run.config.ep, run.config.nvlink_domain
    if ep is None or domain is None:
        return None
    return max(gcd(ep, size) for size in range(1, domain + 1))


def knobs(run: Run) -> Knobs:
    """EP that fits (N where EP or the domain is unknown), each expert whole on its rank."""
    ep: int | str = expert_ranks(run) or "N"
    return Knobs(
        megatron_lm=(f"--expert-model-parallel-size {ep}", "--expert-tensor-parallel-size 1"),
        megatron_bridge=(f"model.expert_model_parallel_size={ep}", "model.expert_tensor_parallel_size=1"),
        bridge_harness=(f"--expert_model_parallel_size {ep}", "--expert_tensor_parallel_size 1"),
    )


def preconditions(run: Run) -> tuple[Precondition, ...]:
    """Expert traffic leaves the domain, and memory holds what a smaller EP puts on each rank."""
    tight, leaves = run.config.memory_tight, _leaves(run)
    return (
        expert_parallel(run),
        *right_topology(run),
        holds(
            "EP x ETP is more than one NVLink domain holds",
            leaves,
            asked(leaves, "--ep, --etp, --nvlink-domain"),
        ),
        is_not("memory holds more experts a rank", tight, "--memory-tight" if tight is None else "MEM-2"),
    )


def _leaves(run: Run) -> bool | None:
    """Where ETP is unknown, an EP that fits stays inside unless kernels are seen to cross nodes."""
    spans = run.config.spans_domain
    if spans is not None:
        return spans
    ep, domain = run.config.ep, run.config.nvlink_domain
    fits = ep is not None and domain is not None and ep <= domain
    return False if run.active.internode is False or (fits and not run.active.internode) else None


FIX: Final = Fix(
    id="COM-10",
    wall="communication",
    title="Fold expert parallelism into one NVLink domain",
    kinds=EP_KINDS,
    knobs=knobs,
    preconditions=preconditions,
    versions=(
        "every Megatron-Core release here; expert_tensor_parallel_size is TP where it is not set. "
        "README's example: TP4 CP2 DP8 PP4 on 256 GPUs allows EP64 with ETP1, where EP was bound to 8"
    ),
    gains=(),
    side_effects=(
        "a smaller EP keeps more experts, and their gradients and optimizer state, on each rank",
        "EP must divide the number of experts",
    ),
    excludes=(),
    verify="dispatch and combine run without inter-node kernels, and get shorter",
    sources=(
        (
            "Megatron-LM, megatron/core/transformer/moe/README.md and megatron/core/model_parallel_config.py "
            "at d98e8a64"
        ),
        "Megatron-Bridge, docs/training/moe-optimization.md at 067f987d",
        "Megatron-Bridge skill perf-moe-optimization-workflow",
    ),
)

"""COM-10: expert ranks inside one NVLink domain, with a layout of their own.

Changes EP and ETP apart from the attention's TP, CP and DP (parallel folding); PP stays common to both. Helps
where expert all-to-all crosses nodes because EP x ETP is more than NVLink connects. ETP is TP where nobody
sets it, so 1 alone may do. A smaller EP puts more experts on each rank: memory must hold them.
"""

from math import gcd
from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import expert_parallel, holds, is_not, right_topology
from heuristics.guides.facts import EP_KINDS
from heuristics.run.run import Run


def expert_ranks(run: Run) -> int | None:
    """Largest divisor of EP, hence of the experts, that one NVLink domain holds; None where unknown."""
    ep, domain = run.config.ep, run.config.nvlink_domain
    if ep is None or domain is None:
        return None
    return max(gcd(ep, size) for size in range(1, domain + 1))


def change(run: Run) -> Change:
    """EP that fits (N where EP or the domain is unknown), each expert whole on its rank."""
    ep = expert_ranks(run) or "N"
    return Change({"expert_model_parallel_size": ep, "expert_tensor_parallel_size": 1})


def advice(run: Run) -> tuple[Precondition, ...]:
    """Expert traffic leaves the domain, and memory holds what a smaller EP puts on each rank."""
    return (
        expert_parallel(run),
        *right_topology(run),
        holds(
            "EP x ETP is more than one NVLink domain holds",
            _leaves(run),
            told_by="--ep, --etp, --nvlink-domain",
        ),
        is_not("memory holds more experts a rank", run.config.memory_tight, "MEM-2", "--memory-tight"),
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
    title="Keep each expert-parallel group in one NVLink domain",
    kinds=EP_KINDS,
    change=change,
    advice=advice,
    versions=(
        "every Megatron-Core release here; expert_tensor_parallel_size is TP where it is not set. "
        "README's example: TP4 CP2 DP8 PP4 on 256 GPUs allows EP64 with ETP1, where EP was bound to 8"
    ),
    side_effects=(
        "a smaller EP keeps more experts, and their gradients and optimizer state, on each rank",
        "EP must divide the number of experts",
    ),
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

"""What a trace shows of a run's settings, by name, each with how far it may move and still be the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Final

from heuristics.comparison.configured import Value
from traces.limits import Limit
from traces.missing import known
from traces.sections.rank import Rank

MOVED: Final = Limit(
    0.01, "of kernel work", "ours: a share of work moves with its times; a graph more or less moves more"
)
CALLS: Final = Limit(1, "a step", "ours: less than one a step is by chance")
_EXCHANGE: Final = ("comm.ep_dispatch", "comm.ep_combine", "comm.ep_a2a", "comm.ep_control")
_FAMILY: Final = re.compile(r"^(?:void )?([^<(#]+)")
"""A kernel's name without its template arguments and parameters."""


@dataclass(frozen=True, slots=True)
class Observed:
    """One thing a trace shows; numbers within `tolerance` of each other are the same."""

    value: Value
    tolerance: float = 0.0

    def differs(self, other: Observed) -> bool:
        """Whether the two are not the same; the same answer the other way round."""
        if isinstance(self.value, int | float) and isinstance(other.value, int | float):
            return abs(self.value - other.value) > self.tolerance
        return self.value != other.value


def trace_facts(rank: Rank) -> dict[str, Observed]:
    """By name (`detected.dispatcher`, `steps.source`): only what this trace has, never null."""
    return {what: one for what, one in _facts(rank) if one.value is not None}


def _facts(rank: Rank) -> Iterator[tuple[str, Observed]]:
    detected = rank.detected
    yield "detected.dispatcher", Observed(detected.dispatcher)
    yield "detected.ep_overlap", Observed(known(detected.ep_overlap))
    yield "detected.training_step", Observed(known(detected.training_step))
    yield "detected.precision", Observed(_precision(rank))
    yield "detected.graph_share_frac", Observed(known(detected.graph_share_frac), MOVED.value)
    yield "detected.recompute", Observed(_run_again(rank))
    yield "dispatcher.kernels", Observed(_exchange_kernels(rank))
    yield (
        "memory.allocator_calls_per_step",
        Observed(_per_step(rank, known(rank.memory.allocator_calls)), CALLS.value),
    )
    yield (
        "memory.offload_copies_per_step",
        Observed(_per_step(rank, known(rank.memory.offload_copies)), CALLS.value),
    )
    for kind, blocks in _comm_blocks(rank).items():
        yield f"comm_blocks.{kind}", Observed(blocks)
    yield "steps.source", Observed(rank.steps.source if rank.steps.found else "none")
    yield "steps.dropped", Observed(tuple(sorted(one.reason for one in rank.steps.dropped)))


def _precision(rank: Rank) -> str | None:
    """What matrix work is known to run in, `bf16+fp8` for two; the one of all where no shares are known."""
    shares = rank.detected.precision_shares_frac
    main = sorted(name for name, frac in shares.items() if frac > MOVED.value)
    return "+".join(main) or known(rank.detected.precision)


def _run_again(rank: Rank) -> tuple[str, ...] | None:
    """Modules that run again in the backward pass; None where that is unknown."""
    modules = known(rank.detected.recompute)
    if modules is None:
        return None
    counts = {name: known(one.recomputed_count) for name, one in modules.items()}
    if all(count is None for count in counts.values()):
        return None
    return tuple(sorted(name for name, count in counts.items() if count))


def _exchange_kernels(rank: Rank) -> tuple[str, ...] | None:
    """Kernels that exchange tokens between experts, by name without arguments; None where there are none."""
    names = {one.name for one in rank.kernel_table.rows if one.key in _EXCHANGE}
    found = {match[1].strip() for name in names if (match := _FAMILY.match(name))}
    return tuple(sorted(found)) or None


def _comm_blocks(rank: Rank) -> dict[str, int]:
    """Most blocks of one kernel of each kind of communication: the SMs that it may take."""
    blocks: dict[str, int] = {}
    for kernel in rank.kernel_table.rows:
        bucket, _, kind = kernel.key.partition(".")
        grid = known(kernel.grid)
        if bucket == "comm" and grid is not None:
            blocks[kind] = max(blocks.get(kind, 0), prod(grid))
    return blocks


def _per_step(rank: Rank, count: int | None) -> float | None:
    """A count over the used steps as one per step; None where there are no steps to count by."""
    return None if count is None or not rank.steps.found else count / len(rank.lengths_ns)

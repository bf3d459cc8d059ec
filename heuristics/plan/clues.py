"""Clues: what points straight at one fix, so that it is tried before what the wall's order names first.

A cost says how much a kind of time takes, not always why. What a log, a configuration or the late rank say
besides is here, as a table; the first clue that holds wins.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from heuristics.fixes import com_1_ep_overlap
from heuristics.guides.context_parallel import VERY_LONG, guided_cp, sequence_length
from heuristics.guides.facts import EP_KINDS
from heuristics.guides.memory_use import segments_suffice
from heuristics.plan.repair import before_others
from heuristics.run.run import Run
from heuristics.walls.price import WALL
from traces.limits import Limit
from traces.ranks.cause import Cause
from traces.sections.tables import WallId
from traces.training_log.log import OutOfMemory

FRAGMENTED: Final = Limit(
    0.10,
    "fraction of the capacity",
    "ours: as much as a wall, reserved and not allocated when memory ran out",
)
_OPTIMIZER: Final = ("optimizer", "optimizer_state")
_OVERLAP: Final = "overlap_moe_expert_parallel_comm"
ALLOCATOR_FIRST: Final = "MEM-1"
"""Where memory ran out and nothing says how: it costs no time."""


@dataclass(frozen=True, slots=True)
class Clue:
    """`fix` goes first for `wall` where `holds`, for a `reason`; for all walls where it is no `tuning`."""

    wall: WallId
    fix: str
    holds: Callable[[Run], bool]
    reason: str
    source: str
    tuning: bool = True


def _fragmented(run: Run) -> bool:
    """Steady steps free and allocate, or much was reserved and not allocated: pieces of odd sizes."""
    if (run.cost_by_kind_ns.get("memory") or {}).get("allocator") or run.active.allocator_calls_per_step:
        return True
    return any(map(_unallocated, run.log.out_of_memory if run.log else ()))


def _unallocated(one: OutOfMemory) -> bool:
    reserved, allocated, capacity = one.reserved_bytes, one.allocated_bytes, one.capacity_bytes
    if reserved is None or allocated is None or capacity is None:
        return False
    return reserved - allocated >= FRAGMENTED.value * capacity


def _stages(run: Run) -> set[str]:
    told = {one.stage for one in run.log.out_of_memory} if run.log else set()
    return told | ({run.active.out_of_memory} if run.active.out_of_memory else set())


def _in_optimizer(run: Run) -> bool:
    return run.does_not_fit and bool(_stages(run) & {*_OPTIMIZER})


def _in_capture(run: Run) -> bool:
    return run.does_not_fit and "graph_capture" in _stages(run)


def _beside_overlap(run: Run) -> bool:
    overlaps = run.active.ep_overlap is True or run.config.overlap(_OVERLAP) is True
    return run.does_not_fit and bool(_stages(run)) and overlaps


def _overlap_is_at_hand(run: Run) -> bool:
    """Expert all-to-all of plain alltoall costs most, no flex package is known, and one flag hides it."""
    whole, experts = run.cost_ns("communication", ()), run.cost_ns("communication", EP_KINDS)
    if not whole or experts is None or experts <= whole / 2 or run.config.flex_package:
        return False
    plain = run.active.dispatcher == "alltoall" and run.config.hardware_class != "nvl72"
    return plain and not any(one.stops for one in com_1_ep_overlap.FIX.preconditions(run))


def _uneven_routing(run: Run) -> bool:
    """Tokens make a rank late; where several ranks were replayed, by as much as is repaired first."""
    replayed = run.late is not None and run.late.saved_frac is not None
    told = run.active.late_cause == Cause.ROUTING_IMBALANCE
    return told and (not replayed or "COM-11" in before_others(run))


def _very_long(run: Run) -> bool:
    """Attention of a very long sequence on fewer ranks than the guide starts with."""
    length, cp = sequence_length(run), run.config.cp
    return length is not None and cp is not None and length >= VERY_LONG.value and cp < guided_cp(length)


_RECOMPUTE_SKILL: Final = "Megatron-Bridge, skill perf-activation-recompute at 067f987d"

CLUES: Final = (
    Clue(
        "memory",
        "MEM-1",
        lambda run: run.does_not_fit and _fragmented(run) and segments_suffice(run) is not False,
        "memory is in pieces: much is reserved and not allocated, or steady steps free and allocate",
        "Megatron-Bridge, skill perf-memory-tuning at 067f987d",
    ),
    Clue("memory", "MEM-3", _in_optimizer, "memory ran out in the optimizer", _RECOMPUTE_SKILL),
    Clue(
        "memory",
        "MEM-12",
        _beside_overlap,
        "memory ran out beside EP overlap, which keeps activations longer",
        "Megatron-LM, megatron/core/model_parallel_config.py at d98e8a64",
    ),
    Clue(
        "memory",
        "MEM-16",
        lambda run: run.does_not_fit and _very_long(run),
        "attention of so long a sequence dominates: CP before recompute",
        "Megatron-Bridge, skill perf-moe-long-context at 067f987d",
    ),
    Clue(
        "memory",
        "MEM-2",
        _in_capture,
        "memory ran out while CUDA graphs were captured",
        "Megatron-Bridge, docs/training/cuda-graphs.md at 067f987d",
    ),
    Clue(
        "memory",
        "MEM-2",
        lambda run: run.does_not_fit and segments_suffice(run) is False,
        "allocated and asked for is more than the GPU has, so no allocator can hold it",
        "ours, by the numbers of the log",
    ),
    Clue(
        "memory",
        ALLOCATOR_FIRST,
        lambda run: run.does_not_fit,
        "it costs no time",
        "Megatron-Bridge, skill perf-memory-tuning at 067f987d",
    ),
    Clue(
        "communication",
        "COM-3",
        lambda run: run.config.right_topology is False,
        "HybridEP is configured with a wrong NVLink domain, which must be corrected before any tuning",
        "deepseek-ai/DeepEP, issues 596 and 597",
        tuning=False,
    ),
    Clue(
        "communication",
        "COM-11",
        _uneven_routing,
        "the wait is for a late rank, which a faster transfer does not shorten",
        "Megatron-Bridge, skill perf-nsys-analysis at 067f987d",
    ),
    Clue(
        "compute",
        "CMP-9",
        lambda run: (run.active.wide_frac or 0.0) >= WALL.value,
        "matrix work runs in FP32 or TF32, a wall's worth of it",
        "ours; NVIDIA's and AMD's peak rates: 16 bits multiply at twice the rate or more",
    ),
    Clue(
        "communication",
        "COM-1",
        _overlap_is_at_hand,
        "a flag of the run itself, before a package that may not be there",
        "ours; measured: Megatron-Bridge, skill perf-expert-parallel-overlap at 067f987d, 41.25 to 31.31 s",
    ),
)


def why_first(run: Run, wall: WallId, fix: str) -> str:
    """Why a clue puts a fix first, with its source; empty where none does."""
    clue = next((one for one in CLUES if one.wall == wall and one.holds(run)), None)
    return f"{clue.reason} ({clue.source})" if clue and clue.fix == fix else ""


def first_by_clue(run: Run, wall: WallId) -> str | None:
    """Id of the fix that a clue names for a wall; None where no clue holds."""
    return next((clue.fix for clue in CLUES if clue.wall == wall and clue.holds(run)), None)


def before_tuning(run: Run) -> tuple[str, ...]:
    """Ids of the fixes that correct what is set wrongly, and so come before those that tune it."""
    return tuple(clue.fix for clue in CLUES if not clue.tuning and clue.holds(run))

"""What is said of a run: parts of its window by the contract's names; None is not said, never zero."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from heuristics.result.judged import Level
from heuristics.run.run import WallId
from heuristics.walls.wall import WallJudgement
from traces.training_log.log import Stage

WINDOW_NS: Final = 1_000_000_000
"""Length given to a window of which only parts are said, so that a part has a length in ns too."""

Parts = Mapping[str, float]
"""Fractions of a rank's window by kind, class or cause."""


@dataclass(frozen=True, slots=True)
class RankSymptoms:
    """What is said of one rank, or of the whole run at once; fractions are of its window.

    `budget_frac`: keys `compute`, `exposed_comm`, `exposed_copy`, `idle`. `starved_frac` by cause and
    `blocking_frac` by producer are time without compute, as `opaque_frac` (inside graphs recorded whole) and
    `stalled_frac` (nothing explains it) are. `starved_by_cause`: the causes are known, not one figure alone.
    `recompute_modules`: labels of what is computed again; `recompute_holds_comm`: the price of recompute
    includes what it sends again. `summed_frac`: sums of kernel times by class, which say nothing of a
    window. `rank`: its number in the run.
    """

    rank: int | None = None
    gpu: str | None = None
    window_ns: int | None = None
    budget_frac: Parts | None = None
    exposed_by_kind_frac: Parts | None = None
    hidden_by_kind_frac: Parts | None = None
    hidden_frac: float | None = None
    compute_by_class_frac: Parts | None = None
    starved_frac: Parts | None = None
    starved_by_cause: bool = True
    blocking_frac: Parts | None = None
    arrival_frac: float | None = None
    opaque_frac: float | None = None
    stalled_frac: float | None = None
    a2a_exposed_frac: float | None = None
    a2a_hidden_frac: float | None = None
    a2a_payload_frac: float | None = None
    a2a_waiting_frac: float | None = None
    fill_frac: float | None = None
    under_filled_frac: float | None = None
    recompute_frac: float | None = None
    recompute_modules: tuple[str, ...] | None = None
    recompute_full: bool | None = None
    recompute_holds_comm: bool = False
    offload_exposed_frac: float | None = None
    offload_copies: float | None = None
    host_resident_exposed_frac: float | None = None
    allocator_frac: float | None = None
    allocator_retry_frac: float | None = None
    allocator_calls_per_step: float | None = None
    peak_bytes: float | None = None
    capacity_bytes: float | None = None
    dispatcher: str | None = None
    internode: bool | None = None
    precision: str | None = None
    graph_frac: float | None = None
    ep_overlap: bool | None = None
    training: bool | None = None
    grouped_gemm: bool | None = None
    permute_fused: bool | None = None
    short_kernel_frac: float | None = None
    expert_gemms_per_layer: float | None = None
    router_kernels_per_layer: float | None = None
    summed_frac: Parts | None = None


@dataclass(frozen=True, slots=True)
class Late:
    """Whom the others wait for, why, and how much of their window."""

    cause: str
    rank: int | None = None
    wait_frac: float | None = None


@dataclass(frozen=True, slots=True)
class Capture:
    """How the symptoms were recorded.

    `perturbation_frac`: how much longer the profiled step was. `ranks_seen` of `world_size` ranks.
    """

    perturbation_frac: float | None = None
    missing_events: bool | None = None
    ranks_seen: int | None = None
    world_size: int | None = None


@dataclass(frozen=True, slots=True)
class EarlierVerdict:
    """What an earlier result says of its walls: where the time goes, how sure it is, and why."""

    bound: WallId | None = None
    confidence: Level | None = None
    confidence_because: tuple[str, ...] = ()
    because: tuple[str, ...] = ()
    next_wall: WallId | None = None
    next_wall_frac: float | None = None
    next_because: str = ""


@dataclass(frozen=True, slots=True)
class Symptoms:
    """What is said of a run.

    `walls` and `earlier`: of an earlier result, taken as they stand. `out_of_memory`: the stage
    in which the log reports that memory ran out. `unread`: sentences of keys that mean nothing to us.
    """

    ranks: tuple[RankSymptoms, ...] = ()
    capture: Capture = field(default_factory=Capture)
    late: Late | None = None
    out_of_memory: Stage | None = None
    walls: tuple[WallJudgement, ...] = ()
    earlier: EarlierVerdict | None = None
    unread: tuple[str, ...] = ()


def mean_of(ranks: Sequence[RankSymptoms], read: Callable[[RankSymptoms], float | None]) -> float | None:
    """Mean of one figure over the ranks that say it; None where none does."""
    told = [value for rank in ranks if (value := read(rank)) is not None]
    return sum(told) / len(told) if told else None


def parts_of(
    ranks: Sequence[RankSymptoms], read: Callable[[RankSymptoms], Parts | None]
) -> dict[str, float] | None:
    """Mean of each part over the ranks that say any; a part one of them leaves out is none of it there."""
    told = [parts for rank in ranks if (parts := read(rank)) is not None]
    keys = dict.fromkeys(key for parts in told for key in parts)
    return {key: sum(parts.get(key, 0.0) for parts in told) / len(told) for key in keys} if told else None


def any_of(ranks: Sequence[RankSymptoms], read: Callable[[RankSymptoms], bool | None]) -> bool | None:
    """Whether any rank says yes; None where none says anything."""
    told = [value for rank in ranks if (value := read(rank)) is not None]
    return any(told) if told else None


def text_of(ranks: Sequence[RankSymptoms], read: Callable[[RankSymptoms], str | None]) -> str | None:
    """What all ranks that say anything say alike; None otherwise."""
    told = {value for rank in ranks if (value := read(rank)) is not None}
    return told.pop() if len(told) == 1 else None


def most_of(ranks: Sequence[RankSymptoms], read: Callable[[RankSymptoms], float | None]) -> float | None:
    """The largest of one figure; None where no rank says it."""
    return max((value for rank in ranks if (value := read(rank)) is not None), default=None)

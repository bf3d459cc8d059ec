"""Where the time goes: compute or communication, where one of them fills more than half of the windows.

What it is: the bucket of the step budget, summed over all ranks, that exceeds half of the summed windows.
How we tell: by wall time, so hidden communication counts as compute and nothing counts twice.
What it is not: a wall. A compute-bound step may have nothing to remove. Idle time and copies are no bound:
idle is not yet told apart into host overhead and waiting, copies not into offload and input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from traces.limits import Limit
from traces.measure.measurements import RankMeasurements

HALF: Final = Limit(
    0.5,
    "fraction of the summed windows",
    "ours: more than everything else together, so no other bucket is larger",
)


@dataclass(frozen=True, slots=True)
class Bound:
    """The bucket that fills more than half of the windows, or None; `because` in words."""

    bucket: Literal["compute", "communication"] | None
    because: str
    cure: str = ""


def find_bound(measurements: Sequence[RankMeasurements]) -> Bound:
    """Bound of a run. Ranks with whole graph replays only count as time that could not be told."""
    window_ns = sum(rank.budget.window_ns for rank in measurements)
    told = [rank.budget for rank in measurements if rank.communication_told]
    shares = {
        "compute": sum(budget.compute_ns for budget in told) / window_ns,
        "communication": sum(budget.exposed_comm_ns for budget in told) / window_ns,
    }
    if shares["compute"] > HALF.value:
        return Bound("compute", f"compute fills {_percent(shares['compute'])} of the windows, over half")
    if shares["communication"] > HALF.value:
        return Bound(
            "communication",
            f"exposed communication fills {_percent(shares['communication'])} of the windows, over half",
        )
    if len(told) < len(measurements):
        return Bound(
            None,
            "graph replays were recorded whole, or kernels without names: compute and communication "
            "cannot be told apart",
            "record with --cuda-graph-trace=node, and export all tables",
        )
    return Bound(
        None,
        f"neither compute ({_percent(shares['compute'])}) nor exposed communication "
        f"({_percent(shares['communication'])}) fills over half of the windows",
        "read the budget: the largest bucket is named there",
    )


def _percent(frac: float) -> str:
    return f"{frac * 100:.1f} %"


@dataclass(frozen=True, slots=True)
class LargestBucket:
    """The largest bucket of the budget over all ranks, and its share of the summed windows."""

    bucket: str
    frac: float


def largest_bucket(measurements: Sequence[RankMeasurements]) -> LargestBucket:
    """Largest bucket of a run; of equals the first in the order of the budget."""
    budgets = [rank.budget for rank in measurements]
    total_ns = {
        "compute": sum(budget.compute_ns for budget in budgets),
        "exposed_comm": sum(budget.exposed_comm_ns for budget in budgets),
        "exposed_copy": sum(budget.exposed_copy_ns for budget in budgets),
        "idle": sum(budget.idle_ns for budget in budgets),
    }
    name = max(total_ns, key=lambda bucket: total_ns[bucket])
    return LargestBucket(name, total_ns[name] / sum(budget.window_ns for budget in budgets))

"""Signs that several rules look for: how many kernels ran, and what most of a difference is made of."""

from collections.abc import Sequence
from typing import Final, Literal

from heuristics.comparison.difference.rows import RowDelta
from heuristics.comparison.suspects.view import View
from traces.limits import Limit
from traces.names.kernels import compute_classes

SAME_COUNT: Final = Limit(
    0.02,
    "fraction",
    "ours: classes of two GPUs of one real run differ by up to 1.8 %; one of 32 layers is 3 %",
)
MAIN: Final = Limit(0.5, "fraction", "ours: of parts that add up, one of at least a half is the main one")

CLASSES: Final = tuple(f"compute.{class_}" for class_ in compute_classes())

Part = Literal["count", "duration", "overlap"]


def same_count(before: float, after: float) -> bool:
    """Whether two numbers of activities are the same but for what routing moves."""
    return abs(after - before) <= SAME_COUNT.value * max(before, after)


def kernel_counts(view: View, names: Sequence[str] = CLASSES) -> tuple[float, float]:
    """Compute kernels a step of some classes, before and after."""
    pairs = [view.counts[name] for name in names if name in view.counts]
    return sum(one[0] for one in pairs), sum(one[1] for one in pairs)


def main_part(rows: Sequence[RowDelta]) -> Part | None:
    """Which of count, duration and overlap makes most of rows that grew; None where none does, or unknown."""
    delta_ns = sum(row.delta_ns for row in rows)
    if delta_ns <= 0 or any(row.count_ns is None for row in rows):
        return None
    parts: dict[Part, int] = {
        "count": sum(row.count_ns or 0 for row in rows),
        "duration": sum(row.duration_ns or 0 for row in rows),
        "overlap": sum(row.overlap_ns or 0 for row in rows),
    }
    part = max(parts, key=lambda one: parts[one])
    return part if parts[part] >= MAIN.value * delta_ns else None


def grew(view: View, *patterns: str) -> tuple[RowDelta, ...]:
    """Rows that got longer."""
    return tuple(row for row in view.matching(*patterns) if row.delta_ns > 0)

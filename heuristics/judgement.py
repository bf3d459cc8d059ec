"""Measurements -> judgement. Walls are not judged yet; where the step's time goes is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heuristics.bound import Bound, LargestBucket, find_bound, largest_bucket
from traces.measure.measurements import RankMeasurements
from traces.missing import Missing


@dataclass(frozen=True, slots=True)
class Judgement:
    """What we make of a run: `bound` names where its time goes, if anywhere; `because` says why."""

    bound: Bound
    largest: LargestBucket
    because: tuple[str, ...]
    missing: tuple[Missing, ...]


def judge(measurements: Sequence[RankMeasurements]) -> Judgement:
    """Judge a run by the measurements of all its ranks (at least one)."""
    bound = find_bound(measurements)
    missing = [
        Missing(
            "verdict",
            "walls are not judged yet: this version measures where the step goes, not what could be removed",
            "read the budget, largest bucket first",
        )
    ]
    if bound.bucket is None:
        missing.append(Missing("verdict.bound", bound.because, bound.cure))
    return Judgement(bound, largest_bucket(measurements), (bound.because,), tuple(missing))

"""A recording that does not stand for the run: the profiler itself made its steps longer."""

from typing import Final

from heuristics.findings.finding import ConfigFinding
from traces.limits import Limit
from traces.spelling import chosen, percent

PERTURBED: Final = Limit(
    0.10,
    "of the unprofiled step",
    "ours: as much as a wall; a published pair of 34.60 s profiled against 29.39 s was judged unusable for "
    "absolute times (Megatron-Bridge, evals of skill perf-nsys-analysis)",
)


def perturbed(perturbation_frac: float | None) -> tuple[ConfigFinding, ...]:
    """CAP-1 where the profiled step is longer than the unprofiled one by more than `PERTURBED`."""
    if perturbation_frac is None or perturbation_frac <= PERTURBED.value:
        return ()
    return (
        ConfigFinding(
            "CAP-1",
            "not_representative",
            f"the profiled step is {percent(perturbation_frac)} longer than one without the profiler: shares "
            "and order hold at best, times and gains do not",
            f"median profiled step against the steady step of the log; limit {chosen(PERTURBED.value)}",
            "record again with fewer traced events (-t cuda,nvtx, no sampling) and fewer steps",
        ),
    )

"""Which recorded steps are left out: partial ones, and a slow first one."""

from __future__ import annotations

from statistics import median
from typing import Final

from traces.limits import Limit
from traces.steps.found import Step, drop

PARTIAL: Final = Limit(
    0.05,
    "fraction of the kernels of the other steps",
    "ours: a whole step of one trace repeats its kernels; routing changes their shapes, rarely their number",
)
SLOW_MAD: Final = Limit(
    3.0, "scaled median absolute deviations", "usual outlier rule; 1.4826 scales to sigma"
)
SLOW_FRAC: Final = Limit(
    0.05,
    "fraction of the median step",
    "measured on real recordings: the deviation rule alone drops a good step in 19-33 % of captures",
)
SLOW_STEPS: Final = Limit(8, "steps", "ours: with fewer the deviation is not known")
_SCALE: Final = 1.4826


def leave_out_partial(steps: list[Step], kernel_counts: list[int]) -> list[Step]:
    """Drop steps without GPU work, and those whose kernel sequence is shorter than the others'."""
    result = []
    for step, count in zip(steps, kernel_counts, strict=True):
        others = [n for other, n in zip(steps, kernel_counts, strict=True) if other is not step and n]
        if count == 0 or step.length_ns <= 0:
            result.append(drop(step, "no GPU work"))
        elif others and count < (1 - PARTIAL.value) * median(others):
            result.append(drop(step, f"partial: {count} kernels where the others have {median(others):.0f}"))
        else:
            result.append(step)
    return result


def leave_out_warm_up(steps: list[Step]) -> list[Step]:
    """Drop the first used step where it is slower than the rest by both slow-step limits."""
    used = [step for step in steps if step.dropped is None]
    if len(used) < SLOW_STEPS.value:
        return steps
    first, rest = used[0], [step.length_ns for step in used[1:]]
    middle = median(rest)
    spread = _SCALE * median(abs(length - middle) for length in rest)
    excess = first.length_ns - middle
    if excess <= SLOW_MAD.value * spread or excess <= SLOW_FRAC.value * middle:
        return steps
    reason = f"warm-up: {excess / middle:.0%} slower than the rest"
    return [drop(step, reason) if step is first else step for step in steps]

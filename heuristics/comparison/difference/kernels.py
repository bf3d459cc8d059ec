"""Kernels of two ranks side by side: slower, faster, new, gone, or the same name with another grid."""

from fractions import Fraction
from math import hypot, sqrt
from typing import Final

from heuristics.comparison.difference.kernel_groups import Kernels, pair_kernels, smallest_listed_ns
from heuristics.result.compared import Change, KernelDelta
from traces.limits import Limit
from traces.sections.rank import Rank

ERRORS: Final = Limit(
    3, "standard errors", "ours: of 4,732 kernels of 120 unchanged simulated pairs, 1 in 200 differs by more"
)
MOVED_FRAC: Final = Limit(0.01, "of the duration", "ours: one kernel a side has no scatter, clocks have")
COMPUTE_FRAC: Final = Limit(
    0.08,
    "of the duration",
    "ours: of 3,825 compute kernels of 120 unchanged simulated pairs, 1 differs by more; one name serves "
    "GEMMs of several sizes, whose scatter is not that of their mean",
)
BORDER: Final = Limit(
    1, "kernel a recording", "ours: one that runs across the border of the windows counts on one side only"
)


def compare_kernels(base: Rank, new: Rank) -> tuple[KernelDelta, ...]:
    """Kernels that differ, the largest difference first."""
    base_end_ns, new_end_ns = smallest_listed_ns(base), smallest_listed_ns(new)
    found = []
    for one, other in pair_kernels(base, new):
        if one is not None and other is not None and one.grid == other.grid:
            change = _moved(one, other)
        else:
            listed = (one is None or one.work_per_step_ns > new_end_ns) and (
                other is None or other.work_per_step_ns > base_end_ns
            )
            change = _apart(one, other) if listed else None
        if change is not None:
            found.append(_delta(one, other, change))
    return tuple(sorted(found, key=_place))


def _apart(base: Kernels | None, new: Kernels | None) -> Change:
    """What it is that is not the same on both sides."""
    if base is None:
        return "new"
    return "gone" if new is None else "grid"


def _moved(base: Kernels, new: Kernels) -> Change | None:
    """What moved of the same kernels, of two things what moves more work; None where nothing did."""
    more, apart_ns = new.per_step - base.per_step, new.each_ns - base.each_ns
    by_count_ns = abs(more) * (base.each_ns + new.each_ns) if _count_moved(base, new) else 0
    by_each_ns = abs(apart_ns) * (base.per_step + new.per_step) if _duration_moved(base, new) else 0
    if not by_count_ns and not by_each_ns:
        return None
    if by_count_ns > by_each_ns:
        return "more" if more > 0 else "fewer"
    return "slower" if apart_ns > 0 else "faster"


def _count_moved(base: Kernels, new: Kernels) -> bool:
    least = Fraction(int(BORDER.value), min(base.steps, new.steps))
    return abs(new.per_step - base.per_step) > least


def _duration_moved(base: Kernels, new: Kernels) -> bool:
    apart_ns, shorter_ns = abs(new.each_ns - base.each_ns), min(base.each_ns, new.each_ns)
    is_clear = base.key.startswith("compute.") and not _count_moved(base, new)
    if is_clear and apart_ns > COMPUTE_FRAC.value * shorter_ns:
        return True
    return apart_ns > max(ERRORS.value * _error_ns(base, new), MOVED_FRAC.value * shorter_ns)


def _error_ns(base: Kernels, new: Kernels) -> float:
    """Standard error of the difference of mean durations; one kernel alone shows no scatter."""
    return hypot(*(each.std_ns / sqrt(max(each.count - 1, 1)) for each in (base, new)))


def _delta(base: Kernels | None, new: Kernels | None, change: Change) -> KernelDelta:
    (there, *_) = [each for each in (base, new) if each is not None]
    work_ns = [each.work_per_step_ns if each else Fraction(0) for each in (base, new)]
    return KernelDelta(
        name=there.name,
        key=there.key,
        change=change,
        delta_ns=round(work_ns[1] - work_ns[0]),
        base_grid=base.grid if base else None,
        new_grid=new.grid if new else None,
        base_count=float(base.per_step) if base else 0.0,
        new_count=float(new.per_step) if new else 0.0,
        base_each_ns=round(base.each_ns) if base else None,
        new_each_ns=round(new.each_ns) if new else None,
    )


def _place(one: KernelDelta) -> tuple[object, ...]:
    grids = sorted((one.base_grid or (), one.new_grid or ()))
    return (-abs(one.delta_ns), one.name, one.key, grids)

"""Compute that takes longer, and what saves memory and costs time.

All of compute, or one class by slower, other, more, or differently cut kernels; recompute, offload, the
allocator, and copies in general.
"""

from collections.abc import Callable
from typing import Final, Literal

from heuristics.comparison.suspects.causes import named
from heuristics.comparison.suspects.rule import Signs
from heuristics.comparison.suspects.view import (
    CLASSES,
    MAIN,
    View,
    grew,
    kernel_counts,
    main_part,
    same_count,
)
from heuristics.result.compared import KernelDelta
from traces.limits import Limit
from traces.missing import OrMissing, known
from traces.sections.rank import Memory, Rank
from traces.spelling import in_ms, percent

SLOWER: Final = Limit(
    0.02, "fraction", "ours: the classes of two GPUs of one real run differ by 0.6 % at most"
)
SPREAD: Final = Limit(
    0.5, "of the slowdown", "ours: a judgement: what waits for memory loses less with the clock"
)
SHARE: Final = Limit(
    0.05, "fraction of compute", "ours: a judgement: smaller classes are a few short kernels"
)
MOST: Final = Limit(0.8, "fraction of compute", "ours: the rest are classes too small to be judged")
EXCHANGED: Final = Limit(
    0.25, "fraction of the class", "ours: a judgement: less is one GEMM of a layer out of many"
)
Way = Literal["more", "exchanged", "grid", "slower"]


def _mean_ns(rank: Rank) -> dict[str, tuple[float, int]]:
    """Of each class the mean time of a kernel and the work of all."""
    rows = [row for row in known(rank.ledger) or () if row.row in CLASSES and row.count and row.work_ns]
    return {row.row: (row.work_ns / row.count, row.work_ns) for row in rows}


def slowdowns(view: View) -> dict[str, float]:
    """How many times longer a kernel of each large class takes; only of classes with as many as before."""
    before, after = _mean_ns(view.before), _mean_ns(view.after)
    total_ns = sum(work_ns for _, work_ns in before.values())
    large = [name for name, (_, work_ns) in before.items() if work_ns >= SHARE.value * total_ns]
    both = [name for name in large if name in after and same_count(*view.counts[name])]
    return {name: after[name][0] / before[name][0] for name in both}


def all_slower(view: View) -> float | None:
    """By how many times all large classes of compute are slower alike; None where they are not."""
    times, work = slowdowns(view), _mean_ns(view.before)
    told_ns = sum(work[name][1] for name in times)
    if len(times) < 3 or told_ns < MOST.value * sum(one[1] for one in work.values()):
        return None
    mean = sum(times[name] * work[name][1] for name in times) / told_ns
    alike = all(abs(one - mean) <= SPREAD.value * (mean - 1) for one in times.values())
    return mean if mean - 1 >= SLOWER.value and alike else None


def slower_alike(view: View) -> Signs:
    """All large classes take longer by the same factor."""
    mean = all_slower(view)
    if mean is None:
        return None
    times = slowdowns(view)
    least, most = percent(min(times.values()) - 1), percent(max(times.values()) - 1)
    return (
        f"{len(times)} classes with as many kernels as before differ alike: {percent(mean - 1)} in the mean, "
        f"from {least} to {most}",
    )


def way_of_class(view: View, class_: str) -> Way | None:
    """How a class of compute that grew got longer; None where it did not, or nothing is the main part."""
    row = view.rows.get(f"compute.{class_}")
    if row is None or row.delta_ns <= 0:
        return None
    deltas = view.kernels(row.row)
    work_ns = max(row.base_ns, row.new_ns)
    new_ns, gone_ns = (_work_ns(deltas, change) for change in ("new", "gone"))
    if min(new_ns, gone_ns) >= EXCHANGED.value * work_ns:
        return "exchanged"
    if _work_ns(deltas, "grid") >= EXCHANGED.value * work_ns:
        return "grid"
    part = main_part((row,))
    if part != "duration":
        counts = row.base_count, row.new_count
        return "more" if part != "overlap" and counts[1] > counts[0] and not same_count(*counts) else None
    return "slower"


def _work_ns(deltas: tuple[KernelDelta, ...], change: str) -> float:
    """Work per step of the kernels of one change, on the side that has more of it."""
    mine = [one for one in deltas if one.change == change]
    return sum(
        max((one.base_each_ns or 0) * one.base_count, (one.new_each_ns or 0) * one.new_count) for one in mine
    )


def class_kernels(class_: str, wanted: Way, view: View) -> Signs:
    """How one class got longer, with its kernels that changed most."""
    if way_of_class(view, class_) != wanted or (wanted == "slower" and all_slower(view) is not None):
        return None
    row = view.rows[f"compute.{class_}"]
    counts = view.arrow(f"{class_} kernels a step", f"{row.base_count:.0f}", f"{row.new_count:.0f}")
    changes: dict[Way, tuple[str, ...]] = {
        "slower": ("slower",), "more": ("more", "new"), "exchanged": ("new", "gone"), "grid": ("grid",),
    }  # fmt: skip
    deltas = [one for one in view.kernels(row.row) if one.change in changes[wanted]]
    return (counts, *(_kernel(view, one) for one in deltas[:2]))


def _kernel(view: View, kernel: KernelDelta) -> str:
    before, after = (_each(ns) for ns in (kernel.base_each_ns, kernel.new_each_ns))
    grids = ""
    if kernel.base_grid != kernel.new_grid and kernel.base_grid and kernel.new_grid:
        grids = ", " + view.arrow("grid", _grid(kernel.base_grid), _grid(kernel.new_grid))
    return view.arrow(f"one {kernel.name[:60]}", before, after) + grids


def _each(ns: int | None) -> str:
    return "none" if ns is None else in_ms(ns)


def _grid(grid: tuple[int, int, int]) -> str:
    return "x".join(str(blocks) for blocks in grid)


def more_small_kernels(view: View) -> Signs:
    """More small kernels beside as many others."""
    small, others = (
        kernel_counts(view, [name for name in CLASSES if (name in named("@small")) is wanted])
        for wanted in (True, False)
    )
    if not same_count(*others) or small[1] <= small[0] or same_count(*small):
        return None
    return (
        view.arrow("small kernels a step", f"{small[0]:.0f}", f"{small[1]:.0f}"),
        view.arrow("all other compute kernels a step", f"{others[0]:.0f}", f"{others[1]:.0f}"),
    )


def gemms_ungrouped(view: View) -> Signs:
    """Grouped GEMMs went, and others came."""
    grouped = view.counts.get("compute.grouped_gemm", (0.0, 0.0))
    gemms = view.counts.get("compute.gemm", (0.0, 0.0))
    if grouped[1] > (1 - MAIN.value) * grouped[0] or gemms[1] <= gemms[0] or not grouped[0]:
        return None
    return (
        view.arrow("grouped GEMMs a step", f"{grouped[0]:.0f}", f"{grouped[1]:.0f}"),
        view.arrow("other GEMMs a step", f"{gemms[0]:.0f}", f"{gemms[1]:.0f}"),
    )


def more_work(view: View) -> Signs:
    """All large classes have more kernels, alike."""
    before, after = kernel_counts(view)
    if after <= before or same_count(before, after):
        return None
    large = [counts for name, counts in view.counts.items() if name in CLASSES and counts[0] >= 1]
    times = [one[1] / one[0] for one in large]
    mean = after / before
    alike = [abs(one - mean) <= SPREAD.value * (mean - 1) for one in times]
    if len(times) < 3 or sum(alike) < len(alike) - 1:
        return None
    return (view.arrow("compute kernels a step, classes alike", f"{before:.0f}", f"{after:.0f}"),)


VISIBLE: Final = Limit(
    0.005,
    "fraction of the step",
    "ours: as heuristics.comparison.difference.rows, below which rows are noise",
)


def _per_step(rank: Rank, read: Callable[[Memory], OrMissing[int]]) -> float | None:
    value = known(read(rank.memory))
    return None if value is None else value / len(rank.lengths_ns)


def _grown(view: View, read: Callable[[Memory], OrMissing[int]], words: str) -> Signs:
    """A time of the memory section that grew visibly; ruled out where it shrank as much."""
    before, after = _per_step(view.before, read), _per_step(view.after, read)
    if before is None or after is None:
        return ()
    step_ns = sum(view.before.lengths_ns) / len(view.before.lengths_ns)
    if abs(after - before) < VISIBLE.value * step_ns:
        return None
    return None if after < before else (view.arrow(words, in_ms(round(before)), in_ms(round(after))),)


def recomputes_more(view: View) -> Signs:
    """Recompute grew, with the modules that run again."""
    signs = _grown(view, lambda memory: memory.recompute_ns, "recompute a step")
    if not signs:
        return signs
    before, after = (sorted(known(rank.memory.recompute_modules) or ()) for rank in (view.before, view.after))
    words = [", ".join(modules) or "none" for modules in (before, after)]
    return (*signs, view.arrow("recomputed modules", *words))


def offloads_more(view: View) -> Signs:
    """Copies of offloading with nothing beside them grew."""
    return _grown(
        view, lambda memory: memory.offload_exposed_ns, "offload copies with nothing beside them a step"
    )


def copies_more(view: View) -> Signs:
    """Exposed copies grew, and offloading did not."""
    rows = grew(view, "exposed_copy.*")
    if not rows or offloads_more(view):
        return None
    before, after = sum(row.base_count for row in rows), sum(row.new_count for row in rows)
    return (view.arrow("copies a step of these kinds", f"{before:.0f}", f"{after:.0f}"),)


def allocates_more(view: View) -> Signs:
    """The allocator is called more often."""
    before, after = (
        _per_step(rank, lambda memory: memory.allocator_calls) for rank in (view.before, view.after)
    )
    if before is None or after is None or after <= before:
        return ()
    return (view.arrow("allocator calls a step", f"{before:.1f}", f"{after:.1f}"),)

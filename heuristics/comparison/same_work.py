"""How much work do two ranks do in a step? By their kernels alone.

It is told by backward kernels, else by the kernels that both have. A backward pass runs once for
each microbatch and layer, whatever is recomputed, so its kernels tell another amount of work from a
forward that runs twice. The optimizer runs once a step, whatever the step holds.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from fractions import Fraction
from math import prod
from operator import add, attrgetter
from typing import Final

from heuristics.comparison.difference.subject import same_count
from traces.frozen import frozen
from traces.limits import FEWEST, MOST, QUARTER, Limit
from traces.missing import known, of_known
from traces.names.kernels import classify_kernel, is_one_of_a_pass
from traces.sections.rank import Rank
from traces.sections.tables import Kernel

NEAR: Final = Limit(
    1.25,
    "times as many kernels, or as much work, per step",
    "ours: below half of 1 to 2, the least by which two whole steps are more than one",
)


@frozen
class Amount:
    """Some kernels of a step; `threads`: of all of them, None where those of one are unknown."""

    count: Fraction = Fraction(0)
    work_ns: Fraction = Fraction(0)
    threads: Fraction | None = Fraction(0)


Family = Callable[[Kernel], str | None]
"""What kernels are counted together; None: it is not counted."""
_NAME: Final = attrgetter("name")


def same_amount(base: Rank, new: Rank) -> bool | None:
    """Whether a step holds as many layers and microbatches; None where no kernels tell.

    By backward kernels where names tell them, by class; else by all kernels but the optimizer's, by
    name, where programs share enough of them.
    """
    if min(_passes(base), _passes(new)) >= FEWEST.value:
        passes = _near_in_most(base, new, _backward, _same_passes, MOST)
        if passes is not None:
            return passes
    if (shared_work_frac(base, new) or 0.0) < QUARTER.value:
        return None
    return _near_in_most(base, new, _by_name, _near, QUARTER)


def _passes(rank: Rank) -> Fraction:
    """Kernels a step that tell a backward pass."""
    return sum((amount.count for amount in per_step(rank, _backward).values()), Fraction(0))


def _near_in_most(
    base: Rank, new: Rank, family: Family, near: Callable[[Amount, Amount], bool], limit: Limit
) -> bool | None:
    base_amounts, new_amounts = per_step(base, family), per_step(new, family)
    near_ns = total_ns = Fraction(0)
    for key in base_amounts.keys() & new_amounts.keys():
        work_ns = base_amounts[key].work_ns + new_amounts[key].work_ns
        total_ns += work_ns
        if near(base_amounts[key], new_amounts[key]):
            near_ns += work_ns
    if total_ns:
        return float(near_ns / total_ns) >= limit.value
    return None


def same_classes(base: Rank, new: Rank) -> bool | None:
    """Whether every class of compute has as many kernels; None where a side has none.

    What windows are held to: their borders cut the work anywhere, so nothing else shows how much
    they hold.
    """
    base_counts, new_counts = counts_of(base, _compute_class), counts_of(new, _compute_class)
    if base_counts and new_counts:
        return same_counts(base_counts, new_counts)
    return None


def same_counts(mine: Mapping[str, float], theirs: Mapping[str, float]) -> bool:
    """Whether both have the same families, each as often."""
    return mine.keys() == theirs.keys() and all(
        same_count(mine[name], theirs[name]) for name in mine
    )


def counts_of(rank: Rank, family: Family = _NAME) -> dict[str, float]:
    """Kernels a step by family."""
    return {name: float(amount.count) for name, amount in per_step(rank, family).items()}


def per_step(rank: Rank, family: Family = _NAME) -> dict[str, Amount]:
    """Kernels by family; those without one are left out."""
    amounts = defaultdict[str, Amount](Amount)
    steps = len(rank.lengths_ns)
    for kernel in rank.kernel_table.rows:
        key = family(kernel)
        if key is not None:
            whole, threads = amounts[key], of_known(Fraction, _threads(kernel), steps)
            amounts[key] = Amount(
                whole.count + Fraction(kernel.count, steps),
                whole.work_ns + Fraction(kernel.work_ns, steps),
                of_known(add, whole.threads, threads),
            )
    return dict(amounts)


def _threads(kernel: Kernel) -> int | None:
    """Threads of all launches together."""
    grid, block = known(kernel.grid), known(kernel.block)
    if grid and block:
        return prod((*grid, *block, kernel.count))
    return None


def _compute_class(kernel: Kernel) -> str | None:
    """Its class; none of a reduction that a product is split for, as a library chooses by size."""
    if (
        kernel.key.startswith("compute.")
        and classify_kernel(kernel.name).subclass != "splitk_reduce"
    ):
        return kernel.key
    return None


def _backward(kernel: Kernel) -> str | None:
    """The class of a compute kernel whose name says that it runs in backward, once in each pass.

    A library chooses among ways to convolve that are one kernel or five, and may choose anew in
    each run.
    """
    kind = classify_kernel(kernel.name)
    if kind.phase == "bwd" and kind.class_ != "convolution" and is_one_of_a_pass(kernel.name):
        return _compute_class(kernel)
    return None


def _by_name(kernel: Kernel) -> str | None:
    if kernel.key == "compute.optimizer":
        return None
    return kernel.name


def _same_passes(mine: Amount, theirs: Amount) -> bool:
    """As many kernels; or a whole number of times fewer, which do as much: larger microbatches."""
    if same_count(float(mine.count), float(theirs.count)):
        return True
    few, many = sorted((mine, theirs), key=attrgetter("count"))
    times = many.count / few.count
    return same_count(float(times), round(times)) and _near_each(few.work_ns, many.work_ns)


def _near(mine: Amount, theirs: Amount) -> bool:
    """Twice the steps is twice the kernels, each as long as before: neither count, work nor threads
    are near. The same work in pieces has as many threads.
    """
    is_near = _near_each(mine.count, theirs.count) or _near_each(mine.work_ns, theirs.work_ns)
    if mine.threads and theirs.threads:
        return is_near or _near_each(mine.threads, theirs.threads)
    return is_near


def _near_each(mine: Fraction, theirs: Fraction) -> bool:
    return max(mine, theirs) <= Fraction(NEAR.value) * min(mine, theirs)


def shared_work_frac(base: Rank, new: Rank, *, named: Family = _NAME) -> float | None:
    """Kernel work by names that both have, as part of all of the side that shares less; None:
    unknown.
    """
    base_amounts, new_amounts = per_step(base, named), per_step(new, named)
    if not base_amounts or not new_amounts:
        return None
    return float(min(_shared(base_amounts, new_amounts), _shared(new_amounts, base_amounts)))


def _shared(amounts: Mapping[str, Amount], their_amounts: Mapping[str, Amount]) -> Fraction:
    """How much of the work of one side is by names that the other has."""
    shared = total = Fraction(0)
    for name, mine in amounts.items():
        total += mine.work_ns
        if name in their_amounts:
            shared += mine.work_ns
    if total:
        return shared / total
    return Fraction(0)


def same_recording(base: Rank, new: Rank) -> bool:
    """Whether step lengths agree one by one and buckets in all, whatever the schema each was read
    from.
    """
    return _figures(base) == _figures(new)


def _figures(rank: Rank) -> tuple[object, ...]:
    budget = rank.budget_ns
    buckets = budget.compute, known(budget.exposed_comm), budget.exposed_copy
    return rank.steps.found, rank.lengths_ns, buckets

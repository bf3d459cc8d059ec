"""What saves memory and costs time: recompute, offload, the allocator, and copies in general."""

from collections.abc import Callable
from typing import Final

from heuristics.comparison.suspects.evidence.signs import grew
from heuristics.comparison.suspects.rule import Signs
from heuristics.comparison.suspects.view import View
from traces.limits import Limit
from traces.missing import OrMissing, known
from traces.sections.rank import Memory, Rank
from traces.spelling import in_ms

VISIBLE: Final = Limit(
    0.005,
    "fraction of the step",
    "ours: as heuristics.comparison.difference.noise, below which rows are noise",
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

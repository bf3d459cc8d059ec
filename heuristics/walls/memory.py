"""The memory wall: the step pays for fitting into the GPU's memory.

What is removed to measure it: what is computed a second time is gone whole, with its collectives, copies and
synchronisations; offload copies, copies of what lives in host memory and, after the first step, allocator
calls are gone. How we tell: by replay.

Cost and capacity are two things. The cost shows in any trace and decides alone; whether there is room is a
second answer beside it. A part that cannot be seen is bounded: the wall is a finding where the least that it
costs reaches the limit, clear where the most stays below it, else both ends are said. The allocator giving
memory back and asking again
in steady steps is hard evidence that the run does not fit, and comes before any larger wall: what does not
fit cannot be tuned. What it is not: a high peak; PyTorch keeps nearly all memory by design.
References: Megatron-Bridge, skills perf-moe-optimization-workflow and memory-tuning.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from msgspec import structs

from heuristics.figures.figures import Figures
from heuristics.result.judged import Evidence, Wall
from heuristics.walls.price import WALL, Price, Unpriced, judged, price, shown, shown_frac, unmeasurable
from heuristics.words import say
from traces.cures import cure
from traces.limits import Limit
from traces.measurements import RankMeasurements
from traces.missing import Missing, known
from traces.sections.rank import Memory

RETRIES: Final = Limit(
    0.5,
    "fraction of the steps after the first",
    "ours: a cache that is full gives back and asks again in most steps; one new shape does so once",
)

_RETRIED: Final = "allocator_retry_frac"


def does_not_fit(walls: Sequence[Wall]) -> bool:
    """Whether the allocator gives memory back and asks again in most steps."""
    return any(
        one.measure == _RETRIED and one.value >= RETRIES.value for wall in walls for one in wall.evidence
    )


def judge(ranks: Sequence[Figures], told: Price | Unpriced) -> Wall:
    """Judge the memory of a run's ranks (at least one)."""
    result = judged("memory", told, ranks, _context(ranks))
    retries = [(known(rank.memory.allocator_retry_frac) or 0.0, rank.place) for rank in ranks]
    worst, place = max(retries, key=lambda one: one[0])
    if worst:
        retried = shown(_RETRIED, worst, RETRIES.unit, RETRIES.because, RETRIES.value, place)
        result = structs.replace(result, evidence=(*result.evidence, retried))
        if worst >= RETRIES.value:
            return structs.replace(result, outcome="finding")
    if result.outcome == "finding" or (isinstance(told, Unpriced) and result.outcome == "unmeasurable"):
        return result
    return _bounded(result, told, ranks)


def _bounded(result: Wall, told: Price | Unpriced, ranks: Sequence[Figures]) -> Wall:
    """A price below the limit, with the most that recompute can add where it could not be seen."""
    gap, unseen_frac = _unpriced(ranks), _unseen_frac(ranks)
    proven = told if isinstance(told, Price) and told.at_least is None else None
    by_partition = proven is None and unseen_frac is not None  # what is unseen of recompute is in its bound
    if gap is None or (by_partition and result.outcome == "clear"):
        return result
    most = told.at_most_frac if by_partition else None
    if proven is not None and unseen_frac is not None:
        most = proven.frac + unseen_frac
        if most < WALL.value:
            return structs.replace(result, at_most_frac=most)
    evidence = tuple(one for one in result.evidence if not one.measure.endswith("cost_frac"))
    least = told.frac if isinstance(told, Price) else None
    bounded = unmeasurable("memory", gap, evidence, most)
    return bounded if least is None else structs.replace(bounded, at_least_frac=least)


def measured(measurements: Sequence[RankMeasurements]) -> Price | Unpriced:
    """Its price by replay."""
    told = price(measurements, "memory")
    if isinstance(told, Unpriced):
        return told
    return replace(told, at_least=told.at_least or _in_graphs(measurements))


def _in_graphs(measurements: Sequence[RankMeasurements]) -> Missing | None:
    """Why the price may be more: what is computed again in a graph recorded whole is not seen."""
    if any(rank.replay_count and rank.recompute.places.size for rank in measurements):
        return Missing("memory", say("walls.graphs-hold-more"), cure("graphs", measurements[0].kind))
    return None


def _unpriced(ranks: Sequence[Figures]) -> Missing | None:
    """What keeps the price itself from being known: whether anything is computed a second time."""
    for rank in ranks:
        if isinstance(gap := rank.memory.recompute_ns, Missing):
            return Missing("memory", say("walls.recompute-unknown", reason=gap.reason), gap.cure)
    return None


def _unseen_frac(ranks: Sequence[Figures]) -> float | None:
    """The most that unseen recompute takes, as part of the windows; None where nothing bounds it."""
    most = [rank.recompute_at_most_ns for rank in ranks if isinstance(rank.memory.recompute_ns, Missing)]
    told = [ns for ns in most if ns is not None]
    return sum(told) / sum(rank.judged_ns for rank in ranks) if len(told) == len(most) else None


_COSTS: Final = {
    "recompute": "what is computed a second time",
    "offload_exposed": "exposed offload copies",
    "host_resident_exposed": "exposed copies of weights or optimizer state that live in host memory",
    "allocator": "host time in allocator calls, steps after the first",
}


def _context(ranks: Sequence[Figures]) -> list[Evidence]:
    """The prices by themselves, over all ranks that tell them, and how full the fullest GPU was."""
    found = []
    for name, why in _COSTS.items():
        read = partial(_told_ns, name=f"{name}_ns")
        if any(map(read, ranks)):
            found += shown_frac(f"{name}_frac", ranks, read, why)
    memories = [rank.memory for rank in ranks]
    found += _traffic(memories)
    if used := [frac for one in memories if (frac := one.peak_frac)]:
        why = "context only: PyTorch keeps nearly all memory by design"
        found.append(shown("peak_frac", max(used), "fraction of the capacity", why))
    return found


def _told_ns(rank: Figures, name: str) -> int | None:
    told: int | None = known(getattr(rank.memory, name))
    return told


def _traffic(memories: Sequence[Memory]) -> Iterator[Evidence]:
    """How much the copies of each kind move a GPU, and how fast: means over the ranks that have any."""
    for kind in ("offload", "host_resident"):
        keys = (f"{kind}_copies", f"{kind}_bytes", f"{kind}_union_ns")
        uses = [[known(getattr(one, key)) for key in keys] for one in memories]
        if told := [use for use in uses if all(use)]:
            copies, size_bytes, ns = (sum(values) for values in zip(*told, strict=True))
            yield shown(keys[0], copies // len(told), "count", "on each GPU in its windows")
            yield shown(keys[1], size_bytes // len(told), "bytes", "on each GPU in its windows")
            yield shown(f"{kind}_gb_per_s", size_bytes / ns, "GB/s", "bytes over their wall time")

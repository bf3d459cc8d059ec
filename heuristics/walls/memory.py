"""The memory wall: the step pays for fitting into the GPU's memory.

What is removed to measure it: what is computed a second time is gone whole, with its collectives, copies and
synchronisations; offload copies, copies of what lives in host memory and, after the first step, allocator
calls are gone. How we tell: by replay.

Cost and capacity are two things. The cost shows in any trace; whether there is room does not: below the
limit the wall is clear only where memory use was recorded. The allocator giving memory back and asking again
in steady steps is hard evidence that the run does not fit, and comes before any larger wall: what does not
fit cannot be tuned. What it is not: a high peak; PyTorch keeps nearly all memory by design.
References: Megatron-Bridge, skills perf-moe-optimization-workflow and memory-tuning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from heuristics.walls.price import price
from heuristics.walls.wall import Evidence, WallJudgement, judged, unmeasurable, unpriced
from traces.cures import cure
from traces.limits import Limit
from traces.measure.measurements import RankMeasurements
from traces.missing import Missing

RETRIES: Final = Limit(
    0.5,
    "fraction of the steps after the first",
    "ours: a cache that is full gives back and asks again in most steps; one new shape does so once",
)


def judge(measurements: Sequence[RankMeasurements]) -> WallJudgement:
    """Judge the memory of a run's ranks (at least one)."""
    told = price(measurements, "memory")
    if isinstance(told, Missing):
        result = unpriced("memory", told, measurements)
    else:
        told = replace(told, at_least=told.at_least or _in_graphs(measurements))
        result = judged("memory", told, _context(measurements))
    fracs = [rank.memory.allocator_retry_frac for rank in measurements]
    if worst := max((frac for frac in fracs if frac is not None), default=None):
        place = fracs.index(worst)
        retried = Evidence(
            "allocator_retry_frac", worst, RETRIES.unit, RETRIES.value, RETRIES.because, rank=place
        )
        result = replace(result, evidence=(*result.evidence, retried))
        if worst >= RETRIES.value:
            return replace(result, outcome="finding", comes_first=True)
    if result.outcome == "finding":
        return result
    if not isinstance(told, Missing) and (gap := _unpriced(measurements)) is not None:
        evidence = tuple(one for one in result.evidence if not one.measure.endswith("cost_frac"))
        return unmeasurable("memory", gap, evidence)
    if result.outcome == "clear" and (gap := _without_room(measurements)) is not None:
        return replace(result, outcome="unmeasurable", missing=(gap.reason,), cure=gap.cure)
    return result


def _in_graphs(measurements: Sequence[RankMeasurements]) -> Missing | None:
    """Why the price may be more: what is computed again in a graph recorded whole is not seen."""
    if any(rank.replays_recorded and rank.recompute.places.size for rank in measurements):
        reason = "something is computed a second time, and graphs recorded whole may hold more of it"
        return Missing("memory", reason, cure("graphs", measurements[0].kind))
    return None


def _unpriced(measurements: Sequence[RankMeasurements]) -> Missing | None:
    """What keeps the price itself from being known: whether anything is computed a second time."""
    for rank in measurements:
        if rank.memory.recompute_ns is None:
            gap = _gap(rank, "recompute_ns")
            reason = f"time of recompute unknown: {gap.reason}"
            return Missing("memory", reason, gap.cure)
    return None


def _without_room(measurements: Sequence[RankMeasurements]) -> Missing | None:
    """What keeps a small price from being clear: whether there is room."""
    for rank in measurements:
        for key in ("peak_bytes", "capacity_bytes"):
            if getattr(rank.memory, key) is None:
                gap = _gap(rank, key)
                known = "the cost of recompute and offload is measured"
                reason = f"free GPU memory is unknown ({gap.reason}); {known}"
                return Missing("memory", reason, gap.cure)
    return None


def _gap(rank: RankMeasurements, key: str) -> Missing:
    gaps = {gap.path: gap for gap in rank.memory.missing}
    return gaps.get(f"memory.{key}", Missing("", "the trace does not record it", ""))


def _context(measurements: Sequence[RankMeasurements]) -> list[Evidence]:
    """The prices by themselves, over all ranks that tell them, and how full the fullest GPU was."""
    memories = [(rank.memory, rank.budget.window_ns) for rank in measurements]
    said = (
        (
            "recompute_frac",
            [(one.recompute_ns, ns) for one, ns in memories],
            "what is computed a second time",
        ),
        (
            "offload_exposed_frac",
            [(one.offload_exposed_ns, ns) for one, ns in memories],
            "exposed offload copies",
        ),
        (
            "host_resident_exposed_frac",
            [(one.host_resident_exposed_ns, ns) for one, ns in memories],
            "exposed copies of weights or optimizer state that live in host memory",
        ),
        (
            "allocator_frac",
            [(one.allocator_ns, ns) for one, ns in memories],
            "host time in allocator calls, steps after the first",
        ),
    )
    found = []
    for measure, values, why in said:
        told = [(ns, window_ns) for ns, window_ns in values if ns is not None]
        if any(ns for ns, _ in told):
            frac = sum(ns for ns, _ in told) / sum(window_ns for _, window_ns in told)
            found.append(Evidence(measure, frac, "fraction of the windows", None, why))
    found += _traffic(measurements)
    used = [
        one.peak_bytes / one.capacity_bytes for one, _ in memories if one.peak_bytes and one.capacity_bytes
    ]
    if used:
        why = "context only: PyTorch keeps nearly all memory by design"
        found.append(Evidence("peak_frac", max(used), "fraction of the capacity", None, why))
    return found


def _traffic(measurements: Sequence[RankMeasurements]) -> Iterator[Evidence]:
    """How much the copies of each kind move a GPU, and how fast: means over the ranks that have any."""
    memories = [rank.memory for rank in measurements]
    for kind in ("offload", "host_resident"):
        keys = (f"{kind}_copies", f"{kind}_bytes", f"{kind}_union_ns")
        uses = [[getattr(one, key) for key in keys] for one in memories]
        if told := [use for use in uses if all(use)]:
            copies, size_bytes, ns = (sum(values) for values in zip(*told, strict=True))
            yield Evidence(keys[0], copies // len(told), "count", None, "on each GPU in its windows")
            yield Evidence(keys[1], size_bytes // len(told), "bytes", None, "on each GPU in its windows")
            yield Evidence(f"{kind}_gb_per_s", size_bytes / ns, "GB/s", None, "bytes over their wall time")

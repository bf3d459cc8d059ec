"""What a log says of a run's steps and memory: the typical step, how they vary, and whether they drift."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import Final, Literal

from heuristics.result.compared_files import DriftOf, FilesLog, MemoryOf
from heuristics.words import say
from traces.limits import NEARLY_ALL
from traces.missing import Missing, OrMissing, gap, or_gap
from traces.sections.section import copied
from traces.statistics.drift import Drift, drift_of
from traces.statistics.interval import MANY
from traces.training_log.iterations import steady_step
from traces.training_log.log import Iteration, LoggedMemory, TrainingLog

_FIGURES: Final[tuple[Literal["allocated", "peak_allocated", "reserved", "peak_reserved"], ...]] = (
    "allocated",
    "peak_allocated",
    "reserved",
    "peak_reserved",
)
_FEW: Final = gap(say("files.few-iterations", least=f"{MANY.value:.0f}"), say("files.few-iterations-cure"))
_NONE: Final = gap(say("files.no-steady"), say("files.few-iterations-cure"))
_UNPRINTED: Final = gap(say("files.not-printed"), say("files.not-printed-cure"))


def section(log: TrainingLog) -> FilesLog:
    """What is said of a log."""
    steady = steady_step(log)
    used = steady.used if steady else ()
    lengths = sorted(one.length_ns for one in used)
    low, high = _middle(lengths)
    return FilesLog(
        name=log.name,
        iteration_count=len(log.iterations),
        steady_count=len(used),
        left_out=steady.left_out_by_reason if steady else {},
        first_iteration=used[0].index if used else _NONE,
        last_iteration=used[-1].index if used else _NONE,
        median_ns=or_gap(steady.median_ns if steady else None, _NONE),
        mean_ns=or_gap(steady.mean_ns if steady else None, _NONE),
        low_ns=or_gap(low, _NONE),
        high_ns=or_gap(high, _NONE),
        drift=drift_section(used),
        tflops_per_gpu=_typical([one.tflops_per_gpu for one in used]),
        tokens_per_s_per_gpu=_typical([one.tokens_per_s_per_gpu for one in used]),
        global_batch_size=_batch(log),
        memory=tuple(_memory(log)),
        out_of_memory=len(log.out_of_memory),
    )


def drift_section(used: Sequence[Iteration]) -> OrMissing[DriftOf]:
    found = drift_of_steps(used)
    return _FEW if found is None else told(found)


def drift_of_steps(used: Sequence[Iteration]) -> Drift | None:
    """By the numbers of iterations; by their places where a log starts again."""
    places = [one.index for one in used]
    if any(after <= before for before, after in pairwise(places)):
        places = [*range(1, len(used) + 1)]
    return drift_of(places, [one.length_ns for one in used])


def told(found: Drift) -> DriftOf:
    """A drift as the document has it."""
    first, last = round(found.first), round(found.last)
    return copied(
        DriftOf,
        found,
        first=first,
        last=last,
        change=last - first,
        change_frac=(last - first) / first if first else 0.0,
        each=found.slope,
        each_low=found.low,
        each_high=found.high,
        jump_at=None if found.at is None else round(found.at),
    )


Lengths = tuple[int, ...]


def compared_lengths(base: TrainingLog, new: TrainingLog, drifts: bool) -> tuple[Lengths, Lengths]:
    """The steady iterations of both logs.

    Where one drifts, those whose numbers both logs hold, less the line that both follow together: it is part
    of no difference, and would pass for how steps vary.
    """
    both = [steady.used if (steady := steady_step(log)) else () for log in (base, new)]
    one, other = (tuple(each.length_ns for each in used) for used in both)
    if not drifts:
        return one, other
    by_index = [{each.index: each.length_ns for each in used} for used in both]
    shared = sorted(by_index[0].keys() & by_index[1].keys())
    if len(shared) < MANY.value:
        return one, other
    kept = [[lengths[place] for place in shared] for lengths in by_index]
    line = drift_of(shared, [sum(pair) / 2 for pair in zip(*kept, strict=True)])
    if line is None:
        return tuple(kept[0]), tuple(kept[1])
    middle = sum(shared) / len(shared)
    off = [round(line.slope * (place - middle)) for place in shared]
    level, other_level = (
        tuple(length - less for length, less in zip(lengths, off, strict=True)) for lengths in kept
    )
    return level, other_level


def _middle(lengths: Sequence[int]) -> tuple[int | None, int | None]:
    """Between which the middle of the sorted lengths lies."""
    if not lengths:
        return None, None
    outside = round(len(lengths) * (1 - NEARLY_ALL.value) / 2)
    return lengths[outside], lengths[len(lengths) - 1 - outside]


def _typical(rates: Sequence[float | None]) -> float | Missing:
    known = [rate for rate in rates if rate is not None]
    return median(known) if known else _UNPRINTED


def _batch(log: TrainingLog) -> int | Missing:
    sizes = {one.global_batch_size for one in log.iterations} - {None}
    return or_gap(next(iter(sizes)) if len(sizes) == 1 else None, _UNPRINTED)


def _memory(log: TrainingLog) -> Iterator[MemoryOf]:
    """Each figure that is reported; its drift by the rank that reports it most often."""
    by_rank: dict[int | None, list[LoggedMemory]] = defaultdict(list)
    for report in log.memory:
        by_rank[report.rank].append(report)
    few = gap(say("files.no-report", least=f"{MANY.value:.0f}"), say("files.no-report-cure"))
    for figure in _FIGURES:
        series = [
            [size for one in reports if (size := getattr(one, f"{figure}_bytes")) is not None]
            for reports in by_rank.values()
        ]
        if not any(series):
            continue
        longest = max(series, key=len)
        found = drift_of([*range(1, len(longest) + 1)], longest)
        yield MemoryOf(
            figure=figure,
            most_bytes=max(size for sizes in series for size in sizes),
            reports_count=len(longest),
            drift=few if found is None else told(found),
        )

"""What a log says of a run's steps and memory: the typical step, how they vary, and whether they
drift.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from operator import attrgetter
from statistics import median
from typing import Final, get_args

import numpy as np

from heuristics.comparison.difference.subject import only_one
from heuristics.result.compared_files import DriftOf, FilesLog, MemoryFigure, MemoryOf
from heuristics.words import lacking
from traces.limits import NEARLY_ALL
from traces.missing import Missing, OrMissing, of_known, or_gap
from traces.sections.section import copied
from traces.statistics.drift import Drift, drift_of
from traces.statistics.interval import MANY
from traces.training_log.iterations import steady_step
from traces.training_log.log import Iteration, TrainingLog

_FEW: Final = lacking("files.few-iterations", least=f"{MANY.value:.0f}")
_NONE: Final = lacking("files.no-steady", cure="files.few-iterations-cure")
_UNPRINTED: Final = lacking("files.not-printed")
Lengths = tuple[int, ...]


def section(log: TrainingLog) -> FilesLog:
    """What is said of a log."""
    log_section = FilesLog(
        name=log.name,
        iteration_count=len(log.iterations),
        steady_count=0,
        left_out={},
        first_iteration=_NONE,
        last_iteration=_NONE,
        median_ns=_NONE,
        mean_ns=_NONE,
        low_ns=_NONE,
        high_ns=_NONE,
        drift=_FEW,
        tflops_per_gpu=_UNPRINTED,
        tokens_per_s_per_gpu=_UNPRINTED,
        global_batch_size=_batch(log),
        memory=tuple(_memory(log)),
        out_of_memory=len(log.out_of_memory),
    )
    steady = steady_step(log)
    if steady is None:
        return log_section
    used = steady.used
    lengths = sorted(_lengths_ns(used))
    outside = round(len(lengths) * (1 - NEARLY_ALL.value) / 2)
    return copied(
        FilesLog,
        log_section,
        steady,
        steady_count=len(used),
        left_out=steady.left_out_by_reason,
        first_iteration=used[0].index,
        last_iteration=used[-1].index,
        low_ns=lengths[outside],
        high_ns=lengths[-1 - outside],
        drift=told(drift_of_steps(used), _FEW),
        tflops_per_gpu=_typical(used, "tflops_per_gpu"),
        tokens_per_s_per_gpu=_typical(used, "tokens_per_s_per_gpu"),
    )


def _lengths_ns(used: Iterable[Iteration]) -> Lengths:
    return tuple(iteration.length_ns for iteration in used)


def _numbers(used: Iterable[Iteration]) -> list[int]:
    return [iteration.index for iteration in used]


def drift_of_steps(used: Sequence[Iteration]) -> Drift | None:
    """By the numbers of iterations; by their places where a log starts again."""
    places = _numbers(used)
    if any(after <= before for before, after in pairwise(places)):
        places = [*range(1, len(used) + 1)]
    return drift_of(places, _lengths_ns(used))


def told(drift: Drift | None, few: Missing) -> OrMissing[DriftOf]:
    """A drift as the document has it; `few`: why there is none."""
    if drift is None:
        return few
    first, last = round(drift.first), round(drift.last)
    return copied(
        DriftOf,
        drift,
        first=first,
        last=last,
        change=last - first,
        change_frac=(last - first) / first if first else 0.0,
        each=drift.slope,
        each_low=drift.low,
        each_high=drift.high,
        jump_at=of_known(round, drift.at),
    )


def compared_lengths(base: TrainingLog, new: TrainingLog, drifts: bool) -> tuple[Lengths, Lengths]:
    """The steady iterations of both logs and those far above: pauses are part of a mean.

    Where one drifts, those whose numbers both logs hold, less the line that both follow together:
    it is part of no difference, and would pass for how steps vary.
    """
    base_used, new_used = _steady(base), _steady(new)
    base_ns, new_ns = _lengths_ns(base_used), _lengths_ns(new_used)
    numbered = dict(zip(_numbers(base_used), base_ns, strict=True))
    numbered_new = dict(zip(_numbers(new_used), new_ns, strict=True))
    shared = sorted(numbered.keys() & numbered_new.keys())
    if not drifts or len(shared) < MANY.value:
        return base_ns, new_ns
    kept = np.array([[numbered[place], numbered_new[place]] for place in shared])
    line = drift_of(shared, kept.mean(axis=1).tolist())
    if line is not None:
        off = line.slope * (np.array(shared) - sum(shared) / len(shared))
        kept -= np.rint(off).astype(np.int64)[:, None]
    return tuple(kept[:, 0].tolist()), tuple(kept[:, 1].tolist())


def _steady(log: TrainingLog) -> tuple[Iteration, ...]:
    steady = steady_step(log)
    if steady:
        return steady.with_far_above
    return ()


def _typical(used: Iterable[Iteration], rate: str) -> float | Missing:
    values: Iterable[float | None] = map(attrgetter(rate), used)
    if printed := [value for value in values if value is not None]:
        return median(printed)
    return _UNPRINTED


def _batch(log: TrainingLog) -> int | Missing:
    sizes = {iteration.global_batch_size for iteration in log.iterations}
    return or_gap(only_one(sizes), _UNPRINTED)


def _memory(log: TrainingLog) -> Iterator[MemoryOf]:
    """Each figure that is reported; its drift by the rank that reports it most often."""
    few = lacking("files.no-report", least=f"{MANY.value:.0f}")
    for figure in get_args(MemoryFigure):
        sizes = defaultdict[int | None, list[int]](list)
        for report in log.memory:
            size = getattr(report, f"{figure}_bytes")
            if size is not None:
                sizes[report.rank].append(size)
        if sizes:
            longest = max(sizes.values(), key=len)
            drift = drift_of([*range(1, len(longest) + 1)], longest)
            most = max(map(max, sizes.values()))
            yield MemoryOf(
                figure, most_bytes=most, reports_count=len(longest), drift=told(drift, few)
            )

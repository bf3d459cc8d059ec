"""The figures of each rank of a run, read off the tables of all ranks."""

from dataclasses import dataclass

import numpy as np

from traces.columns import FloatArray
from traces.ranks.charge import ByStep
from traces.ranks.mend import Judged
from traces.ranks.side_by_side import means_of


@dataclass(frozen=True, slots=True)
class RankFigures:
    """One rank of the run. `index` is that of its summary as given, `group` that of `RunAnalysis.groups`.

    Times are of a mean step of the run: waiting in collectives for others, and what others waited for this
    one. `device_factor`: how many times as long its kernels take as those of ranks like it. `expert_ns`: its
    grouped GEMMs. None where it is not known. `by_step_*`: of each step of the run, or of several in a column
    (`steps_per_column`).
    """

    index: int
    rank: int | None
    group: int
    step_ns: int | None
    waited_ns: int
    caused_ns: int | None
    device_factor: float | None
    expert_ns: int | None = None
    by_step_length_ns: tuple[int | None, ...] = ()
    by_step_waited_ns: tuple[int | None, ...] = ()
    by_step_caused_ns: tuple[int | None, ...] | None = ()


def figures_of_ranks(judged: Judged, by_step: ByStep) -> tuple[RankFigures, ...]:
    """The figures of the ranks used, in their order."""
    together, grid, charged = judged.together, judged.grid, judged.charged
    group_of = {place: number for number, group in enumerate(judged.alike) for place in group.places}
    steps = max(1, grid.step_count)
    nothing = [None] * len(together.used)
    caused_ns = (charged.caused_ns // steps).tolist()
    by_step_caused_ns = _whole(by_step.caused_ns)
    known = judged.aligned.clocks.aligned
    columns = (
        together.indices,
        [summary.identity.rank for summary in together.used],
        [group_of[place] for place in range(len(together.used))],
        medians_of(grid.length_ns),
        (charged.waited_ns // steps).tolist(),
        caused_ns if known else nothing,
        [None if factor != factor else factor for factor in judged.factor.tolist()],
        means_of(grid.grouped_ns),
        _whole(by_step.length_ns),
        _whole(by_step.waited_ns),
        by_step_caused_ns if known else nothing,
    )
    return tuple(RankFigures(*one) for one in zip(*columns, strict=True))


def medians_of(table: FloatArray) -> list[int | None]:
    """Of each row the median of what is known, of an even number the mean of the two, rounded down."""
    if not table.size:
        return [None] * len(table)
    count = (~np.isnan(table)).sum(axis=1)
    rows, ordered = np.arange(len(table)), np.sort(table, axis=1)  # NaN last
    both = ordered[rows, np.maximum(count - 1, 0) // 2] + ordered[rows, count // 2]
    return [None if value != value else int(value) // 2 for value in both.tolist()]


def _whole(table: FloatArray) -> list[tuple[int | None, ...]]:
    unknown = np.isnan(table)
    whole = np.rint(np.where(unknown, 0.0, table)).astype(np.int64).astype(object)
    whole[unknown] = None
    return list(map(tuple, whole.tolist()))

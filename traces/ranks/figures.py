"""The figures of each rank of a run, read off the tables of all ranks."""

import math
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import numpy as np

from traces.columns import FloatArray
from traces.missing import Missing, gap
from traces.ranks.charge import ByStep
from traces.ranks.mend import Judged
from traces.ranks.side_by_side import means_of
from traces.sections.run import Late, RankInRun

T = TypeVar("T")


NO_STEPS: Final = gap("the ranks share no step", "record whole steps of all ranks at the same time")
_NO_KIND: Final = gap("no sizes of this rank's collectives are recorded", "as for traffic")


def figures_of_ranks(
    judged: Judged, by_step: ByStep, late: Late | Missing, given: Sequence[Mapping[str, int]] | Missing
) -> tuple[RankInRun, ...]:
    """The figures of the ranks used, in their order. `given`: bytes that each gives, by kind.

    Times are of a mean step of the run: waiting in collectives for others, and what others waited for this
    one. `device_factor`: how many times as long its kernels take as those of ranks like it. `expert_ns`: its
    grouped GEMMs.
    """
    together, grid, charged = judged.together, judged.grid, judged.charged
    group_of = {place: number for number, group in enumerate(judged.alike) for place in group.places}
    steps, known = max(1, grid.step_count), judged.aligned.clocks.aligned
    unknown = late if isinstance(late, Missing) else gap("clocks could not be aligned", "record more steps")
    caused_ns, by_step_caused_ns = (charged.caused_ns // steps).tolist(), _whole(by_step.caused_ns)
    step_ns, waited_ns = medians_of(grid.length_ns), (charged.waited_ns // steps).tolist()
    factor, expert_ns = judged.factor.tolist(), means_of(grid.grouped_ns)
    lengths_ns, by_step_waited_ns = _whole(by_step.length_ns), _whole(by_step.waited_ns)
    return tuple(
        RankInRun(
            index=place,
            rank=summary.identity.rank,
            group=group_of[place],
            step_ns=or_no_steps(step_ns[place]),
            waited_ns=waited_ns[place],
            caused_ns=caused_ns[place] if known else unknown,
            device_factor=None if math.isnan(factor[place]) else factor[place],
            expert_ns=or_no_steps(expert_ns[place]),
            given_bytes=given if isinstance(given, Missing) else given[place] or _NO_KIND,
            step_lengths_ns=lengths_ns[place],
            waited_by_step_ns=by_step_waited_ns[place],
            caused_by_step_ns=by_step_caused_ns[place] if known else unknown,
        )
        for place, summary in enumerate(together.used)
    )


def or_no_steps(value: T | None) -> T | Missing:
    """The value; why there is none where ranks share no step."""
    return NO_STEPS if value is None else value


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

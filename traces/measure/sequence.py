"""One step in the order of its launches: what another recording is aligned with, place by place."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

import numpy as np

from traces.arrays import (
    BoolArray,
    IntArray,
    columns_of,
    count_from_0,
    ints,
    listed,
    order_of,
    row_by_row,
    zeros,
)
from traces.columns import NULL
from traces.groups import first_of, group_of, sums_of
from traces.intervals import ns_in, spans
from traces.limits import Limit
from traces.measure.folding import fold
from traces.measure.kernel_table import shortened
from traces.measure.ledger import KEY_BASE
from traces.measure.step_timeline import KEY_NAMES, stretch_of, typical_step
from traces.missing import Missing, gap
from traces.sections.tables import Kind, Loops, Phase, Sequence
from traces.steps.found import Steps, no_steps
from traces.timeline import Activities, RankTimeline, Source
from traces.training import roles_of

RUNS: Final = Limit(
    4_000,
    "runs",
    "ours: 70 kB of a result, and two of them are aligned in half a second; loops are one run each",
)
_PHASES: Final[tuple[Phase | None, ...]] = (None, "forward", "backward", "optimizer")


def measure_sequence(rank: RankTimeline, steps: Steps) -> Sequence | Missing:
    """The activities with time in the step nearest to the median, or in the window where there are
    none.

    `work_ns` is that of the mean step, as the ledger's: of one typical step some kernels of mixed
    length are far from it. In the order of their launches: streams differ in when they run, not in
    what was launched first. Where a launch was not recorded, as they ran.
    """
    step = typical_step(steps)
    work_ns = ns_in(rank.activities, spans(stretch_of(steps, step)))
    mine = np.flatnonzero(work_ns > 0)
    mine = mine[_order(rank.activities, mine)]
    phase = _phases(rank, mine)
    rows = rank.activities.take(mine)
    key = ints(rows.key) + KEY_BASE[rows.bucket]
    kind = group_of(rows.name, key, phase)
    kinds = _kinds(rank, rows, kind, phase)
    folded = fold(kind, RUNS.whole)
    if folded is None:
        return gap(
            f"the order of {len(mine):,} activities of a step repeats itself too little to be kept",
            "record with fewer microbatches a step",
        )
    loops = columns_of(folded.loops, 3)
    return Sequence(
        step=no_steps(rank.columns.info.kind) if step is None else step.index,
        kinds=kinds,
        of=listed(folded.of),
        run_length=listed(folded.length),
        work_ns=tuple(_mean_works_ns(rank.activities, steps, work_ns, mine, folded.run)),
        loops=Loops(*map(listed, loops)),
    )


def _mean_works_ns(
    rows: Activities, steps: Steps, work_ns: IntArray, mine: IntArray, run: IntArray
) -> Iterator[int]:
    """The work of each run of `mine`, as long as those of its name and key are in the mean step.

    `work_ns`: of all rows in the typical step.
    """
    alike = group_of(rows.name, ints(rows.key) + KEY_BASE[rows.bucket])
    first = mine[first_of(run)]
    whole_ns, typical_ns = (
        sums_of(times_ns, alike, len(rows))[alike[first]]
        for times_ns in (ns_in(rows, steps.windows), work_ns)
    )
    count = len(steps.used) or 1
    works_ns = sums_of(work_ns[mine], run, len(first))
    for mine_ns, all_ns, usual_ns in row_by_row(works_ns, whole_ns, typical_ns):
        yield round(Fraction(mine_ns * all_ns, usual_ns * count))


def _order(rows: Activities, mine: IntArray) -> IntArray:
    """By launch, then by start; by start alone where a launch is unknown."""
    launch_ns, start_ns = rows.launch_ns[mine], rows.start_ns[mine]
    if (launch_ns == NULL).any():
        return order_of(start_ns)
    return np.lexsort((start_ns, launch_ns))


def _phases(rank: RankTimeline, mine: IntArray) -> IntArray:
    """Of each of some kernels, in order, its place in `_PHASES`.

    From the first forward kernel by name to the last launch of autograd, what others launch is
    forward.
    """
    roles = roles_of(rank)
    autograd, kernel = roles.autograd[mine], rank.activities.source[mine] == Source.KERNEL
    phase = zeros(len(mine))
    forward = np.flatnonzero(roles.forward[mine])
    if autograd.any() and len(forward):
        phase[int(forward[0]) : int(np.flatnonzero(autograd)[-1])] = 1
    phase[forward] = 1
    phase[roles.backward[mine]] = 2
    phase[roles.optimizer[mine]] = 3
    phase[~kernel] = 0
    return phase


def _kinds(
    rank: RankTimeline, rows: Activities, kind: IntArray, phase: IntArray
) -> tuple[Kind, ...]:
    names = rank.columns.kernel_names
    is_copy = rows.is_transfer
    sizes = _sizes(rank, rows, is_copy, kind)
    kinds = []
    for place, at in enumerate(first_of(kind).tolist()):
        code, key = int(rows.name[at]), KEY_NAMES[rows.key[at] + KEY_BASE[rows.bucket[at]]]
        name = shortened(names[code]) if code >= 0 else None
        size = sizes[place] if is_copy[at] else None
        kinds.append(Kind(name, key, _PHASES[phase[at]], size))
    return tuple(kinds)


def _sizes(
    rank: RankTimeline, rows: Activities, is_copy: BoolArray, kind: IntArray
) -> list[int | Missing]:
    """Bytes of the copies of each kind, unknown where those of one are."""
    size_bytes = rank.columns.copies.size_bytes[rows.row[is_copy]]
    count = count_from_0(kind)
    unknown = np.bincount(kind[is_copy][size_bytes == NULL], minlength=count)
    sums = sums_of(size_bytes, kind[is_copy], count).tolist()
    for place in np.flatnonzero(unknown):
        sums[place] = rank.lacks("the size of some copies was not recorded", "version")
    return sums

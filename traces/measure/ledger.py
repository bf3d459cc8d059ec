"""The ledger: every figure that two runs can be compared by, row by row and step by step, exact.

Three groups of rows. `budget`: compute by class, exposed communication and copies by kind, idle by
the reason why no compute ran, or whole where that is not told; in every step they add up to its
window. `absent`: why no compute ran, whatever else did; in every step they add up to the window
less its compute. `moe`: modules of MoE layers by pass, wall time of each, which may overlap and add
up to nothing.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

import numpy as np

from traces.account.pieces import REASONS, AbsentPieces
from traces.arrays import IntArray, Lasting, distinct, ints, listed, ranges_of, row_by_row
from traces.frozen import frozen
from traces.groups import sums_of
from traces.intervals import Spans, instants_in, instants_of, ns_in, spans, subtract
from traces.measure.budget import WindowBudget, measure_budget, sums_by_name
from traces.missing import Missing, OrMissing, known
from traces.sections.rank import Moe
from traces.sections.tables import Group, LedgerRow
from traces.steps.found import Steps
from traces.texts import Texts
from traces.timeline import KEYS, Activities, Bucket


@frozen
class LedgerBorders(Lasting):
    """Disjoint stretches in order, shape (k,): the used steps, which may touch, else the
    windows.
    """

    start_ns: IntArray
    end_ns: IntArray


@frozen
class Cut(Lasting):
    """Pieces of intervals, shape (m,): of which interval, in which stretch, and where."""

    of: IntArray
    step: IntArray
    start_ns: IntArray
    end_ns: IntArray


def borders_of(steps: Steps) -> Lasting:
    """The used steps; where there are none, the one window."""
    if steps.used:
        return LedgerBorders(*steps.borders_ns)
    return steps.windows


def cut_at(start_ns: IntArray, end_ns: IntArray, borders: Lasting) -> Cut:
    """Cut intervals [start, end), shape (n,), at the borders; what lies outside of all steps is
    left out.
    """
    first = np.searchsorted(borders.end_ns, start_ns, "right")
    last = np.searchsorted(borders.start_ns, end_ns) - 1
    count = np.where(end_ns > start_ns, np.maximum(last - first + 1, 0), 0)
    of = np.repeat(np.arange(len(start_ns)), count)
    step = ranges_of(first, first + count)
    start = np.maximum(start_ns[of], borders.start_ns[step])
    return Cut(of, step, start, np.minimum(end_ns[of], borders.end_ns[step]))


def per_step_ns(held: Spans, borders: Lasting) -> IntArray:
    """How much of a set of instants each step holds, shape (k,)."""
    pieces = cut_at(held.start_ns, held.end_ns, borders)
    return sums_of(pieces.length_ns, pieces.step, len(borders))


def measure_ledger(
    rows: Activities,
    steps: Steps,
    absent: AbsentPieces | Missing,
    moe: OrMissing[Moe],
) -> tuple[LedgerRow, ...]:
    """All rows with anything in them, over the used steps or the one window; walls are for others
    to name.

    `count`: activities with time in the windows; for idle and reasons, stretches of time.
    `work_ns`: their summed time in the windows, however much of it another row or another activity
    of this one also has. `per_step_ns`: wall time, an entry per used step, one where there are no
    steps. `rows` carry the resolved kinds. Where `absent` or `moe` is missing, that group has no
    rows.
    """
    borders, pieces, known_moe = borders_of(steps), known(absent), known(moe)
    result = [*_budget_rows(rows, steps, pieces)]
    for reason, within in _by_reason(pieces, steps.windows) if pieces else ():
        result += _stretches(reason, "absent", within, borders)
    for row in known_moe.rows if known_moe else ():
        name = f"moe.{row.module}.{row.pass_}"
        result.append(LedgerRow(name, "moe", None, row.count, row.work_ns, row.per_step_ns))
    return tuple(result)


KEY_BASE: Final = np.cumsum([0, *(len(KEYS[bucket]) for bucket in Bucket)])
"""Of each bucket the place of its first key among those of all."""


def keys_named(prefixes: Mapping[Bucket, str]) -> Texts:
    """Keys of all buckets, each behind the prefix of its bucket."""
    return tuple(f"{prefixes[bucket]}.{key}" for bucket in Bucket for key in KEYS[bucket])


def _budget_rows(
    rows: Activities, steps: Steps, absent: AbsentPieces | None
) -> Iterator[LedgerRow]:
    """The budget of each step, measured on what runs in it; work that is wholly hidden has rows of
    zeros.
    """
    borders = borders_of(steps)
    columns = list(map(_parts_ns, _budgets(rows, borders)))
    in_windows_ns, code = ns_in(rows, steps.windows), rows.key + KEY_BASE[rows.bucket]
    counts = sums_by_name(ints(in_windows_ns > 0), code, _NAMES)
    work_ns = sums_by_name(in_windows_ns, code, _NAMES)
    for name in dict.fromkeys(chain(counts, *columns)):
        per_step = tuple(column.get(name, 0) for column in columns)
        yield LedgerRow(name, "budget", None, counts.get(name, 0), work_ns.get(name, 0), per_step)
    idle = subtract(steps.windows, instants_of(rows))
    if absent is None:
        yield from _stretches("idle", "budget", idle, borders)
        return
    for reason, within in _by_reason(absent, idle):
        yield from _stretches(f"idle.{reason}", "budget", within, borders)


def _budgets(rows: Activities, borders: Lasting) -> Iterator[WindowBudget]:
    latest = np.maximum.accumulate(rows.end_ns)
    for start, end in row_by_row(borders.start_ns, borders.end_ns):
        low = np.searchsorted(latest, start)
        high = np.searchsorted(rows.start_ns, end)
        yield measure_budget(rows.take(np.arange(low, high)), spans((start, end)))


_PREFIX: Final = {
    Bucket.COMPUTE: "compute",
    Bucket.COMM: "exposed_comm",
    Bucket.COPY: "exposed_copy",
}
_NAMES: Final = keys_named(_PREFIX)


def _parts_ns(budget: WindowBudget) -> dict[str, int]:
    maps = (
        budget.compute_by_class_ns,
        budget.exposed_comm_by_kind_ns,
        budget.exposed_copy_by_kind_ns,
    )
    return {
        f"{_PREFIX[bucket]}.{key}": ns
        for bucket, parts in zip(Bucket, maps, strict=True)
        for key, ns in parts.items()
    }


def _by_reason(absent: AbsentPieces, within: Spans) -> Iterator[tuple[str, Spans]]:
    for reason in distinct(absent.reason).tolist():
        yield REASONS[reason], instants_in(within, absent, absent.reason == reason)


def _stretches(name: str, group: Group, within: Spans, borders: Lasting) -> Iterator[LedgerRow]:
    """A row of stretches of time, each of which is its own work; none where there are no
    stretches.
    """
    if len(within):
        per_step = listed(per_step_ns(within, borders))
        yield LedgerRow(name, group, None, len(within), within.total_ns, per_step)

"""A result's figures as one long CSV table."""

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Final

from heuristics.result.result import Result
from reports.content.blocks import Detail
from reports.result.codec import lowered
from traces.missing import OrMissing, known
from traces.sections.rank import Absent, Moe, Rank
from traces.spelling import printable

COLUMNS: Final = ("trace", "process", "device", "rank", "group", "key", "ns", "frac")
_WIDTH: Final = 500
_FORMULA: Final = ("=", "+", "-", "@")

Row = tuple[str, str, OrMissing[int], OrMissing[float]]
"""Group, key, ns, and the share of the window."""


def write_csv(result: Result, detail: Detail) -> str:
    """One row per rank and figure, and per wall of the run, with a header; lines end in a line feed.

    Groups: `bucket`, `exposed_comm_kind`, `exposed_copy_kind`, `compute_class`, `absent` (keys such as
    `launch_starved.sync`), `moe` (`tax`, and the wall time of `dispatch.forward` and so on), `step` (of the
    used ones); of the whole run, without trace and rank, `wall` and `wall_kind` (`communication.tp`). `frac`
    is of the rank's window, for walls of the windows. What could not be told is an empty cell. `FULL` adds
    `dropped_step` and `unknown_kernel`.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for rank in result.ranks:
        of = (cell(rank.trace), known(rank.process), rank.device, known(rank.rank))
        writer.writerows((*of, *_cells(row)) for row in _of_rank(rank, detail))
    writer.writerows((None, None, None, None, *_cells(row)) for row in _of_walls(result))
    return out.getvalue()


def cell(value: object) -> object:
    """A text on one line, with an apostrophe before what a spreadsheet would take for a formula."""
    if not isinstance(value, str):
        return value
    shown = printable(value, _WIDTH)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown


def _cells(row: Row) -> tuple[object, ...]:
    group, key, time_ns, share = row
    return group, cell(key), known(time_ns), known(share)


def _of_rank(rank: Rank, detail: Detail) -> Iterator[Row]:
    window_ns, shares = rank.budget_ns.window, lowered(rank.budget_frac)
    yield from (("bucket", key, lowered(rank.budget_ns)[key], share) for key, share in shares.items())
    yield from _parts("exposed_comm_kind", known(rank.exposed_comm_by_kind_ns) or {}, window_ns)
    yield from _parts("exposed_copy_kind", rank.exposed_copy_by_kind_ns, window_ns)
    yield from _parts("compute_class", rank.compute_by_class_ns, window_ns)
    yield from _parts("absent", _absent(known(rank.absent_ns)), window_ns)
    if (moe := known(rank.moe)) is not None:
        yield from _moe(moe, window_ns)
    for step in rank.steps.used:
        length_ns = step.end_ns - step.start_ns
        yield "step", str(step.index), length_ns, length_ns / window_ns
    if detail is Detail.FULL:
        for step in rank.steps.dropped:
            yield "dropped_step", str(step.index), step.end_ns - step.start_ns, None
        for kernel in rank.unknown_kernels:
            yield "unknown_kernel", kernel.name, kernel.busy_ns, kernel.frac


def _parts(group: str, parts: Mapping[str, int | None], window_ns: int) -> Iterator[Row]:
    for key, time_ns in parts.items():
        yield group, key, time_ns, None if time_ns is None else time_ns / window_ns


def _absent(absent: Absent | None) -> Mapping[str, int | None]:
    """Every reason with its parts; the bare reasons where none could be told."""
    if absent is None:
        return dict.fromkeys(Absent.__struct_encode_fields__)
    whole = lowered(absent).items()
    parts = [(key, one) if isinstance(one, dict) else ("", {key: one}) for key, one in whole]
    return {f"{of}.{key}".lstrip("."): time_ns for of, one in parts for key, time_ns in one.items()}


def _moe(moe: Moe, window_ns: int) -> Iterator[Row]:
    """The tax and every module by pass."""
    yield "moe", "tax", moe.tax_ns, moe.tax_frac
    for row in moe.rows:
        yield "moe", f"{row.module}.{row.pass_}", row.wall_ns, row.wall_ns / window_ns


def _of_walls(result: Result) -> Iterator[Row]:
    for wall in result.walls:
        yield "wall", wall.id, wall.cost_ns, wall.cost_frac
        cost_ns, cost_frac = known(wall.cost_ns), known(wall.cost_frac)
        for kind, time_ns in (known(wall.cost_by_kind_ns) or {}).items():
            part = cost_frac * time_ns / cost_ns if cost_ns and cost_frac is not None else None
            yield "wall_kind", f"{wall.id}.{kind}", time_ns, part

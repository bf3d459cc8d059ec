"""A result's figures, or a comparison's, as one long CSV table: a header, lines that end in a line feed.

What could not be told is an empty cell. A text that a spreadsheet would take for a formula has an apostrophe
before it.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from heuristics.result.compared import Compared, ComparedChange, ComparedRow, Ends, KernelDelta
from heuristics.result.result import Result
from reports.content.blocks import Detail
from reports.result.codec import lowered
from traces.missing import OrMissing, known
from traces.sections.rank import Absent, Rank
from traces.spelling import printable

COLUMNS: Final = ("trace", "process", "device", "rank", "group", "key", "ns", "frac")
COMPARED: Final = (
    *("section", "row", "delta_ns", "frac", "base_ns", "new_ns", "count_ns", "duration_ns", "overlap_ns"),
    *("low_ns", "high_ns", "base_count", "new_count", "base", "new", "key", "note"),
)
_WIDTH: Final = 500
_FORMULA: Final = ("=", "+", "-", "@")

Row = tuple[str, str, OrMissing[int], OrMissing[float]]
"""Group, key, ns, and the share of the window."""
Cells = Mapping[str, object]
"""What a row of a comparison has, by column."""


def write_csv(result: Result, detail: Detail) -> str:
    """One row per rank and figure, and per wall of the run.

    Groups: `bucket`, `exposed_comm_kind`, `exposed_copy_kind`, `compute_class`, `absent` (keys such as
    `launch_starved.sync`), `moe` (`tax`, and the wall time of `dispatch.forward` and so on), `step` (of the
    used ones); of the whole run, without trace and rank, `wall` and `wall_kind` (`communication.tp`). `frac`
    is of the rank's window, for walls of the windows. `FULL` adds `dropped_step` and `unknown_kernel`.
    """
    return csv_text(COLUMNS, _of_run(result, detail))


def _of_run(result: Result, detail: Detail) -> Iterator[Sequence[object]]:
    for rank in result.ranks:
        of = (rank.trace, known(rank.process), rank.device, known(rank.rank))
        yield from ((*of, *map(known, row)) for row in _of_rank(rank, detail))
    yield from ((None, None, None, None, *map(known, row)) for row in _of_walls(result))


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue()


def _cell(value: object) -> object:
    if not isinstance(value, str):
        return value
    shown = printable(value, _WIDTH)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown


def _of_rank(rank: Rank, detail: Detail) -> Iterator[Row]:
    window_ns, shares = rank.budget_ns.window, lowered(rank.budget_frac)
    yield from (("bucket", key, lowered(rank.budget_ns)[key], share) for key, share in shares.items())
    yield from _parts("exposed_comm_kind", known(rank.exposed_comm_by_kind_ns) or {}, window_ns)
    yield from _parts("exposed_copy_kind", rank.exposed_copy_by_kind_ns, window_ns)
    yield from _parts("compute_class", rank.compute_by_class_ns, window_ns)
    yield from _parts("absent", _absent(known(rank.absent_ns)), window_ns)
    if (moe := known(rank.moe)) is not None:
        yield "moe", "tax", moe.tax_ns, moe.tax_frac
        yield from _parts("moe", {f"{row.module}.{row.pass_}": row.wall_ns for row in moe.rows}, window_ns)
    used = {str(step.index): step.end_ns - step.start_ns for step in rank.steps.used}
    yield from _parts("step", used, window_ns)
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


def _of_walls(result: Result) -> Iterator[Row]:
    for wall in result.walls:
        yield "wall", wall.id, wall.cost_ns, wall.cost_frac
        cost_ns, cost_frac = known(wall.cost_ns), known(wall.cost_frac)
        for kind, time_ns in (known(wall.cost_by_kind_ns) or {}).items():
            part = cost_frac * time_ns / cost_ns if cost_ns and cost_frac is not None else None
            yield "wall_kind", f"{wall.id}.{kind}", time_ns, part


def write_comparison_csv(compared: Compared) -> str:
    """One row per figure.

    Sections: `size` (its row names its source; the note is the verdict), `step` (of the traces),
    `attribution`, `reason` and `module` (`frac`: share of the step's difference; the note is the wall),
    `layer` (the note is the module that moved most), `kernel` (`base_ns`, `new_ns`: mean of one; `base`,
    `new`: grids; `key`: class or kind; the note is the change), `changed` (the note lists rows it can
    explain), `suspect` (`delta_ns`: what it explains; the note is its title), `difference` (the note is its
    state), `pair`, `gate`. Positive is slower, ns are per step.
    """
    return csv_text(COMPARED, ([row.get(column) for column in COMPARED] for row in _rows(compared)))


def _rows(compared: Compared) -> Iterator[Cells]:
    yield from _whole(compared)
    yield from _of_rows("attribution", compared.attribution)
    yield from _of_rows("reason", compared.reasons)
    yield from _of_rows("module", compared.modules)
    for layer in compared.layers:
        yield {**_alike(layer), "section": "layer", "row": str(layer.layer), "note": layer.module}
    yield from map(_kernel, compared.kernels)
    yield from map(_change, compared.changed)
    for one in compared.suspects:
        yield {"section": "suspect", "row": one.id, "delta_ns": one.explains_ns, "note": one.title}
    for limit in compared.comparable.differences:
        yield {**_alike(limit), "section": "difference", "row": limit.what, "note": limit.state}
    for pair in compared.pairs:
        name = f"{pair.base.index}-{pair.new.index}"
        yield {"section": "pair", "row": name, "delta_ns": known(pair.step_delta_ns), "note": pair.by}
    if gate := compared.gate:
        yield {"section": "gate", "row": "limit", "frac": gate.limit_frac, "note": gate.state}


def _whole(compared: Compared) -> Iterator[Cells]:
    size, base, new = compared.size, compared.base, compared.new
    means = {"base_ns": size.base_mean_ns, "new_ns": size.new_mean_ns, "frac": size.delta_frac}
    yield {**_alike(size), "section": "size", "row": size.source, "note": compared.verdict, **means}
    yield {
        "section": "step",
        "row": "trace",
        "delta_ns": compared.step_delta_ns,
        "frac": known(compared.step_delta_frac),
        "base_ns": base.step_ns,
        "new_ns": new.step_ns,
        "base_count": base.steps.count,
        "new_count": new.steps.count,
        **_ends(compared.step_delta_ci95_ns),
    }


def _of_rows(section: str, rows: Sequence[ComparedRow]) -> Iterator[Cells]:
    for row in rows:
        own = {"section": section, "frac": row.share_frac, "note": row.wall}
        yield {**_alike(row), **own, **_ends(row.ci95_ns)}


def _ends(interval_ns: OrMissing[Ends]) -> Cells:
    return dict(zip(("low_ns", "high_ns"), known(interval_ns) or (), strict=False))


def _kernel(kernel: KernelDelta) -> Cells:
    grids = {"base": _grid(kernel.base_grid), "new": _grid(kernel.new_grid)}
    lengths = {"base_ns": kernel.base_each_ns, "new_ns": kernel.new_each_ns}
    own = {"section": "kernel", "row": kernel.name, "note": kernel.change}
    return {**_alike(kernel), **own, **grids, **lengths}


def _grid(grid: tuple[int, ...] | None) -> str:
    return "x".join(map(str, grid or ()))


def _change(one: ComparedChange) -> Cells:
    base, new = (
        "withheld" if one.withheld else _value(value) if is_said else "not recorded"
        for value, is_said in ((one.base, one.said_base), (one.new, one.said_new))
    )
    note = " ".join(one.can_explain)
    return {"section": "changed", "row": one.what, "base": base, "new": new, "note": note}


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _alike(source: Struct) -> Cells:
    names = (name for name in COMPARED if name in source.__struct_fields__)
    return {name: known(getattr(source, name)) for name in names}

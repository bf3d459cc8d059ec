"""A comparison's figures as one long CSV table."""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from heuristics.result.compared import Compared, ComparedChange, ComparedRow, Ends, KernelDelta
from reports.write.csv_analysis import cell
from traces.missing import OrMissing, known

COLUMNS: Final = (
    "section",
    "row",
    "delta_ns",
    "frac",
    "base_ns",
    "new_ns",
    "count_ns",
    "duration_ns",
    "overlap_ns",
    "low_ns",
    "high_ns",
    "base_count",
    "new_count",
    "base",
    "new",
    "key",
    "note",
)

Row = Mapping[str, object]


def write_comparison_csv(compared: Compared) -> str:
    """One row per figure with a header; lines end in a line feed.

    Sections: `size` (its row names its source; the note is the verdict), `step` (of the traces),
    `attribution`, `reason` and `module` (`frac`: share of the step's difference; the note is the wall),
    `layer` (the note is the module that moved most), `kernel` (`base_ns`, `new_ns`: mean of one; `base`,
    `new`: grids; `key`: class or kind; the note is the change), `changed` (the note lists rows it can
    explain), `suspect` (`delta_ns`: what it explains; the note is its title), `difference` (the note is its
    state), `pair`, `gate`. Positive is slower, ns are per step. What could not be told is an empty cell. A
    name that a spreadsheet would take for a formula has an apostrophe before it.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in _rows(compared):
        writer.writerow({key: cell(value) for key, value in row.items()})
    return out.getvalue()


def _rows(compared: Compared) -> Iterator[Row]:
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


def _whole(compared: Compared) -> Iterator[Row]:
    """The size that is judged, and the difference of the traces that the rows add up to."""
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


def _of_rows(section: str, rows: Sequence[ComparedRow]) -> Iterator[Row]:
    for row in rows:
        own = {"section": section, "frac": row.share_frac, "note": row.wall}
        yield {**_alike(row), **own, **_ends(row.ci95_ns)}


def _ends(interval_ns: OrMissing[Ends]) -> Row:
    return dict(zip(("low_ns", "high_ns"), known(interval_ns) or (), strict=False))


def _kernel(kernel: KernelDelta) -> Row:
    grids = {"base": _grid(kernel.base_grid), "new": _grid(kernel.new_grid)}
    lengths = {"base_ns": kernel.base_each_ns, "new_ns": kernel.new_each_ns}
    own = {"section": "kernel", "row": kernel.name, "note": kernel.change}
    return {**_alike(kernel), **own, **grids, **lengths}


def _grid(grid: tuple[int, ...] | None) -> str:
    return "x".join(map(str, grid or ()))


def _change(one: ComparedChange) -> Row:
    base, new = (
        "withheld" if one.withheld else _value(value) if is_said else "not recorded"
        for value, is_said in ((one.base, one.said_base), (one.new, one.said_new))
    )
    note = " ".join(one.can_explain)
    return {"section": "changed", "row": one.what, "base": base, "new": new, "note": note}


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _alike(source: Struct) -> Row:
    """The columns that a source has under the same name."""
    names = (name for name in COLUMNS if name in source.__struct_fields__)
    return {name: known(getattr(source, name)) for name in names}

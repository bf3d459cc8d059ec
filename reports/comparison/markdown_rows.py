"""Where the difference lies, in a ticket: rows that add up, and folded tables of the rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reports.comparison.figures import added_share, exact, grid, per_step, share
from reports.comparison.sentences import has_steps, layer_sentence, noise_sentence, pair_sentence, per
from reports.document import Document
from reports.markdown_blocks import Block, Code, Fold, Line, Phrase, folded, table
from reports.words import milliseconds

_ROWS: Final = 8
_NAME: Final = 120
_LAYERS: Final = 3
_UNTOLD: Final = "not told"
_HEAD: Final = ("base", "new", "new - base", "Share", "count", "duration", "overlap")


def row_blocks(document: Document) -> Iterator[Block]:
    """Rows, the largest difference first, those beyond the first few as one; `noise` and the sum last."""
    rows = document["attribution"]
    named = [row for row in rows if row["row"] != "noise"]
    noise = [row for row in rows if row["row"] == "noise"]
    smaller = named[_ROWS:]
    cells = [*map(_cells, named[:_ROWS])]
    if smaller:
        cells.append(_sum(f"{len(smaller)} smaller rows", smaller))
    cells += [*map(_cells, noise), _sum("step" if has_steps(document) else "window", rows)]
    yield Line(
        f"In {per(document)}; shares are of all that moved; the last three columns are what a difference is "
        "made of:"
    )
    yield from table(["Row", *_HEAD], cells, numbers=7)
    if document["layers"] and document["verdict"] != "no_change":
        yield Line(layer_sentence(document["layers"][:_LAYERS]))
    if len(document["pairs"]) > 1:
        yield Line(pair_sentence(document["pairs"]))


def detail_blocks(document: Document) -> Iterator[Fold]:
    """Folded: kernels, intervals of rows, reasons, modules, layers."""
    named = [row for row in document["attribution"] if row["row"] != "noise"]
    yield from folded("Smaller rows, ms per step", _table("Row", named[_ROWS:]))
    yield from folded("Kernels that differ, ms of work per step (not of wall time)", _kernels(document))
    yield from folded("95 % intervals of rows, ms per step", _intervals(document["attribution"]))
    yield from folded("What is in the row of noise", _noise(document["attribution"]))
    yield from folded("Why no compute ran, ms per step", _table("Reason", document["reasons"]))
    title = "MoE modules by pass, ms of wall time per step, which may overlap"
    yield from folded(title, _table("Module", document["modules"]))
    yield from folded("MoE layers, ms of wall time per step", _layers(document["layers"]))


def _table(name: str, rows: list[Document]) -> Iterator[Block]:
    yield from table([name, *_HEAD], map(_cells, rows), numbers=7)


def _cells(row: Document) -> list[str]:
    effects = [_told(row[key]) for key in ("count_ns", "duration_ns", "overlap_ns")]
    lengths = (milliseconds(row["base_ns"]), milliseconds(row["new_ns"]), exact(row["delta_ns"]))
    return [row["row"], *lengths, share(row["share_frac"]), *effects]


def _sum(name: str, rows: list[Document]) -> list[str]:
    """Rows added up; an effect only where every row tells it."""
    whole = {key: sum(row[key] for row in rows) for key in ("base_ns", "new_ns", "delta_ns")}
    effects = {
        key: None if any(row[key] is None for row in rows) else sum(row[key] for row in rows)
        for key in ("count_ns", "duration_ns", "overlap_ns")
    }
    return _cells({"row": name, **whole, **effects, "share_frac": added_share(rows)})


def _told(ns: int | None) -> str:
    return _UNTOLD if ns is None else exact(ns)


def _kernels(document: Document) -> Iterator[Block]:
    rows: list[list[Phrase]] = [
        [
            (Code(one["name"], _NAME),),
            one["key"],
            one["change"],
            exact(one["delta_ns"]),
            *(per_step(one[f"{side}_count"]) for side in ("base", "new")),
            *(_each(one[f"{side}_each_ns"]) for side in ("base", "new")),
            *(grid(one[f"{side}_grid"]) for side in ("base", "new")),
        ]
        for one in document["kernels"] or ()
    ]
    of_both = [f"{what}, {side}" for what in ("count", "ms each", "grid") for side in ("base", "new")]
    yield from table(["Kernel", "Class or kind", "Change", "new - base", *of_both], rows, numbers=7)


def _each(ns: int | None) -> str:
    return "" if ns is None else milliseconds(ns)


def _intervals(rows: list[Document]) -> Iterator[Block]:
    cells = [[row["row"], *map(exact, row["ci95_ns"])] for row in rows if row["ci95_ns"]]
    yield from table(["Row", "from", "to"], cells, numbers=2)


def _noise(rows: list[Document]) -> Iterator[Block]:
    for row in rows:
        if row["parts"]:
            yield Line((f"{noise_sentence(row)}: ", ", ".join(row["parts"]), "."))


def _layers(layers: list[Document]) -> Iterator[Block]:
    rows = [
        [
            str(one["layer"]),
            milliseconds(one["base_ns"]),
            milliseconds(one["new_ns"]),
            exact(one["delta_ns"]),
            one["module"],
            exact(one["module_delta_ns"]),
        ]
        for one in layers
    ]
    headers = ["Layer", "base", "new", "new - base", "Module that moved most", "its new - base"]
    yield from table(headers, rows, numbers=5)

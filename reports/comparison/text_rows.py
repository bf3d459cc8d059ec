"""Where the difference lies, as plain text: rows that add up, reasons, MoE modules and layers, kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reports.comparison.columns import aligned
from reports.comparison.figures import added_share, exact, share
from reports.comparison.sentences import (
    effect_sentence,
    has_steps,
    kernel_sentence,
    layer_sentence,
    noise_sentence,
    pair_sentence,
    per,
)
from reports.document import Document
from reports.layout import INDENT, wrap
from reports.words import milliseconds, printable

_ROWS: Final = 10
_EXPLAINED: Final = 5
_KERNELS: Final = 5
_LAYERS: Final = 3
_NAME: Final = 50
_HEAD: Final = ("base", "new", "new - base", "share")


def row_lines(document: Document, everything: bool) -> Iterator[str]:
    """Rows, the largest difference first, `noise` and the sum last; then what the largest are made of."""
    rows, delta_ns = document["attribution"], document["step_delta_ns"]
    whole = (document["base"]["step_ns"], document["new"]["step_ns"])
    named = [row for row in rows if row["row"] != "noise"]
    shown = len(named) if everything else _ROWS
    if not (named or everything):
        yield from wrap("no row differs by more than steps scatter.")
        return
    smaller = named[shown:]
    cells = [_cells(row) for row in named[:shown]]
    if smaller:
        cells.append(_added(f"{len(smaller)} smaller rows", smaller))
    noise = [row for row in rows if row["row"] == "noise"]
    cells += [_cells(row) for row in noise]
    name = "step" if has_steps(document) else "window"
    cells.append(_figures(name, *whole, delta_ns, share(added_share(rows))))
    yield from wrap(
        f"where the difference lies, {per(document)}; the rows add up exactly, shares are of all that moved:"
    )
    yield from aligned([("row", *_HEAD), *cells])
    yield from _made_of(named[: len(named) if everything else _EXPLAINED], everything)
    for row in noise:
        if not row["parts"]:
            continue
        yield from wrap(noise_sentence(row) + (f": {', '.join(row['parts'])}" if everything else "") + ".")
    if len(document["pairs"]) > 1:
        yield from wrap(pair_sentence(document["pairs"]))


def _made_of(rows: list[Document], everything: bool) -> Iterator[str]:
    """What the difference of each row is made of."""
    said = [(row, effect_sentence(row)) for row in rows]
    if any(effects for _, effects in said):
        yield from ("", *wrap("what they are made of, in ms:"))
    for row, effects in said:
        told = effects + (f"; 95 % {_ends(row['ci95_ns'])}" if everything and row["ci95_ns"] else "")
        if effects:
            yield from wrap(f"{row['row']}: {told}", INDENT, INDENT + "  ")


def _cells(row: Document) -> tuple[str, ...]:
    return _figures(row["row"], row["base_ns"], row["new_ns"], row["delta_ns"], share(row["share_frac"]))


def _added(name: str, rows: list[Document]) -> tuple[str, ...]:
    base_ns, new_ns, delta_ns = (sum(row[key] for row in rows) for key in ("base_ns", "new_ns", "delta_ns"))
    return _figures(name, base_ns, new_ns, delta_ns, share(added_share(rows)))


def _figures(name: str, base_ns: int, new_ns: int, delta_ns: int, part: str) -> tuple[str, ...]:
    return name, milliseconds(base_ns), milliseconds(new_ns), exact(delta_ns), part


def reason_lines(document: Document, everything: bool) -> Iterator[str]:
    """Why no compute ran, on demand."""
    if everything and document["reasons"]:
        yield from ("", *wrap(f"why no compute ran, {per(document)}:"))
        yield from aligned([("reason", *_HEAD), *map(_cells, document["reasons"])])


def moe_lines(document: Document, everything: bool) -> Iterator[str]:
    """Layers that moved most in a sentence; modules on demand."""
    if document["layers"] and document["verdict"] != "no_change":
        shown = len(document["layers"]) if everything else _LAYERS
        yield from wrap(layer_sentence(document["layers"][:shown]))
    if everything and document["modules"]:
        yield from ("", *wrap("MoE modules by pass, ms of wall time per step (they may overlap):"))
        yield from aligned([("module", *_HEAD), *map(_cells, document["modules"])])


def kernel_lines(document: Document, everything: bool) -> Iterator[str]:
    """Kernels that differ most, two lines each."""
    kernels = document["kernels"]
    if not kernels:
        return
    shown = len(kernels) if everything else _KERNELS
    yield from ("", *wrap("kernels that differ most, ms of work per step (not of wall time):"))
    for one in kernels[:shown]:
        yield f"{INDENT}{exact(one['delta_ns']):>12}  {printable(one['name'], _NAME)}"
        yield from wrap(kernel_sentence(one), INDENT + " " * 14)
    if (more := len(kernels) - shown) > 0:
        yield from wrap(f"{more} more: with --all.", INDENT + " " * 14)


def _ends(interval_ns: list[int]) -> str:
    return " to ".join(map(exact, interval_ns))

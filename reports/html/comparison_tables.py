"""Tables of the page as lists of cells, all texts: the first is the row's header."""

from __future__ import annotations

from typing import Final

from reports.comparison.figures import exact, grid, listed, per_step
from reports.comparison.sentences import change_words
from reports.document import Document
from reports.html.comparison_waterfall import cells, place_of
from reports.html.environment import named
from reports.words import milliseconds

Cells = list[str]

_CHANGES: Final = {
    "slower": "each slower",
    "faster": "each faster",
    "more": "more of them",
    "fewer": "fewer of them",
    "new": "only in new",
    "gone": "only in base",
    "grid": "another grid",
    "same": "the same",
}


def sums(rows: list[Document], document: Document) -> list[tuple[int | None, Cells]]:
    """Rows of the attribution, the reasons or the modules, each with its place in the attribution."""
    return [(place_of(document, row["row"]), _row(row)) for row in rows]


def _row(row: Document) -> Cells:
    told = cells(row)
    return [row["row"], told.delta, told.share, told.base, told.new, told.often, *told.effects]


def intervals(rows: list[Document]) -> list[Cells]:
    """The 95 % interval of each row that has one."""
    return [
        [row["row"], exact(row["delta_ns"]), *map(exact, row["ci95_ns"])] for row in rows if row["ci95_ns"]
    ]


def kernels(document: Document) -> list[Cells]:
    """Kernels that differ: name, class or kind, change, difference, how often, how long each, grid."""
    return [
        [
            named(one["name"]),
            one["key"],
            _CHANGES.get(one["change"], one["change"]),
            exact(one["delta_ns"]),
            _both(per_step(one["base_count"]), per_step(one["new_count"])),
            _both(_each(one["base_each_ns"]), _each(one["new_each_ns"])),
            _both(grid(one["base_grid"]), grid(one["new_grid"])),
        ]
        for one in document["kernels"] or ()
    ]


def _each(ns: int | None) -> str:
    return "" if ns is None else milliseconds(ns)


def _both(base: str, new: str) -> str:
    """One value where both are alike; a side that has none is a dash."""
    return base if base == new else f"{base or '–'} -> {new or '–'}"


def layers(document: Document) -> list[Cells]:
    """MoE layers, the largest difference first, each with the module that moved most."""
    return [
        [
            str(one["layer"]),
            milliseconds(one["base_ns"]),
            milliseconds(one["new_ns"]),
            exact(one["delta_ns"]),
            one["module"],
            exact(one["module_delta_ns"]),
        ]
        for one in document["layers"]
    ]


def changes(document: Document) -> list[Cells]:
    """What differs, what can explain something first: what, both values, who says so, what it can explain."""
    ordered = sorted(document["changed"], key=lambda one: not one["can_explain"])
    return [
        [one["what"], change_words(one), one["source"], listed(one["can_explain"]) or "no row that moved"]
        for one in ordered
    ]


def gaps(document: Document) -> list[Cells]:
    """What could not be told, why, and what would tell it."""
    return [[gap["path"], gap["reason"], gap["cure"]] for gap in document["missing"]]

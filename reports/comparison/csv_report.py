"""The comparison's figures as one long CSV table."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any, Final

from reports.comparison.figures import value_words
from reports.document import Document
from reports.words import printable

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
_FORMULA: Final = ("=", "+", "-", "@")
_WIDTH: Final = 500
_SECTIONS: Final = (
    ("attribution", "attribution"),
    ("reason", "reasons"),
    ("module", "modules"),
)


def render_comparison_csv(document: Document, everything: bool = False) -> str:
    """One row per figure with a header; lines end in a line feed. `everything` adds nothing: all is there.

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
    for row in _rows(document):
        writer.writerow({key: _cell(value) for key, value in row.items()})
    return out.getvalue()


def _cell(value: object) -> object:
    if not isinstance(value, str):
        return value
    shown = printable(value, _WIDTH)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown


def _rows(document: Document) -> Iterator[dict[str, Any]]:
    yield from _whole(document)
    for section, key in _SECTIONS:
        yield from (_row(section, row) for row in document[key])
    for layer in document["layers"]:
        yield _keep(layer, section="layer", row=str(layer["layer"]), note=layer["module"])
    for kernel in document["kernels"] or ():
        yield _kernel(kernel)
    for one in document["changed"]:
        yield _change(one)
    for one in document["suspects"]:
        yield {"section": "suspect", "row": one["id"], "delta_ns": one["explains_ns"], "note": one["title"]}
    for one in document["comparable"]["differences"]:
        values = {"base": one["base"], "new": one["new"]}
        yield {"section": "difference", "row": one["what"], **values, "note": one["state"]}
    for pair in document["pairs"]:
        name = f"{pair['base']['index']}-{pair['new']['index']}"
        yield {"section": "pair", "row": name, "delta_ns": pair["step_delta_ns"], "note": pair["by"]}
    if gate := document["gate"]:
        yield {"section": "gate", "row": "limit", "frac": gate["limit_frac"], "note": gate["state"]}


def _whole(document: Document) -> Iterator[dict[str, Any]]:
    """The size that is judged, and the difference of the traces that the rows add up to."""
    size = document["size"]
    means = {"base_ns": size["base_mean_ns"], "new_ns": size["new_mean_ns"], "frac": size["delta_frac"]}
    yield {**_keep(size, section="size", row=size["source"], note=document["verdict"]), **means}
    ends = _ends(document["step_delta_ci95_ns"])
    sides = {f"{side}_ns": document[side]["step_ns"] for side in ("base", "new")}
    counts = {f"{side}_count": document[side]["steps"]["count"] for side in ("base", "new")}
    moved = {"delta_ns": document["step_delta_ns"], "frac": document["step_delta_frac"]}
    yield {"section": "step", "row": "trace", **moved, **sides, **counts, **ends}


def _row(section: str, row: Document) -> dict[str, Any]:
    own = {"frac": row["share_frac"], **_ends(row["ci95_ns"])}
    return {**_keep(row, section=section, row=row["row"], note=row["wall"]), **own}


def _ends(interval_ns: list[int] | None) -> dict[str, int]:
    return dict(zip(("low_ns", "high_ns"), interval_ns or (), strict=False))


def _kernel(kernel: Document) -> dict[str, Any]:
    own = {f"{side}_ns": kernel[f"{side}_each_ns"] for side in ("base", "new")}
    grids = {side: "x".join(map(str, kernel[f"{side}_grid"] or ())) for side in ("base", "new")}
    kept = _keep(kernel, section="kernel", row=kernel["name"], note=kernel["change"])
    return {**kept, **own, **grids}


def _change(one: Document) -> dict[str, Any]:
    values = {
        side: "not shown" if one["withheld"] else value_words("", one[side], one[f"said_{side}"])
        for side in ("base", "new")
    }
    return {"section": "changed", "row": one["what"], **values, "note": " ".join(one["can_explain"])}


def _keep(source: Document, **named: str | None) -> dict[str, Any]:
    """The columns that the source has under the same name, and those that are given."""
    return {**{key: source[key] for key in COLUMNS if key in source}, **named}

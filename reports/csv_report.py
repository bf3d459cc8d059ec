"""The document's figures as one long CSV table."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any, Final

from reports.document import Document
from reports.words import printable

COLUMNS: Final = ("trace", "process", "device", "rank", "group", "key", "ns", "frac")
_PARTS: Final = (
    ("exposed_comm_kind", "exposed_comm_by_kind_ns"),
    ("exposed_copy_kind", "exposed_copy_by_kind_ns"),
    ("compute_class", "compute_by_class_ns"),
)
_REASONS: Final = (
    "launch_starved",
    "blocking",
    "launch_latency",
    "graph_opaque",
    "dependency_stalled",
    "trailing",
)
_FORMULA: Final = ("=", "+", "-", "@")

Row = tuple[str, str, int | None, float | None]
"""Group, key, ns, and the share of the window."""


def render_csv(document: Document, everything: bool = False) -> str:
    """One row per rank and figure, and per wall of the run, with a header; lines end in a line feed.

    Groups: `bucket`, `exposed_comm_kind`, `exposed_copy_kind`, `compute_class`, `absent` (keys such as
    `launch_starved.sync`), `moe` (`tax`, and the wall time of `dispatch.forward` and so on), `step` (of the
    used ones); of the whole run, without trace and rank, `wall` and `wall_kind` (`communication.tp`). `frac`
    is of the rank's window, for walls of the windows. What could not be told is an empty cell. `everything`
    adds `dropped_step` and `unknown_kernel`. A name that a spreadsheet would take for a formula has an
    apostrophe before it.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for rank in document["ranks"]:
        of = (_name(rank["trace"]), rank["process"], rank["device"], rank["rank"])
        writer.writerows((*of, *_cells(row)) for row in _of_rank(rank, everything))
    writer.writerows((None, None, None, None, *_cells(row)) for row in _of_walls(document))
    return out.getvalue()


def _cells(row: Row) -> tuple[str, str, int | None, float | None]:
    group, key, ns, frac = row
    return group, _name(key), ns, frac


def _name(text: str) -> str:
    shown = printable(text, 500)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown


def _of_rank(rank: dict[str, Any], everything: bool) -> Iterator[Row]:
    window_ns = rank["budget_ns"]["window"]
    for key, ns in rank["budget_ns"].items():
        if key != "window":
            yield "bucket", key, ns, rank["budget_frac"][key]
    for group, section in _PARTS:
        for key, ns in (rank[section] or {}).items():
            yield group, key, ns, ns / window_ns
    for key, ns in _absent(rank["absent_ns"]):
        yield "absent", key, ns, None if ns is None else ns / window_ns
    yield from _moe(rank.get("moe"), window_ns)
    for step in rank["steps"]["used"]:
        ns = step["end_ns"] - step["start_ns"]
        yield "step", str(step["index"]), ns, ns / window_ns
    if everything:
        for step in rank["steps"]["dropped"]:
            yield "dropped_step", str(step["index"]), step["end_ns"] - step["start_ns"], None
        for kernel in rank["unknown_kernels"]:
            yield "unknown_kernel", kernel["name"], kernel["busy_ns"], kernel["frac"]


def _absent(absent: dict[str, Any] | None) -> Iterator[tuple[str, int | None]]:
    """Every reason with its parts; the bare reasons where none could be told."""
    for reason, value in (absent or dict.fromkeys(_REASONS)).items():
        if isinstance(value, dict):
            yield from ((f"{reason}.{key}", ns) for key, ns in value.items())
        else:
            yield reason, value


def _moe(moe: dict[str, Any] | None, window_ns: int) -> Iterator[Row]:
    """The tax and every module by pass; nothing where no tokens are routed."""
    if moe:  # results of earlier versions have none
        yield "moe", "tax", moe["tax_ns"], moe["tax_frac"]
        for row in moe["rows"]:
            yield "moe", f"{row['module']}.{row['pass']}", row["wall_ns"], row["wall_ns"] / window_ns


def _of_walls(document: Document) -> Iterator[Row]:
    for wall in document["walls"]:
        cost_ns, cost_frac = wall["cost_ns"], wall["cost_frac"]
        yield "wall", wall["id"], cost_ns, cost_frac
        for kind, ns in (wall["cost_by_kind_ns"] or {}).items():
            yield "wall_kind", f"{wall['id']}.{kind}", ns, cost_frac * ns / cost_ns if cost_ns else None

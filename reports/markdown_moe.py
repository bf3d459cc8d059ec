"""The MoE layers of a rank in a ticket: rows by module and pass, and the layers beside each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reports.markdown_blocks import Block, Fold, Line, folded, table
from reports.text_moe import tax_sentence


def moe_blocks(rank: dict[str, Any]) -> Iterator[Fold]:
    """Folded tables; nothing where no tokens are routed."""
    moe = rank.get("moe")  # results of earlier versions have none
    if not moe or not moe["rows"]:
        return
    count = len(rank["steps"]["used"]) or 1
    headers = ["Module", "Pass", "Kernels", "Wall, ms per step", "Work", "Exposed", "Blocking", "Host waits"]
    keys = ("wall_ns", "work_ns", "exposed_ns", "blocking_ns", "host_wait_ns")
    rows = [
        [row["module"], row["pass"], f"{row['count']:,}", *(_ms(row[key], count) for key in keys)]
        for row in moe["rows"]
    ]
    told = Line(f"{tax_sentence(moe)}. Kernels are of all steps.")
    yield from folded("MoE layers", [told, *table(headers, rows, numbers=6)])
    yield from folded("MoE layers, one by one", _by_layer(moe, count) if moe["by_layer"] else [])


def _by_layer(moe: dict[str, Any], count: int) -> Iterator[Block]:
    """Wall time of each module, its passes added up."""
    found: dict[int, dict[str, int]] = {}
    for row in moe["by_layer"]:
        of_layer = found.setdefault(row["layer"], {})
        of_layer[row["module"]] = of_layer.get(row["module"], 0) + row["wall_ns"]
    modules = list(dict.fromkeys(row["module"] for row in moe["rows"]))
    rows = [
        [str(layer), *(_ms(of_layer.get(module, 0), count) for module in modules)]
        for layer, of_layer in sorted(found.items())
    ]
    yield Line("Wall time in ms per step, all passes.")
    yield from table(["Layer", *modules], rows, numbers=len(modules))


def _ms(ns: int | None, count: int) -> str:
    return "not told" if ns is None else f"{ns / count / 1e6:,.3f}"

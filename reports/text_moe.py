"""The MoE layers of a rank in plain text: the tax in one line, then a table of modules by pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from reports.layout import INDENT, wrap
from reports.words import milliseconds, percent

PASSES: Final = ("forward", "recompute", "backward")


def moe_lines(rank: dict[str, Any]) -> Iterator[str]:
    """Wall time of each module by pass, and what waited for it; nothing where no tokens are routed."""
    moe = rank.get("moe")  # results of earlier versions have none
    if not moe or not moe["rows"]:
        return
    yield ""
    yield from wrap(f"{tax_sentence(moe)}.")
    yield from wrap(f"{_layers(moe['layers'])}, ms of all steps, hidden time included; experts are no tax:")
    there = [name for name in PASSES if any(row["pass"] == name for row in moe["rows"])]
    yield f"{INDENT}  {'':<25}" + "".join(f"{name:>11}" for name in (*there, "blocking"))
    for module, by_pass in by_module(moe["rows"]).items():
        walls = [_ms(by_pass[name]["wall_ns"] if name in by_pass else 0) for name in there]
        cells = [*walls, _ms(total(by_pass, "blocking_ns"))]
        yield f"{INDENT}  {module:<25}" + "".join(f"{cell:>11}" for cell in cells)
    waits = [row["host_wait_ns"] for row in moe["rows"] if row.get("host_wait_ns")]
    if waits:
        yield from wrap(f"  of the tax, the GPU waited for the host to read token counts: {_ms(sum(waits))}")


def tax_sentence(moe: dict[str, Any]) -> str:
    """The tax as one figure, or that it is not told."""
    if moe["tax_ns"] is None:
        return "MoE tax: not told"
    return f"MoE tax: {milliseconds(moe['tax_ns'])} ms, {percent(moe['tax_frac'])} of the window"


def by_module(rows: list[dict[str, Any]]) -> dict[str, dict[str, dict[str, Any]]]:
    """Rows by module and pass, in their order."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["module"], {})[row["pass"]] = row
    return found


def total(by_pass: dict[str, dict[str, Any]], key: str) -> int | None:
    """A figure of one module over its passes, None where one is not told."""
    values = [row[key] for row in by_pass.values()]
    return None if None in values else sum(values)


def _layers(count: int | None) -> str:
    if count is None:
        return "All MoE layers, their number not told"
    return f"{count} MoE layer{'s' if count > 1 else ''}"


def _ms(ns: int | None) -> str:
    return "not told" if ns is None else f"{ns / 1e6:,.3f}"

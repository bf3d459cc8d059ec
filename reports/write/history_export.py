"""The history for other programs: a CSV table of all results, and Prometheus' text of the newest ones."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final, Protocol

from reports.write.csv_tables import csv_text
from traces.spelling import printable


class Kept(Protocol):
    """A result of the history, its numbers by the document's names, and what one trend has in common."""

    @property
    def id(self) -> int: ...
    @property
    def added_at(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def tag(self) -> str: ...
    @property
    def gpu(self) -> str | None: ...
    @property
    def wall(self) -> str | None: ...
    @property
    def metrics(self) -> Mapping[str, float]: ...
    @property
    def alike(self) -> Mapping[str, object]: ...


_LABELS: Final = ("id", "added_at", "name", "tag", "gpu", "wall")
_UNITS: Final = (("_ns", "_seconds", Decimal("1e-9")), ("_frac", "_ratio", Decimal(1)))
"""Ends of our names, of the first part or the last, and the base unit that Prometheus asks for."""
_LEDGER: Final = "ledger."
"""Before times per step in ns whose names have no unit."""
_WIDTH: Final = 200


def write_history_csv(rows: Sequence[Kept]) -> str:
    """One row a result, oldest first, one column a number; empty where it does not have that number."""
    names = list(dict.fromkeys(name for row in rows for name in row.metrics))
    cells = ([*_labels(row), *(row.metrics.get(name, "") for name in names)] for row in rows)
    return csv_text([*_LABELS, *names], cells)


def _labels(row: Kept) -> Iterator[object]:
    for name in _LABELS:
        value = getattr(row, name)
        yield "" if value is None else value


def write_prometheus(rows: Sequence[Kept]) -> str:
    """The newest result of each trend as gauges, in seconds, ratios and bytes, without timestamps.

    The text format of prometheus.io/docs/instrumenting/exposition_formats, as the textfile collector of the
    node exporter reads it, which takes no timestamps.
    """
    newest: dict[str, Kept] = {repr(sorted(row.alike.items())): row for row in rows}
    names = dict.fromkeys(name for row in newest.values() for name in row.metrics)
    lines: list[str] = []
    for name in names:
        metric, factor = _metric(name)
        lines += [f"# HELP {metric} {name} of the newest result of its kind.", f"# TYPE {metric} gauge"]
        for row in newest.values():
            if (value := row.metrics.get(name)) is not None:
                lines.append(f"{metric}{{{_label_text(row)}}} {_number(Decimal(str(value)) * factor)}")
    return "".join(f"{line}\n" for line in lines)


def _metric(name: str) -> tuple[str, Decimal]:
    """`moe_diag_budget_idle_ratio` of `budget_frac.idle`, and what a value is multiplied by."""
    first, dot, rest = name.partition(".")
    for end, unit, factor in _UNITS:
        if first.endswith(end):
            return _spelled(f"{first.removesuffix(end)}{dot}{rest}{unit}"), factor
        if name.endswith(end):
            return _spelled(f"{name.removesuffix(end)}{unit}"), factor
    if name.startswith(_LEDGER):
        return _spelled(f"{name}_seconds"), Decimal("1e-9")
    return _spelled(name), Decimal(1)


def _spelled(name: str) -> str:
    kept = (char if char.isascii() and char.isalnum() else "_" for char in name)
    return f"moe_diag_{''.join(kept)}"


def _number(value: Decimal) -> str:
    return f"{value.normalize():f}"


def _label_text(row: Kept) -> str:
    """Labels, escaped as the format asks."""
    said = {"gpu": row.gpu or "", "id": str(row.id), "name": row.name, "tag": row.tag, "wall": row.wall or ""}
    escaped = {
        name: printable(text, _WIDTH).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        for name, text in said.items()
    }
    return ",".join(f'{name}="{text}"' for name, text in escaped.items())

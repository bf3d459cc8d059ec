"""Ranks beside each other: the first is shown in full, all of them in tables."""

from __future__ import annotations

from typing import Any, Final

from reports.html.section import Section, Table, share, short_ms
from reports.sentences import who

_BUCKETS: Final = ("compute", "exposed_comm", "exposed_copy", "idle")
_REASONS: Final = (
    "launch_starved",
    "blocking",
    "launch_latency",
    "graph_opaque",
    "dependency_stalled",
    "trailing",
)


def all_ranks(ranks: list[dict[str, Any]]) -> Section:
    """Nothing where there is one."""
    if len(ranks) < 2:
        return Section("ranks", "All ranks")
    headers = ("Rank", "Steps", "Median, ms", "Min, ms", "Max, ms", *_BUCKETS)
    tables = [Table("Steps, and shares of the window", headers, tuple(map(_budget, ranks)), 8)]
    if any(rank["absent_ns"] for rank in ranks):
        caption = "Why no compute ran: shares of the window"
        rows = tuple(map(_reasons, ranks))
        tables.append(Table(caption, ("Rank", *_REASONS), rows, len(_REASONS)))
    said = ("The page shows the first rank in full. The JSON document (-f json) holds the others alike.",)
    return Section("ranks", "All ranks", said, tables=tuple(tables))


def _budget(rank: dict[str, Any]) -> tuple[str, ...]:
    steps = rank["steps"]
    spread = (short_ms(steps[f"{key}_ns"]) for key in ("median", "min", "max"))
    shares = (share(rank["budget_frac"][bucket]) for bucket in _BUCKETS)
    return (who(rank), str(len(steps["used"])), *spread, *shares)


def _reasons(rank: dict[str, Any]) -> tuple[str, ...]:
    absent, window_ns = rank["absent_ns"], rank["budget_ns"]["window"]
    times = (None if absent is None else absent[reason] for reason in _REASONS)
    sums = (sum(one.values()) if isinstance(one, dict) else one for one in times)
    return (who(rank), *(share(ns, window_ns) for ns in sums))

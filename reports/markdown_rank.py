"""Where the time of each rank goes, in a ticket."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from reports.document import Document
from reports.markdown_blocks import Block, Code, Fold, Line, folded, table
from reports.markdown_moe import moe_blocks
from reports.sentences import replays_only, who
from reports.words import milliseconds, percent, printable, seconds

_BUCKETS: Final = ("compute", "exposed_comm", "exposed_copy", "idle")
_DETAILED: Final = 8
"""Ranks shown one by one; the others are in the JSON document."""
_PARTS: Final = (
    ("compute", "compute_by_class_ns"),
    ("exposed_comm", "exposed_comm_by_kind_ns"),
    ("exposed_copy", "exposed_copy_by_kind_ns"),
)
_FIGURES: Final = ("a2a", "sm", "memory", "detected", "replay")
_UNTOLD: Final = "not told"
_NAME_WIDTH: Final = 120


def rank_blocks(document: Document) -> Iterator[Block]:
    """One rank open, several in a table with a fold each."""
    ranks = document["ranks"]
    if len(ranks) == 1:
        yield from _doubts(ranks[0])
        yield _budget(ranks[0])
        yield from _details(ranks[0])
        return
    yield from _all_ranks(ranks[:_DETAILED])
    if (more := len(ranks) - _DETAILED) > 0:
        yield Line(f"{more} more ranks are in the JSON document.")
    for rank in ranks[:_DETAILED]:
        told = Line(about_rank(rank))
        yield from folded(who(rank), [told, *_doubts(rank), _budget(rank), *_details(rank)])


def about_rank(rank: dict[str, Any]) -> str:
    """Who, which steps, how long and where."""
    return f"{who(rank)}: {_steps(rank)}"


def _doubts(rank: dict[str, Any]) -> Iterator[Line]:
    """Slow steps, and ways of finding steps that disagree."""
    steps = rank["steps"]
    if steps["slow"]:
        named = ", ".join(map(str, steps["slow"]))
        yield Line(f"Slow steps: {named}; used, but left out of the median.")
    if steps["disagreement"]:
        yield Line(steps["disagreement"])


def _all_ranks(ranks: list[dict[str, Any]]) -> Iterator[Block]:
    headers = ["Rank", "Steps", "Median, ms", "Min, ms", "Max, ms", *_BUCKETS]
    rows = []
    for rank in ranks:
        steps = rank["steps"]
        spread = [_ms(steps[f"{key}_ns"]) for key in ("median", "min", "max")]
        shares = [_share(rank["budget_frac"][bucket]) for bucket in _BUCKETS]
        rows.append([who(rank), str(len(steps["used"])), *spread, *shares])
    yield from table(headers, rows, numbers=8)


def _budget(rank: dict[str, Any]) -> Block:
    budget, shares = rank["budget_ns"], rank["budget_frac"]
    rows = [_row(rank, _bucket(rank, bucket), budget[bucket], shares[bucket]) for bucket in _BUCKETS]
    rows.append(_row(rank, "window", budget["window"], 1.0))
    (block,) = table(["Part", _per(rank), "Share", "ns in all"], rows, numbers=3)
    return block


def _bucket(rank: dict[str, Any], bucket: str) -> str:
    return "busy" if bucket == "compute" and replays_only(rank) else bucket


def _steps(rank: dict[str, Any]) -> str:
    steps, windows = rank["steps"], rank["windows_ns"]
    start_ns, end_ns = windows[0][0], windows[-1][1]
    where = f"{seconds(start_ns)} to {seconds(end_ns)} ({start_ns} to {end_ns} ns)"
    if not steps["used"]:
        return f"one window, {where}: {printable(steps['what'], 120)}."
    spread = ", ".join(f"{key} {_ms(steps[f'{key}_ns'])}" for key in ("median", "min", "max"))
    left_out = f"; {len(steps['dropped'])} left out" if steps["dropped"] else ""
    found = f"n = {len(steps['used'])} steps by {printable(steps['what'], 120)}"
    return f"{found}, ms per step: {spread}; {where}{left_out}."


def _details(rank: dict[str, Any]) -> Iterator[Fold]:
    """Parts of the buckets and reasons, figures, steps, kernels without a name."""
    head = [_per(rank), "Share", "ns in all"]
    window_ns = rank["budget_ns"]["window"]
    parts = [
        _row(rank, f"{bucket}.{key}", ns, ns / window_ns)
        for bucket, section in _PARTS
        for key, ns in _largest_first(rank[section] or {})
    ]
    yield from folded("Classes and kinds", table(["Part", *head], parts, numbers=3))
    yield from folded("Why no compute ran", _reasons(rank, ["Reason", *head]))
    yield from moe_blocks(rank)
    yield from folded("Figures", table(["Figure", "Value"], _figures(rank), numbers=1))
    yield from folded("Steps", _step_table(rank))
    unknown = [
        ((Code(one["name"], _NAME_WIDTH),), f"{one['count']:,}", _ms(one["busy_ns"]), percent(one["frac"]))
        for one in rank["unknown_kernels"]
    ]
    columns = ["Kernel", "Number", "ms in all", "Share"]
    yield from folded("Kernels that no rule names", table(columns, unknown, numbers=3))


def _reasons(rank: dict[str, Any], head: list[str]) -> Iterator[Block]:
    window_ns = rank["budget_ns"]["window"]
    reasons = [_row(rank, key, ns, ns / window_ns) for key, ns in absent_parts(rank["absent_ns"]) if ns]
    if reasons:
        by = rank["absent_decided_by_frac"]
        decided = by and ", ".join(f"{key} {percent(frac)}" for key, frac in by.items())
        yield from table(head, reasons, numbers=3)
        yield Line(f"Decided by an edge: {decided}.")


def absent_parts(absent: Mapping[str, Any] | None) -> Iterator[tuple[str, int]]:
    """Every reason why no compute ran, `launch_starved.sync` where it has parts; nothing where not told."""
    for reason, value in (absent or {}).items():
        if isinstance(value, dict):
            yield from ((f"{reason}.{key}", ns) for key, ns in _largest_first(value))
        else:
            yield reason, value


def _figures(rank: dict[str, Any]) -> Iterator[list[str]]:
    """Every single figure that was told, in the order of the document."""
    own = ("hidden_comm_ns", "masked_ns", "clock_offset_ns", "kernels_without_launch")
    figures = {key: rank[key] for key in own}
    sections = {name: rank[name] for name in _FIGURES} | {"sm.measured": rank["sm"]["measured"]}
    for name, section in sections.items():
        figures |= {f"{name}.{key}": value for key, value in (section or {}).items()}
    for key, value in figures.items():
        if isinstance(value, (bool, str)):
            yield [key, str(value)]
        elif isinstance(value, (int, float)):
            yield [key, _figure(key, value)]


def _figure(key: str, value: float) -> str:
    if key.endswith("_frac"):
        return percent(value)
    if key.endswith("_ns"):
        return f"{milliseconds(int(value))} ms"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"


def _step_table(rank: dict[str, Any]) -> Iterator[Block]:
    steps = rank["steps"]
    rows = [
        [
            printable(one.get("reason", "used"), 80),
            str(one["index"]),
            seconds(one["start_ns"]),
            seconds(one["end_ns"]),
            str(one["start_ns"]),
            str(one["end_ns"]),
            _ms(one["end_ns"] - one["start_ns"]),
        ]
        for one in sorted([*steps["used"], *steps["dropped"]], key=lambda one: int(one["index"]))
    ]
    headers = ["State", "Step", "Start", "End", "Start, ns", "End, ns", "ms"]
    yield from table(headers, rows, numbers=6)


def _row(rank: dict[str, Any], label: str, ns: int | None, frac: float | None) -> list[str]:
    if ns is None:
        return [label, _UNTOLD, _UNTOLD, _UNTOLD]
    count = len(rank["steps"]["used"]) or 1
    return [label, f"{ns / count / 1e6:,.3f}", _share(frac), f"{ns:,}"]


def _per(rank: dict[str, Any]) -> str:
    count = len(rank["steps"]["used"])
    return f"ms per step (mean of {count})" if count else "ms of the window"


def _largest_first(parts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(parts.items(), key=lambda part: -part[1])


def _share(frac: float | None) -> str:
    return _UNTOLD if frac is None else percent(frac)


def _ms(ns: int | None) -> str:
    return _UNTOLD if ns is None else f"{ns / 1e6:,.3f}"

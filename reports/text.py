"""The document as plain text for a terminal, at most 80 columns: Verdict, Why, Next."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from typing import Any, Final

from reports.document import Document
from reports.words import milliseconds, percent, printable, seconds

_WIDTH: Final = 80
_INDENT: Final = " " * 9
_BAR: Final = 20
_DETAILED_RANKS: Final = 8
_PARTS: Final = {
    "compute": "compute_by_class_ns",
    "exposed_comm": "exposed_comm_by_kind_ns",
    "exposed_copy": "exposed_copy_by_kind_ns",
}
_SAID: Final = ("steps", "totals", "process", "exposed_comm_by_kind_ns.sendrecv_unresolved")
"""Gaps of a rank that the text repeats; the others are in the JSON document."""
_UNKNOWN_FRAC: Final = 0.01
"""Unknown kernels above 1 % of the window are named: below, no share of the budget would read differently."""


def render_text(document: Document) -> str:
    """The whole report, ending in a line break."""
    lines = [*_head(document), "", *_verdict(document), "", *_why(document), "", *_next(document)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _head(document: Document) -> Iterator[str]:
    yield f"moe-diag {document['tool']['version']}"
    for trace in document["traces"]:
        exporter = trace["exporter_version"] or "of unknown version"
        schema = trace["schema"] or "none"
        yield from _wrap(
            f"{printable(trace['name'], 60)}: exported by nsys {exporter}, schema {schema}", "  "
        )


def _verdict(document: Document) -> Iterator[str]:
    verdict = document["verdict"]
    largest = _bucket_name(verdict["largest_bucket"], all(map(_replays_only, document["ranks"])))
    share = percent(verdict["largest_bucket_frac"])
    bound = f"bound by {verdict['bound']}" if verdict["bound"] else "no bound"
    yield from _titled("Verdict", f"{bound}; the largest bucket is {largest}, {share} of the window.")
    yield from _wrap(
        "Walls are not judged yet: this version says where the step goes, not what could be removed."
    )


def _why(document: Document) -> Iterator[str]:
    yield from _titled("Why", "; ".join(document["verdict"]["because"]) + ".")
    for rank in document["ranks"][:_DETAILED_RANKS]:
        yield ""
        yield from _rank(rank)
    if (more := len(document["ranks"]) - _DETAILED_RANKS) > 0:
        yield from ["", *_wrap(f"{more} more ranks are in the JSON document (-f json).")]


def _rank(rank: dict[str, Any]) -> Iterator[str]:
    yield from _wrap(_who(rank))
    yield from _wrap(_steps(rank))
    budget, shares = rank["budget_ns"], rank["budget_frac"]
    busy_only = _replays_only(rank)
    for bucket in ("compute", "exposed_comm", "exposed_copy", "idle"):
        if budget[bucket] is None:
            yield f"{_INDENT}{bucket:<22}      not told"
            continue
        bar = "#" * round(shares[bucket] * _BAR)
        yield _row(_bucket_name(bucket, busy_only), budget[bucket], shares[bucket], bar)
        parts = rank[_PARTS[bucket]] if bucket in _PARTS else {}
        for key, ns in sorted(parts.items(), key=lambda part: -part[1]):
            yield _row("  " + key, ns, ns / budget["window"], "")
    yield _row("window", budget["window"], 1.0, "")
    if rank["hidden_comm_ns"]:
        yield from _wrap(f"hidden under compute: {milliseconds(rank['hidden_comm_ns'])} ms of communication")
    yield from _unknown(rank)


def _who(rank: dict[str, Any]) -> str:
    process = "process not recorded" if rank["process"] is None else f"process {rank['process']}"
    number = "" if rank["rank"] is None else f"rank {rank['rank']}, "
    return f"{number}{process}, GPU {rank['device']} ({rank['gpu'] or 'model not recorded'})"


def _steps(rank: dict[str, Any]) -> str:
    steps, windows = rank["steps"], rank["windows_ns"]
    where = f"{seconds(windows[0][0])} to {seconds(windows[-1][1])}"
    if not steps["used"]:
        return f"one window, {where}: {steps['what']}"
    spread = ", ".join(f"{name} {milliseconds(steps[name + '_ns'])}" for name in ("median", "min", "max"))
    dropped = "".join(f"; step {step['index']} left out ({step['reason']})" for step in steps["dropped"][:4])
    more = f"; {len(steps['dropped']) - 4} more left out" if len(steps["dropped"]) > 4 else ""
    count = f"{len(steps['used'])} step{'s' if len(steps['used']) > 1 else ''}"
    return f"{count} by {printable(steps['what'], 60)}: {spread} ms, {where}{dropped}{more}"


def _unknown(rank: dict[str, Any]) -> Iterator[str]:
    for kernel in rank["unknown_kernels"]:
        if kernel["frac"] > _UNKNOWN_FRAC:
            yield from _wrap(f"no rule names {percent(kernel['frac'])}: {printable(kernel['name'], 44)}")


def _next(document: Document) -> Iterator[str]:
    advice = [*document["warnings"], *_advice(document["missing"])]
    for trace in document["traces"]:
        advice += [f"nsys noted: {said}." for said in trace["capture"]["diagnostics"]]
    advice = list(dict.fromkeys(advice)) or [
        "Open the recording in the nsys GUI at the times above, largest bucket first."
    ]
    for index, text in enumerate(advice):
        yield from _titled("Next" if index == 0 else "", "- " + text)
    later = sum(
        gap["path"].startswith(("ranks[*]", "throughput", "tool", "traces[*]")) for gap in document["missing"]
    )
    yield from _titled(
        "", f"- {later} parts are not measured by this version; -f json lists them under `missing`."
    )


def _advice(missing: Iterable[dict[str, str]]) -> Iterator[str]:
    """Gaps of the recording, each with its cure."""
    for gap in missing:
        place, _, key = gap["path"].partition(".")
        if (place.startswith("ranks[") and key in _SAID) or gap["path"].endswith(
            (".graph_launches", ".graph_replays")
        ):
            yield f"{gap['reason'][0].upper()}{gap['reason'][1:]}. To tell: {gap['cure']}."


def _bucket_name(bucket: str, busy_only: bool) -> str:
    return "busy" if bucket == "compute" and busy_only else bucket


def _replays_only(rank: dict[str, Any]) -> bool:
    return rank["budget_ns"]["exposed_comm"] is None


def _row(label: str, ns: int, frac: float, bar: str) -> str:
    return f"{_INDENT}{label:<22}{milliseconds(ns):>14} ms {percent(frac):>8}  {bar}"


def _titled(title: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=f"{title:<9}",
        subsequent_indent=_INDENT + ("  " if text.startswith("- ") else ""),
    )


def _wrap(text: str, indent: str = _INDENT) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent)

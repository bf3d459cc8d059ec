"""The document as plain text for a terminal, at most 80 columns: Verdict, Why, Next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from reports.document import Document
from reports.layout import INDENT, wrap
from reports.redaction import redaction_sentence
from reports.sentences import origin, replays_only, who
from reports.text_config import config_lines
from reports.text_moe import moe_lines
from reports.text_verdict import next_lines, verdict_lines, wall_lines
from reports.words import milliseconds, percent, printable, seconds

_BAR: Final = 20
_DETAILED_RANKS: Final = 8
_PARTS: Final = {
    "compute": "compute_by_class_ns",
    "exposed_comm": "exposed_comm_by_kind_ns",
    "exposed_copy": "exposed_copy_by_kind_ns",
}
_UNKNOWN_FRAC: Final = 0.01
"""Unknown kernels above 1 % of the window are named: below, no share of the budget would read differently.
Those that are findings stand with the verdict."""


def render_text(document: Document, everything: bool = False) -> str:
    """The whole report, ending in a line break; `everything`: all fixes, and those refused."""
    lines = [
        *_head(document),
        *_warnings(document),
        "",
        *verdict_lines(document),
        "",
        *wall_lines(document),
        *_ranks(document),
        *config_lines(document, everything),
        "",
        *next_lines(document, everything),
        "",
        *wrap(redaction_sentence(document), ""),
    ]
    return "\n".join(printable(line, len(line)).rstrip() for line in lines) + "\n"


def _head(document: Document) -> Iterator[str]:
    yield f"moe-diag {document['tool']['version']}"
    for trace in document["traces"]:
        yield from wrap(f"{printable(trace['name'], 60)}: {origin(trace)}", "  ")


def _warnings(document: Document) -> Iterator[str]:
    for warning in document["warnings"]:
        yield from wrap(f"Warning: {printable(warning, 400)}", "  ")


def _ranks(document: Document) -> Iterator[str]:
    for rank in document["ranks"][:_DETAILED_RANKS]:
        yield ""
        yield from _rank(rank)
    if (more := len(document["ranks"]) - _DETAILED_RANKS) > 0:
        yield from ["", *wrap(f"{more} more ranks are in the JSON document (-f json).")]


def _rank(rank: dict[str, Any]) -> Iterator[str]:
    yield from wrap(who(rank))
    yield from wrap(_steps(rank))
    yield from _about_steps(rank)
    yield f"{INDENT}{_summed_over(rank):<22}{'ms':>14}    {'share':>8}"
    budget, shares = rank["budget_ns"], rank["budget_frac"]
    busy_only = replays_only(rank)
    for bucket in ("compute", "exposed_comm", "exposed_copy", "idle"):
        if budget[bucket] is None:
            yield f"{INDENT}{bucket:<22}      not told"
            continue
        bar = "#" * round(shares[bucket] * _BAR)
        yield _row(_bucket_name(bucket, busy_only), budget[bucket], shares[bucket], bar)
        parts = rank[_PARTS[bucket]] if bucket in _PARTS else {}
        for key, ns in sorted(parts.items(), key=lambda part: -part[1]):
            yield _row("  " + key, ns, ns / budget["window"], "")
    yield _row("window", budget["window"], 1.0, "")
    yield from _account(rank)
    if rank["hidden_comm_ns"]:
        yield from wrap(f"hidden under compute: {milliseconds(rank['hidden_comm_ns'])} ms of communication")
    yield from _sms(rank)
    yield from _detected(rank)
    if rank["kernels_without_launch"]:
        yield from wrap(f"kernels whose launch was not recorded: {rank['kernels_without_launch']:,}")
    yield from _unknown(rank)
    yield from moe_lines(rank)


def _sms(rank: dict[str, Any]) -> Iterator[str]:
    """How the SMs were used, as far as launches and counters tell."""
    sm, said = rank["sm"], []
    if sm["occupancy_frac"] is not None:
        limiter = max(sm["limiter_ns"], key=lambda name: sm["limiter_ns"][name], default=None)
        by = f", limited by {limiter.replace('_', ' ')}" if limiter else ""
        said.append(f"theoretical occupancy {percent(sm['occupancy_frac'])} of the work{by}")
    if sm["fill_frac"] is not None:
        said.append(f"grids fill {percent(sm['fill_frac'])} of the SMs")
    if sm["persistent_ns"]:
        said.append(f"{milliseconds(sm['persistent_ns'])} ms of persistent kernels, apart by design")
    if sm["comm_blocks"] and sm["sm_count"]:
        said.append(f"communication held up to {sm['comm_blocks']} blocks on {sm['sm_count']} SMs")
    if sm["stretch_frac"] is not None:
        said.append(f"compute beside it is stretched by {percent(sm['stretch_frac'])}")
    if (measured := sm["measured"]) is not None and measured["sm_issue_frac"] is not None:
        issue = f"SM issue {percent(measured['sm_issue_frac'])} measured"
        said.append(f"{issue} over {measured['samples']} samples, {percent(measured['pure_frac'])} pure")
    if said:
        yield from wrap("SMs: " + "; ".join(said) + ".")


def _detected(rank: dict[str, Any]) -> Iterator[str]:
    """What kind of run this shows, where anything was told."""
    found, memory = rank["detected"], rank["memory"]
    said = [f"dispatcher {found['dispatcher']}"] if found["dispatcher"] not in ("none", "unknown") else []
    if found["precision"]:
        said.append(f"GEMMs in {found['precision'].replace('mixed', 'mixed precision')}")
    if found["graph_share_frac"]:
        said.append(f"{percent(found['graph_share_frac'])} of kernel work in CUDA graphs")
    if memory["recompute_ns"]:
        said.append(f"recompute {milliseconds(memory['recompute_ns'])} ms")
    if memory["allocator_calls"]:
        said.append(f"{memory['allocator_calls']} allocator calls")
    if said:
        yield from wrap("Seen: " + ", ".join(said) + ".")


def _summed_over(rank: dict[str, Any]) -> str:
    count = len(rank["steps"]["used"])
    return f"sum of {count} steps" if count > 1 else "one step" if count else "the window"


def _account(rank: dict[str, Any]) -> Iterator[str]:
    """Why no compute ran, largest reason first; nothing where that is not told or nothing was lost."""
    absent = rank["absent_ns"]
    if absent is None or not (rows := _reasons(absent)):
        return
    yield ""
    yield from wrap("why no compute ran:")
    for reason, parts in rows:
        if len(parts) > 1 or reason not in parts:
            yield f"{INDENT}  {reason}"
        for name, ns in sorted(parts.items(), key=lambda part: -part[1]):
            label = "  " + name if name == reason else "    " + name
            yield _row(label, ns, ns / rank["budget_ns"]["window"], "")
    by = rank["absent_decided_by_frac"]
    said = f"decided by a recorded edge {percent(by['recorded'])}, inferred {percent(by['inferred'])}"
    yield from wrap(f"{said}, by none {percent(by['none'])}")
    if rank["masked_ns"]:
        yield from wrap(
            f"of launch_starved, {milliseconds(rank['masked_ns'])} ms ran under a producer of the late "
            "kernel, which mending the host alone does not win"
        )


def _reasons(absent: dict[str, Any]) -> list[tuple[str, dict[str, int]]]:
    """Every reason with its parts that are not zero; a reason without parts is its own part."""
    reasons = []
    for reason, value in absent.items():
        parts = {key: ns for key, ns in value.items() if ns} if isinstance(value, dict) else {reason: value}
        if any(parts.values()):
            reasons.append((reason, parts))
    return reasons


def _about_steps(rank: dict[str, Any]) -> Iterator[str]:
    steps, detected = rank["steps"], rank["detected"]
    if steps["slow"]:
        named = ", ".join(map(str, steps["slow"]))
        yield from wrap(f"slow steps: {named}; used, but left out of the median")
    if steps["disagreement"]:
        yield from wrap(steps["disagreement"])
    if detected["training_step"] is False:
        why = detected["training_evidence"]
        yield from wrap(f"this is not a training step: {why}; so fixes for training are left out")


def _steps(rank: dict[str, Any]) -> str:
    steps, windows = rank["steps"], rank["windows_ns"]
    where = f"{seconds(windows[0][0])} to {seconds(windows[-1][1])}"
    if not steps["used"]:
        return f"one window, {where}: {printable(steps['what'], 120)}"
    spread = ", ".join(f"{name} {milliseconds(steps[name + '_ns'])}" for name in ("median", "min", "max"))
    dropped = "".join(f"; step {step['index']} left out ({step['reason']})" for step in steps["dropped"][:4])
    more = f"; {len(steps['dropped']) - 4} more left out" if len(steps["dropped"]) > 4 else ""
    count = f"{len(steps['used'])} step{'s' if len(steps['used']) > 1 else ''}"
    return f"{count} by {printable(steps['what'], 120)}: {spread} ms, {where}{dropped}{more}"


def _unknown(rank: dict[str, Any]) -> Iterator[str]:
    for kernel in rank["unknown_kernels"]:
        if kernel["frac"] > _UNKNOWN_FRAC and not kernel["finding"]:
            name = printable(kernel["name"], 60)
            yield from wrap(
                f"no rule names a kernel that runs {percent(kernel['frac'])} of the window: {name}"
            )


def _bucket_name(bucket: str, busy_only: bool) -> str:
    return "busy" if bucket == "compute" and busy_only else bucket


def _row(label: str, ns: int, frac: float, bar: str) -> str:
    return f"{INDENT}{label:<22}{milliseconds(ns):>14} ms {percent(frac):>8}  {bar}"

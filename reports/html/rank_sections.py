"""Sections of a page about one rank: lost time, communication, MoE layers, SMs, kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reports.html.section import UNTOLD, Section, Table, exact_ms, share, short_ms
from reports.html.step_bar import parts_of
from reports.sentences import replays_only
from reports.text_moe import tax_sentence
from reports.words import percent, printable

_NAME_WIDTH = 120
_KERNELS = 25
Rank = dict[str, Any]


def lost_time(rank: Rank) -> Section:
    """Why no compute ran, by reason; it adds up to the window less its compute."""
    absent = rank["absent_ns"]
    if absent is None:
        return Section("lost", "Why no compute ran")
    window_ns = rank["budget_ns"]["window"]
    parts = sorted(_reasons(absent), key=lambda part: -part[1])
    total_ns = sum(ns for _, ns in parts)
    rows = [(key, exact_ms(ns), share(ns, window_ns), share(ns, total_ns)) for key, ns in parts if ns]
    keys = (*(row[0] for row in rows), "")
    rows.append(
        ("sum", exact_ms(total_ns), share(total_ns, window_ns), share(1.0) if total_ns else share(0.0))
    )
    by = rank["absent_decided_by_frac"]
    said = [
        f"Decided by a recorded edge {percent(by['recorded'])}, inferred {percent(by['inferred'])}, "
        f"by none {percent(by['none'])}."
    ]
    if rank["masked_ns"]:
        said.append(
            f"Of launch_starved, {short_ms(rank['masked_ns'])} ms ran under a producer of the late kernel, "
            "which mending the host alone does not win."
        )
    headers = ("Reason", "ms", "Of the window", "Of the lost time")
    caption = f"Time without compute, {_whole(rank)}"
    return Section(
        "lost",
        "Why no compute ran",
        tuple(said),
        bars=(("By reason", parts_of(parts, total_ns)),) if total_ns else (),
        tables=(Table(caption, headers, (*rows,), 3, keys, True),),
    )


def _reasons(absent: dict[str, Any]) -> Iterator[tuple[str, int]]:
    for reason, value in absent.items():
        if isinstance(value, dict):
            yield from ((f"{reason}.{key}", ns) for key, ns in value.items())
        else:
            yield reason, value


def communication(document: dict[str, Any], rank: Rank) -> Section:
    """Exposed against blocking by kind, and what its absence would win at most."""
    exposed = rank["exposed_comm_by_kind_ns"]
    if replays_only(rank) or exposed is None:
        return Section("communication", "Communication")
    blocking = None if rank["absent_ns"] is None else rank["absent_ns"]["blocking"]
    costs = _costs(document)
    rows = [
        (
            kind,
            exact_ms(ns),
            exact_ms(None if blocking is None else blocking.get(kind, 0)),
            exact_ms(costs.get(kind)),
        )
        for kind, ns in sorted(exposed.items(), key=lambda part: -part[1])
    ]
    if not rows:
        said = ("None ran while no compute did.", *_hidden(rank))
        return Section("communication", "Communication", said)
    keys = (*(f"exposed_comm.{row[0]}" for row in rows), "")
    held_ns = None if blocking is None else sum(blocking.get(kind, 0) for kind in exposed)
    rows.append(("sum", exact_ms(sum(exposed.values())), exact_ms(held_ns), ""))
    about = (
        "Exposed: it runs and no compute does, an upper bound. Blocking: compute waits for it, what a fix "
        "can recover. Taken away alone: what its absence wins by replay; these overlap and do not add up."
    )
    headers = ("Kind", "Exposed, ms", "Blocking, ms", "Taken away alone, ms")
    caption = f"Communication by kind, {_whole(rank)}"
    table = Table(caption, headers, (*rows,), 3, keys, True)
    return Section(
        "communication",
        "Communication: exposed against blocking",
        (about, *_hidden(rank)),
        bars=_against(exposed, blocking),
        tables=(table,),
    )


def _against(exposed: dict[str, int], blocking: dict[str, int] | None) -> tuple[Any, ...]:
    """Both bars on one scale, so that what is exposed and blocks nothing shows as the difference."""
    kinds = sorted(exposed, key=lambda kind: -exposed[kind])
    total_ns = sum(exposed.values())
    if not total_ns:
        return ()
    bars = [("Exposed", [(f"exposed_comm.{kind}", exposed[kind]) for kind in kinds])]
    if blocking is not None:
        bars.append(("Blocking", [(f"blocking.{kind}", blocking.get(kind, 0)) for kind in kinds]))
        total_ns = max(total_ns, sum(ns for _, ns in bars[1][1]))
    return tuple((title, parts_of(rows, total_ns)) for title, rows in bars)


def _costs(document: dict[str, Any]) -> dict[str, int]:
    """By kind; told of one rank only, as they are of all."""
    if len(document["ranks"]) > 1:
        return {}
    wall = next((one for one in document["walls"] if one["id"] == "communication"), None)
    return (wall and wall["cost_by_kind_ns"]) or {}


def _hidden(rank: Rank) -> Iterator[str]:
    if rank["hidden_comm_ns"]:
        yield f"Hidden under compute: {short_ms(rank['hidden_comm_ns'])} ms."
    if (a2a := rank["a2a"]) and a2a["instances"]:
        waits = a2a["waiting_like_ns"]
        waiting = f", of it {short_ms(waits)} ms like waiting for a late peer" if waits is not None else ""
        yield (
            f"Expert all-to-all by {rank['detected']['dispatcher']}: {a2a['instances']:,} exchanges, "
            f"payload {short_ms(a2a['payload_ns'])} ms{waiting}, control {short_ms(a2a['control_ns'])} ms."
        )


def moe(rank: Rank) -> Section:
    """The MoE ledger by module and pass, and by layer; nothing where no tokens are routed."""
    found = rank.get("moe")  # results of earlier versions have none
    if not found or not found["rows"]:
        return Section("moe", "MoE layers")
    keys = ("wall_ns", "work_ns", "exposed_ns", "blocking_ns", "host_wait_ns")
    rows = [
        (row["module"], row["pass"], f"{row['count']:,}", *(short_ms(row[key]) for key in keys))
        for row in found["rows"]
    ]
    headers = ("Module", "Pass", "Kernels", "Wall, ms", "Work, ms", "Exposed", "Blocking", "Host waits")
    caption = f"MoE layers by module and pass, {_whole(rank)}; modules may overlap"
    said = (f"{tax_sentence(found)}.",)
    table = Table(caption, headers, (*rows,), 6)
    folded = (_by_layer(found),) if found["by_layer"] else ()
    return Section("moe", "MoE layers", said, tables=(table,), folded=folded)


def _by_layer(found: dict[str, Any]) -> Table:
    layers: dict[int, dict[str, int]] = {}
    for row in found["by_layer"]:
        of_layer = layers.setdefault(row["layer"], {})
        of_layer[row["module"]] = of_layer.get(row["module"], 0) + row["wall_ns"]
    modules = list(dict.fromkeys(row["module"] for row in found["rows"]))
    rows = tuple(
        (str(layer), *(short_ms(of_layer.get(module, 0)) for module in modules))
        for layer, of_layer in sorted(layers.items())
    )
    return Table("Layer by layer: wall time of all passes, ms", ("Layer", *modules), rows, len(modules))


def sms(rank: Rank) -> Section:
    """Occupancy and fill by class, what limits it, and what counters measured."""
    sm = rank["sm"]
    classes = sorted(sm["by_class"].items(), key=lambda one: one[0])
    rows = [_sm_row(name, one) for name, one in classes]
    if sm["occupancy_frac"] is not None or sm["persistent_ns"]:
        rows.append(_sm_row("all compute", sm))
    if not rows and sm["measured"] is None:
        return Section("sms", "SMs: occupancy and fill")
    headers = (
        "Class",
        "Occupancy",
        "Launch occupancy",
        "Fill",
        "Tail, ms",
        "Under-filled, ms",
        "Persistent, ms",
        "Limit",
    )
    caption = "By class, weighted by work, as the launches allow; counters are not needed for it"
    keys = (*(f"compute.{name}" for name, _ in classes), *([""] if len(rows) > len(classes) else []))
    return Section(
        "sms",
        "SMs: occupancy and fill",
        (*_sm_said(sm),),
        tables=(Table(caption, headers, (*rows,), 7, keys, len(rows) > len(classes)),) if rows else (),
    )


def _sm_row(name: str, use: dict[str, Any]) -> tuple[str, ...]:
    limits = use["limiter_ns"] or {}
    limit = max(limits, key=lambda one: limits[one], default="").replace("_", " ")
    fracs = (share(use[key]) for key in ("occupancy_frac", "launch_occupancy_frac", "fill_frac"))
    times = (short_ms(use[key]) for key in ("tail_ns", "under_filled_ns", "persistent_ns"))
    return (name, *fracs, *times, limit)


def _sm_said(sm: dict[str, Any]) -> Iterator[str]:
    if sm["persistent_ns"]:
        yield "Persistent kernels have a low occupancy by design: theirs is no fault and is not told."
    if sm["comm_blocks"] and sm["sm_count"]:
        yield f"Communication held up to {sm['comm_blocks']} blocks on {sm['sm_count']} SMs."
    if sm["stretch_frac"] is not None:
        yield f"Compute beside communication is stretched by {percent(sm['stretch_frac'])}."
    if (measured := sm["measured"]) is not None and measured["sm_issue_frac"] is not None:
        yield (
            f"SM issue {percent(measured['sm_issue_frac'])} measured over {measured['samples']:,} samples, "
            f"{percent(measured['pure_frac'])} of them pure."
        )


def kernels(rank: Rank) -> Section:
    """Kernels with the most work, and those that no rule names."""
    table = rank.get("kernel_table") or {"rows": []}
    rows = tuple(
        (
            printable(one["name"], _NAME_WIDTH),
            one["key"],
            UNTOLD if one["grid"] is None else " × ".join(map(str, one["grid"])),
            f"{one['count']:,}",
            short_ms(one["work_ns"]),
        )
        for one in table["rows"][:_KERNELS]
    )
    unknown = tuple(
        (
            printable(one["name"], _NAME_WIDTH),
            UNTOLD if one["grid"] is None else " × ".join(map(str, one["grid"])),
            f"{one['count']:,}",
            short_ms(one["busy_ns"]),
            percent(one["frac"]),
        )
        for one in rank["unknown_kernels"]
    )
    folded = []
    if rows:
        caption = f"Kernels with the most work, {_whole(rank)}"
        folded.append(Table(caption, ("Kernel", "Class", "Grid", "Number", "Work, ms"), rows, 2))
    if unknown:
        folded.append(
            Table(
                "Kernels that no rule names",
                ("Kernel", "Grid", "Number", "Wall, ms", "Of the window"),
                unknown,
                3,
            )
        )
    return Section("kernels", "Kernels", folded=tuple(folded))


def _whole(rank: Rank) -> str:
    count = len(rank["steps"]["used"])
    return f"sum of {count} steps" if count > 1 else "one step" if count else "the window"

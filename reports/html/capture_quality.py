"""Is the recording good enough: what it notes, what it leaves out, and how to record the rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from reports.html.section import Section, Table, short_ms
from reports.redaction import redaction_sentence
from reports.sentences import origin, who
from reports.words import percent, seconds

_NO_CURES: Final = ("none is needed", "use a later version")
Document = dict[str, Any]


def capture_quality(document: Document) -> Section:
    """Of all traces and ranks."""
    told = [said for trace in document["traces"] for said in _trace(trace)]
    told += [said for rank in document["ranks"] for said in _rank(rank, len(document["ranks"]) > 1)]
    folded = [*_steps(document["ranks"]), *_gaps(document)]
    return Section("capture", "The recording", listed=tuple(told), folded=tuple(folded))


def _trace(trace: dict[str, Any]) -> Iterator[str]:
    capture = trace["capture"]
    said = [f"{trace['name']}: {origin(trace)}"]
    if capture["correlation_frac"] is not None:
        said.append(f"{percent(capture['correlation_frac'])} of the kernels have their launch recorded")
    if (slower := capture["perturbation_frac"]) is not None:
        than = "longer" if slower >= 0 else "shorter"
        said.append(f"the recorded step is {percent(abs(slower))} {than} than without the profiler")
    if trace["missing_tables"]:
        said.append(f"it lacks {', '.join(trace['missing_tables'])}")
    yield f"{'; '.join(said)}."
    yield from (f"The recording notes: {note.rstrip('.')}." for note in capture["diagnostics"])


def _rank(rank: dict[str, Any], several: bool) -> Iterator[str]:
    of = f" ({who(rank)})" if several else ""
    if rank["clock_offset_ns"]:
        yield f"Host and GPU clocks are apart by {short_ms(rank['clock_offset_ns'])} ms{of}."
    if rank["kernels_without_launch"]:
        yield f"Kernels whose launch was not recorded{of}: {rank['kernels_without_launch']:,}."
    if (by := rank["absent_decided_by_frac"]) is not None:
        yield f"Time without compute that no edge decides{of}: {percent(by['none'])}."
    if rank["steps"]["disagreement"]:
        yield f"{rank['steps']['disagreement'].rstrip('.')}{of}."
    if count := len(rank["steps"]["dropped"]):
        reasons = ", ".join(dict.fromkeys(one["reason"] for one in rank["steps"]["dropped"]))
        yield f"{count} step{'s are' if count > 1 else ' is'} left out{of}: {reasons}."


def _steps(ranks: list[dict[str, Any]]) -> Iterator[Table]:
    for rank in ranks[:1]:
        steps = rank["steps"]
        rows = tuple(
            (
                str(one["index"]),
                one.get("reason") or ("slow, used" if one["index"] in steps["slow"] else "used"),
                seconds(one["start_ns"]),
                f"{one['start_ns']}",
                f"{one['end_ns']}",
                short_ms(one["end_ns"] - one["start_ns"]),
            )
            for one in sorted([*steps["used"], *steps["dropped"]], key=lambda one: int(one["index"]))
        )
        if rows:
            headers = ("Step", "State", "Start", "Start, ns", "End, ns", "ms")
            yield Table("Steps, as recorded", headers, rows, 4)


def _gaps(document: Document) -> Iterator[Table]:
    rows = tuple(
        (gap["path"], gap["reason"], gap["cure"])
        for gap in document["missing"]
        if gap["cure"] not in _NO_CURES
    )
    if rows:
        yield Table("What could not be told", ("Where in the JSON", "Why", "To tell it"), rows)


def versions(document: Document) -> tuple[str, ...]:
    """What wrote the page, and from what."""
    tool = document["tool"]
    guidance = f", guidance {tool['guidance']}" if tool["guidance"] else ""
    return (
        f"{tool['name']} {tool['version']}{guidance}, document {document['schema_version']}.",
        redaction_sentence(document),
    )

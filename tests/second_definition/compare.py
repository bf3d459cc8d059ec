"""The product's document of a drawn run against the second definition; a command for many runs."""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import moe_diag
from bench.simulate.export import write_export
from tests.second_definition import walls
from tests.second_definition.account import LATENCY, account, clock, corrected, latencies
from tests.second_definition.budget import Windows, budget
from tests.second_definition.drawn import Run, draw
from tests.second_definition.rows import Rank, ranks
from tests.second_definition.steps import steps
from traces.errors import EmptySelection, NothingToDiagnose

NOT_DEFINED = ("period", "graph")
"""Ways to find steps that the page names only: the rest is judged in the product's own windows."""
LATENCIES = {".dependency_stalled", "launch_latency.arrival", "launch_latency.kernel_gap"}


@dataclass
class Compared:
    """One run: figures compared, and what was said otherwise: key, by definition, by the product."""

    figures: int = 0
    differences: list[tuple[str, Any, Any]] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    """What the page does not settle, and so was not compared."""

    def hold(self, key: str, defined: Any, said: Any) -> None:
        """Compare one figure."""
        self.figures += 1
        if defined != said:
            self.differences.append((key, defined, said))


def document(path: Path, run: Run) -> dict[str, Any]:
    """What the product says."""
    start, end = run.options.get("start"), run.options.get("end")
    said: dict[str, Any] = moe_diag.analyze(path, start=start, end=end).to_dict()
    return said


def compared(run: Run, folder: Path) -> Compared:
    """Write a run and hold the document against the definition."""
    found, path = Compared(), folder / "drawn.sqlite"
    path.unlink(missing_ok=True)
    write_export(path, run.recording)
    try:
        said = document(path, run)
    except EmptySelection:
        found.doubts.append("a window in which nothing was recorded")
        return found
    except NothingToDiagnose:
        found.hold("ranks", ranks(path), [])
        return found
    by_place = {(rank.pid, rank.device): rank for rank in ranks(path)}
    if not run.options:  # a window of the user's may hold nothing of a rank
        places = sorted((one["process"], one["device"]) for one in said["ranks"])
        found.hold("ranks", sorted(by_place), places)
    for one in said["ranks"]:
        rank = by_place[one["process"], one["device"]]
        windows = [(start, end) for start, end in one["windows_ns"]]
        used = {step["index"]: (step["start_ns"], step["end_ns"]) for step in one["steps"]["used"]}
        apart = rank.spans["PROFILER_OVERHEAD"] and _clock_differs(one, clock(rank))  # from borders
        if not run.options and one["steps"]["source"] not in NOT_DEFINED and not apart:
            _steps(found, rank, one["steps"], windows, used)
        _budget(found, rank, one, windows)
        _account(found, rank, one, list(used.values()) or windows)
    walls.hold(found, said, by_place)
    return found


def _steps(
    found: Compared, rank: Rank, said: Mapping[str, Any], windows: Windows, used: dict[int, tuple[int, int]]
) -> None:
    offset = clock(rank)
    defined = steps(corrected(rank, offset[0]) if offset and offset[0] else rank)
    if defined.doubt:
        found.doubts.append(defined.doubt)
        return
    found.hold("steps.source", defined.source, said["source"])
    found.hold("windows", defined.windows, windows)
    if defined.source != "none":
        found.hold("steps.used", defined.used, used)
        empty = {number for number, reason in defined.dropped.items() if reason == "no GPU work"}
        dropped = {one["index"] for one in said["dropped"]}
        found.hold("steps.dropped", sorted({*defined.dropped} - empty), sorted(dropped - empty))


def _budget(found: Compared, rank: Rank, said: Mapping[str, Any], windows: Windows) -> None:
    shares = budget(rank, windows)
    for key, part in (
        *(("budget_ns", "buckets"), ("exposed_comm_by_kind_ns", "comm"), ("exposed_copy_by_kind_ns", "copy")),
        ("compute_by_class_ns", "compute"),
    ):
        found.hold(key, _merged(shares[part]), _merged(said[key] or {}))
    found.hold("hidden_comm_ns", shares["hidden"]["comm"], said["hidden_comm_ns"])


def _account(found: Compared, rank: Rank, said: Mapping[str, Any], windows: Windows) -> None:
    offset, is_known = clock(rank), said["absent_ns"] is not None
    if doubt := _doubt(rank, said, offset):
        found.doubts.append(doubt)
        return
    if offset is None or not is_known:
        found.hold("absent_ns is known", offset is not None, is_known)
        return
    told = {reason: value for reason, value in said["absent_ns"].items() if isinstance(value, int)}
    for reason in ("launch_starved", "blocking", "launch_latency"):
        told |= {f"{reason}.{part}": time for part, time in said["absent_ns"][reason].items()}
    found.hold("sum", said["budget_ns"]["window"] - said["budget_ns"]["compute"], sum(told.values()))
    found.hold("decided", sum(told.values()) > 0, sum(said["absent_decided_by_frac"].values()) > 0.999)
    moved = corrected(rank, offset[0]) if offset[0] else rank
    (reasons, masked), other = account(moved, windows), account(moved, windows, within=True)
    if _merged(reasons) != _merged(told) and _lies_between(told, reasons, other[0]):
        found.doubts.append("what a call waits for")  # of each call; by neither reading in all of them
        reasons, masked = other
        if _merged(reasons) != _merged(told):
            return
    if _merged(reasons) != _merged(told) and said["absent_decided_by_frac"]["inferred"]:
        found.doubts.append("inferred producers")
        return
    differ = {key for key, _ in {*_merged(reasons).items()} ^ {*_merged(told).items()}}
    if max(latencies(moved)) > LATENCY and differ and differ <= LATENCIES:
        found.doubts.append("latencies of starts, of some of which the producer is inferred")
        return
    found.hold("absent_ns", _merged(reasons), _merged(told))
    if said["masked_ns"] > masked:
        found.doubts.append("masked by what a call outlasted")
    else:
        found.hold("masked_ns", masked, said["masked_ns"])


def _doubt(rank: Rank, said: Mapping[str, Any], offset: tuple[int, int] | None) -> str:
    """Why an account cannot be held against the page."""
    if not any(work.call for work in rank.works if work.is_kernel and work.name != "graph_trace"):
        return "no launch"
    if any(work.name == "graph_trace" for work in rank.works):
        return "graphs recorded whole"
    if len({(call.end, call.thread) for call in rank.calls}) > len({call.end for call in rank.calls}):
        return "which of two threads decides that return from calls at one instant"
    recorded = {stream for stream, _ in rank.records.values()}
    if any(not work.call and work.stream in recorded for work in rank.works):
        return "events recorded behind work without a launch row"
    replayed = {work.call for work in rank.works if work.node is not None}
    graphs = [call for call in rank.calls if call.name == "cudaGraphLaunch" and call not in replayed]
    last = max(work.call.start for work in rank.works if work.call)
    if graphs and (not replayed or graphs[0].start < last):  # of graphs alone none shows whether it was cut
        return "graph launches without work"
    if any(work.node is not None and work.call is None for work in rank.works):
        return "nodes of a graph without a launch row"
    if _clock_differs(said, offset):
        return "how far clocks are apart"
    return "clocks where the host stays far ahead" if offset is None and said["absent_ns"] is not None else ""


def _clock_differs(said: Mapping[str, Any], offset: tuple[int, int] | None) -> bool:
    return (offset or (0, 0)) != (said["clock_corrected_ns"], said["clock_within_ns"] or 0)


def _lies_between(told: Mapping[str, int], *readings: Mapping[str, int]) -> bool:
    one, another = (Counter(_merged(reading)) for reading in readings)
    said = Counter(_merged(told))
    return all(
        min(one[key], another[key]) <= said[key] <= max(one[key], another[key])
        for key in {*one, *another, *said}
    )


def _merged(counted: Mapping[str, int]) -> dict[str, int]:
    """Without zero, and kinds as one where the page's evidence, or its word, is not the product's."""
    same = dict.fromkeys(("dp_reduce_scatter", "dp_all_gather", "tp", "cp"), "other_comm")
    same |= {"copy_overhead": "launch", "token_count_sync": "sync"}  # the former is sync by the page
    merged: Counter[str] = Counter()
    for key, value in counted.items():
        head, _, kind = key.rpartition(".")
        merged[f"{head}.{same.get(kind, kind)}"] += value
    return {key: value for key, value in merged.items() if value}


def main() -> None:
    """Compare many runs and print what differs."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=10_000)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    kinds, doubts, figures, agree = Counter[str](), Counter[str](), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(given.seed, given.seed + given.runs):
            one = compared(draw(seed), Path(folder))
            figures, agree = figures + one.figures, agree + (not one.differences)
            doubts.update(one.doubts)
            kinds.update(key for key, _, _ in one.differences)
            for key, defined, said in one.differences:
                print(f"seed {seed} {key}\n  defined {defined}\n  said    {said}", flush=True)
    print("\n".join(f"{count:6} not compared: {doubt}" for doubt, count in doubts.most_common()))
    print("\n".join(f"{count:6} differ: {key}" for key, count in kinds.most_common()))
    print(f"{given.runs} runs, {figures} figures; {agree} runs agree in all")


if __name__ == "__main__":
    main()

"""A diagnosis as pandas tables: each a row type of the result, with <NA> where a value is not
known.

Times are integers of ns. A table is made from its columns: name and pandas type stand in
frames.toml.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from traces.missing import known
from traces.toml_tables import read_table

if TYPE_CHECKING:
    import pandas as pd

    from heuristics.result.judged import Fix
    from heuristics.result.result import Result
    from traces.sections.rank import Rank
    from traces.sections.tables import Timeline

Row = Mapping[str, Any]
Rows = Iterator[Row]


def frame(table: str, rows: Iterable[Row]) -> pd.DataFrame:
    """A table of `frames.toml`; a row lacks what does not apply, and what is missing becomes
    <NA>.
    """
    import pandas as pd

    types = read_table("diagnoser", "frames.toml", dict[str, dict[str, str]])[table]
    made = [[*map(known, map(row.get, types))] for row in rows]
    return pd.DataFrame(made, columns=list(types)).astype(types)


def _where(rank: Rank) -> Row:
    return {"trace": rank.trace, "process": rank.process, "device": rank.device, "rank": rank.rank}


def parts(result: Result) -> Rows:
    """Each bucket, kind and class of every rank."""
    for rank in result.ranks:
        buckets = asdict(rank.budget_ns)
        window_ns = buckets.pop("window")
        groups = {
            "bucket": buckets,
            "exposed_comm_kind": rank.exposed_comm_by_kind_ns or {},
            "exposed_copy_kind": rank.exposed_copy_by_kind_ns,
            "compute_class": rank.compute_by_class_ns,
        }
        for group, of_group in groups.items():
            for key, ns in of_group.items():
                frac = None if known(ns) is None else ns / window_ns
                yield {**_where(rank), "group": group, "key": key, "ns": ns, "frac": frac}


def ranks(result: Result) -> Rows:
    in_run = {row.index: asdict(row) for row in result.run.ranks} if result.run else {}
    for place, rank in enumerate(result.ranks):
        buckets = {f"{name}_ns": ns for name, ns in asdict(rank.budget_ns).items()}
        waits = in_run.get(place, {})
        waiting = {name: waits.get(name) for name in ("waited_ns", "caused_ns", "device_factor")}
        steps = {"steps": len(rank.steps.used), "step_mean_ns": rank.steps.mean_ns}
        yield {**_where(rank), "gpu": rank.gpu, **steps, **buckets, **waiting}


def steps(result: Result) -> Rows:
    """Every recorded step of every rank, in order."""
    for rank in result.ranks:
        left_out = {dropped.index: dropped.reason for dropped in rank.steps.dropped}
        for step in sorted(
            (*rank.steps.used, *rank.steps.dropped), key=lambda each_step: each_step.index
        ):
            yield {
                **_where(rank),
                "step": step.index,
                "start_ns": step.start_ns,
                "end_ns": step.end_ns,
                "length_ns": step.length_ns,
                "used": step.index not in left_out,
                "left_out_because": left_out.get(step.index),
            }


def kernels(result: Result) -> Rows:
    """Kernels by name and grid, those with the most work of each rank first."""
    for rank in result.ranks:
        for row in rank.kernel_table.rows:
            grid = zip(("grid_x", "grid_y", "grid_z"), row.grid or (), strict=False)
            mean_ns = row.work_ns / row.count if row.count else None
            yield {**_where(rank), **asdict(row), **dict(grid), "mean_ns": mean_ns}


def fix_row(fix: Fix) -> Row:
    least, most = fix.gain_frac or (None, None)
    knobs = {name: "\n".join(lines) or None for name, lines in asdict(fix.knobs).items()}
    return {**asdict(fix), **knobs, "gain_low_frac": least, "gain_high_frac": most}


def timeline(result: Result) -> Rows:
    """One step of each rank, and further steps where they are kept: what ran, and what called
    it.
    """
    for rank in result.ranks:
        for shown in rank.timelines:
            for row in _spans(shown):
                yield {**_where(rank), "step": shown.step, **row}


def _spans(shown: Timeline) -> Rows:
    names = dict(enumerate(shown.names))  # -1 has none
    for lane in shown.lanes:
        launches = lane.launch_ns or (None,) * len(lane.at_ns)
        for at_ns, length_ns, key, name, launch_ns in zip(
            lane.at_ns, lane.length_ns, lane.key, lane.name, launches, strict=True
        ):
            launched = known(launch_ns)
            yield {
                "lane": "gpu", "stream": lane.stream, "key": shown.keys[key],
                "name": names.get(name), "start_ns": shown.start_ns + at_ns, "length_ns": length_ns,
                "launch_ns": None if launched is None else shown.start_ns + launched,
            }  # fmt: skip
    for host in shown.host:
        for at_ns, length_ns, name in zip(host.at_ns, host.length_ns, host.name, strict=True):
            yield {
                "lane": host.kind, "thread": host.thread, "depth": host.depth,
                "name": names.get(name), "start_ns": shown.start_ns + at_ns, "length_ns": length_ns,
            }  # fmt: skip
    if reasons := shown.reasons:
        for at_ns, length_ns, reason in zip(
            reasons.at_ns, reasons.length_ns, reasons.reason, strict=True
        ):
            yield {
                "lane": "no_compute", "key": reasons.reasons[reason],
                "start_ns": shown.start_ns + at_ns, "length_ns": length_ns,
            }  # fmt: skip

"""One trace -> what a diagnosis needs of it: read, built, measured, and its columns given back."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from diagnoser.allocator import keep_freed_memory
from diagnoser.bounds import out_of_memory
from diagnoser.elsewhere import Elsewhere
from diagnoser.rank_map import Row, check_rows, contradictions, identified, row_of
from reports.result.read import is_result
from traces.columns import Columns, TraceInfo
from traces.errors import EmptySelection, InputError, NotATrace, NotShared, TraceNotFound
from traces.formats.open import ReadOptions, read_trace
from traces.limits import Limit
from traces.measure.capture import measure_messages
from traces.measure.measurements import RankMeasurements, measure_rank
from traces.names.gpus import with_products
from traces.progress import report
from traces.ranks.codec import SUFFIX, is_summary
from traces.sections.trace import Messages
from traces.steps.selection import Selection
from traces.timeline import RankTimeline, build

MOST_RANKS: Final = Limit(
    512,
    "processes on GPUs in one recording",
    "ours: a machine has at most 72 GPUs, and each of these takes some 10 ms however little it does "
    "(measured 2026-11-23)",
)


@dataclass(frozen=True, slots=True)
class TraceTask:
    """A trace, and how it is measured. `gpu`: the product the user names, for what the trace lacks.

    `rows`: what a map of ranks says of it; `folder`: where relative paths start, for a process elsewhere.
    """

    path: Path
    selection: Selection
    options: ReadOptions
    gpu: str | None
    only_data_parallel: bool
    rows: tuple[Row, ...] = ()
    folder: Path | None = None

    @property
    def file(self) -> Path:
        """The trace, for the process that reads it."""
        return self.folder / self.path if self.folder else self.path

    @property
    def reading(self) -> ReadOptions:
        """How it is read, likewise."""
        cache = self.options.cache_dir
        return replace(self.options, cache_dir=self.folder / cache) if self.folder and cache else self.options


@dataclass(frozen=True, slots=True)
class MeasuredTrace:
    """A trace that was read. Nothing in it holds columns, so that it is small and travels between processes.

    `ranks`: those that were chosen and that the selection matches; `missed`: why others are left out, by
    process and device. `devices` and `recorded_ranks` are of all that the trace has: without GPU work, none.
    """

    path: Path
    info: TraceInfo
    warnings: tuple[str, ...]
    graph_launches: int
    opaque_graph_launches: int
    devices: tuple[int, ...]
    recorded_ranks: tuple[int, ...]
    messages: tuple[Messages, ...] | None
    ranks: tuple[RankMeasurements, ...]
    missed: tuple[tuple[int | None, int, EmptySelection], ...]

    @property
    def is_chosen(self) -> bool:
        """Whether the selection names any of its ranks."""
        return bool(self.ranks or self.missed)


def measure_all(elsewhere: Elsewhere, tasks: Mapping[str, TraceTask]) -> list[MeasuredTrace | InputError]:
    """Measure several traces; the error of one that cannot be used, or that no process could read."""
    found = elsewhere.map(measure_trace, tasks)
    return [_named(task, one) for task, one in zip(tasks.values(), found, strict=True)]


def _named(task: TraceTask, found: MeasuredTrace | InputError) -> MeasuredTrace | InputError:
    if task.folder and isinstance(found, TraceNotFound) and os.access(task.path, os.R_OK):
        return NotShared(
            f"{task.path} is here, but a worker of the cluster cannot read it. "
            "Put it where all workers see it, under the same path."
        )
    return found


def measure_trace(task: TraceTask) -> MeasuredTrace | InputError:
    """Measure the chosen ranks of a trace; the error of one that cannot be used."""
    keep_freed_memory()
    try:
        return _measured_trace(task)
    except MemoryError:
        pass  # with the error goes what it held
    return out_of_memory(str(task.path))


def _measured_trace(task: TraceTask) -> MeasuredTrace | InputError:
    try:
        _check_no_result(task.file)
        timeline = build(_read(task))
    except InputError as error:
        return error
    if (count := sum(_is_chosen(rank, task) for rank in timeline.ranks)) > MOST_RANKS.value:
        return NotATrace(
            f"{task.file} has work of {count:,} pairs of a process and a GPU; no machine has over "
            f"{MOST_RANKS.value:,.0f}. Choose some with --gpu, or record again."
        )
    unknown = check_rows(task.rows, timeline.ranks)
    ranks, missed, warnings = _measured(timeline.ranks, task)
    return MeasuredTrace(
        task.path,
        timeline.columns.info,
        (*timeline.warnings, *unknown, *warnings),
        timeline.graph_launches,
        timeline.opaque_graph_launches,
        tuple(rank.device for rank in timeline.ranks),
        tuple(number for rank in timeline.ranks if (number := _number(rank, task)) is not None),
        measure_messages(timeline.columns) if ranks else None,
        ranks,
        missed,
    )


def _read(task: TraceTask) -> Columns:
    columns = with_products(read_trace(task.file, task.reading, report), task.gpu)
    report(f"measuring {task.path.name}")
    return columns


def _check_no_result(path: Path) -> None:
    """An earlier result is rendered, and a kept summary merged, not diagnosed."""
    if path.name.endswith(SUFFIX) and path.is_file():
        with path.open("rb") as file:
            if is_summary(file.read(64)):
                raise NotATrace(f"{path} is a summary of a rank, no trace. Type moe-diag merge {path}")
    if path.name.endswith((".json", ".json.gz")) and path.is_file() and is_result(path):
        raise NotATrace(f"{path} is an earlier result, no trace. Type moe-diag report {path}")


def _measured(
    ranks: Sequence[RankTimeline], task: TraceTask
) -> tuple[tuple[RankMeasurements, ...], tuple[tuple[int | None, int, EmptySelection], ...], tuple[str, ...]]:
    done, missed, warnings = [], [], list[str]()
    for rank in ranks:
        if not _is_chosen(rank, task):
            continue
        try:
            one = measure_rank(rank, task.selection, only_data_parallel=task.only_data_parallel)
        except EmptySelection as error:
            missed.append((rank.process, rank.device, EmptySelection(str(error))))  # holds no frame
            continue
        row, recorded = row_of(task.rows, rank), one.summary.identity
        warnings += contradictions(recorded, row)
        identity = identified(recorded, row)
        done.append(replace(one, rank=identity.rank, summary=replace(one.summary, identity=identity)))
    return tuple(done), tuple(missed), tuple(warnings)


def _is_chosen(rank: RankTimeline, task: TraceTask) -> bool:
    wanted = task.selection
    gpu_fits = wanted.gpu is None or rank.device == wanted.gpu
    return gpu_fits and (wanted.rank is None or _number(rank, task) == wanted.rank)


def _number(rank: RankTimeline, task: TraceTask) -> int | None:
    """Its number as recorded, else by the map."""
    recorded = None if rank.process is None else rank.columns.rank_of.get(rank.process)
    row = row_of(task.rows, rank)
    return recorded if recorded is not None or row is None else row.rank

"""One trace -> what a diagnosis needs of it: read, built, measured, and its columns given back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from diagnoser.allocator import keep_freed_memory
from reports.result.read import is_result
from traces.columns import Columns, TraceInfo
from traces.errors import EmptySelection, InputError, NotATrace
from traces.formats.open import ReadOptions, read_trace
from traces.measure.measurements import RankMeasurements, measure_rank
from traces.measure.messages import Messages, measure_messages
from traces.names.gpus import with_sm_count
from traces.progress import report
from traces.ranks.codec import SUFFIX, is_summary
from traces.steps.selection import Selection
from traces.timeline import RankTimeline, build


@dataclass(frozen=True, slots=True)
class TraceTask:
    """A trace, and how it is measured. `gpu`: the product the user names, for what the trace lacks."""

    path: Path
    selection: Selection
    options: ReadOptions
    gpu: str | None
    only_data_parallel: bool


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


def measure_trace(task: TraceTask) -> MeasuredTrace | InputError:
    """Measure the chosen ranks of a trace; the error of one that cannot be used."""
    keep_freed_memory()
    try:
        _check_no_result(task.path)
        timeline = build(_read(task))
    except InputError as error:
        return error
    ranks, missed = _measured(timeline.ranks, task)
    return MeasuredTrace(
        task.path,
        timeline.columns.info,
        timeline.warnings,
        timeline.graph_launches,
        timeline.opaque_graph_launches,
        tuple(rank.device for rank in timeline.ranks),
        tuple(timeline.columns.rank_of.values()),
        measure_messages(timeline.columns) if ranks else None,
        ranks,
        missed,
    )


def _read(task: TraceTask) -> Columns:
    columns = with_sm_count(read_trace(task.path, task.options, report), task.gpu)
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
) -> tuple[tuple[RankMeasurements, ...], tuple[tuple[int | None, int, EmptySelection], ...]]:
    done, missed = [], []
    for rank in ranks:
        if not _is_chosen(rank, task.selection):
            continue
        try:
            done.append(measure_rank(rank, task.selection, only_data_parallel=task.only_data_parallel))
        except EmptySelection as error:
            missed.append((rank.process, rank.device, EmptySelection(str(error))))  # holds no frame
    return tuple(done), tuple(missed)


def _is_chosen(rank: RankTimeline, selection: Selection) -> bool:
    recorded = None if rank.process is None else rank.columns.rank_of.get(rank.process)
    gpu_fits = selection.gpu is None or rank.device == selection.gpu
    return gpu_fits and (selection.rank is None or recorded == selection.rank)

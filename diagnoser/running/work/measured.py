"""One trace -> what a diagnosis needs of it: read, built, measured, and its columns given back.

With what a user is told about what is not there: in the trace, in the selection, in the window.
"""

import os
from collections import ChainMap, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Final

from diagnoser.running.inputs.rank_map import MapRow, check_rows, contradictions, identified, row_of
from diagnoser.running.inputs.skipped import NO_WORK, why_skipped
from diagnoser.running.work.freed_memory import keep_freed_memory
from diagnoser.running.work.processes import Engine
from heuristics.plan.combined import Replay
from heuristics.plan.gains import Kinds, Replayed
from reports.result.read import is_result
from reports.rows import each
from traces import errors
from traces.columns import TraceInfo
from traces.cures import cure
from traces.errors import EmptySelection, InputError, out_of_memory
from traces.files.beneath import opened
from traces.formats.nsys_schema import CALLS
from traces.formats.open import ReadOptions, read_trace
from traces.frozen import frozen
from traces.gpu_work import build
from traces.limits import Limit
from traces.measure.capture import measure_messages
from traces.measurements import RankMeasurements, measure_rank
from traces.missing import Missing
from traces.names.file_names import told_path
from traces.names.gpus import with_products
from traces.progress import report
from traces.ranks.summaries.codec import SUFFIX, is_summary
from traces.recording.recorder import recorded_by
from traces.replay.changes.change import ChangesTogether, Joint
from traces.sections.trace import Messages
from traces.spelling import duration
from traces.steps.selection import Selection
from traces.texts import Texts
from traces.timeline import RankTimeline

MOST_RANKS: Final = Limit(
    512,
    "processes on GPUs in one recording",
    "ours: a machine has at most 72 GPUs, and each of these takes some 10 ms however little it "
    "does (measured 2026-11-23)",
)


Missed = tuple[int | None, int, EmptySelection]
"""The process and the device of a rank that is left out, and why."""


@frozen
class TraceTask:
    """A trace, and how it is measured. `gpu`: the product the user names, for what the trace lacks.

    `rows`: what a map of ranks says of it; `folder`: where relative paths start, for a process
    elsewhere; `name`: as it is told beside the others, None: by its path alone.
    """

    path: Path
    selection: Selection
    options: ReadOptions
    gpu: str | None
    only_data_parallel: bool
    rows: tuple[MapRow, ...] = ()
    folder: Path | None = None
    name: str | None = None

    @property
    def file(self) -> Path:
        """The trace, for the process that reads it."""
        if self.folder:
            return self.folder / self.path
        return self.path

    @property
    def reading(self) -> ReadOptions:
        cache = self.options.cache_dir
        if self.folder and cache:
            return replace(self.options, cache_dir=self.folder / cache)
        return self.options


@frozen
class MeasuredTrace:
    """A trace that was read. Nothing in it holds columns, so that it is small and travels between
    processes.

    `ranks`: those that were chosen and that the selection matches; `missed`: why others are left
    out, by process and device. `devices` and `recorded_ranks` are of all that the trace has:
    without GPU work, none.
    """

    path: Path
    info: TraceInfo
    warnings: Texts
    graph_launches: int
    opaque_graph_launches: int
    devices: tuple[int, ...]
    recorded_ranks: tuple[int, ...]
    messages: tuple[Messages, ...] | None
    ranks: tuple[RankMeasurements, ...]
    missed: tuple[Missed, ...]


def measure_all(engine: Engine, tasks: Mapping[str, TraceTask]) -> list[MeasuredTrace | InputError]:
    """Measure several traces; the error of one that cannot be used, or that no process could
    read.
    """
    traces = [*engine.map(measure_trace, tasks)]
    for place, task in enumerate(tasks.values()):
        if (
            task.folder
            and isinstance(traces[place], errors.TraceNotFound)
            and os.access(task.path, os.R_OK)
        ):
            traces[place] = errors.NotShared(
                f"{task.path} is here, but a worker of the cluster cannot read it. "
                "Put it where all workers see it, under the same path."
            )
    return traces


def replay_at(
    engine: Engine, read: Sequence[MeasuredTrace | InputError], order: Sequence[int] | None
) -> Replay:
    """What replays where the graphs of the ranks stayed, asking each trace once.

    `order`: which of all ranks that were measured are meant, None: all.
    """
    homes = list[tuple[int, int]]()
    for at, trace in enumerate(read):
        if isinstance(trace, MeasuredTrace):
            homes += zip(repeat(at), range(len(trace.ranks)))
    if order is not None:
        homes = [homes[place] for place in order]

    def replay(pairs: Sequence[tuple[Replayed, Sequence[Kinds]]]) -> list[Sequence[Joint]]:
        questions = defaultdict[int, dict[int, tuple[int, Sequence[Kinds]]]](dict)
        for at, (rank, kinds) in enumerate(pairs):
            if kinds:
                trace, number = homes[rank.place]
                questions[trace][at] = number, kinds
        answers = engine.ask(
            {trace: partial(joints, several) for trace, several in questions.items()}
        )
        by_place = ChainMap(*answers)
        return [by_place.get(at, ()) for at in range(len(pairs))]

    return replay


def joints(
    questions: Mapping[int, tuple[int, Sequence[Kinds]]], trace: MeasuredTrace
) -> dict[int, list[Joint]]:
    """What kinds of change save that are made as one, each by the place of its rank in the
    trace.
    """
    saved = {}
    for at, (number, changes) in questions.items():
        costs = trace.ranks[number].costs
        assert not isinstance(costs, Missing)
        assert isinstance(costs.together, ChangesTogether)
        saved[at] = [*map(costs.together.joint, changes)]
    return saved


def measure_trace(task: TraceTask) -> MeasuredTrace | InputError:
    keep_freed_memory()
    try:
        return _measured_trace(task)
    except MemoryError:
        pass  # with the error goes what it held
    return out_of_memory(str(task.path))


def _measured_trace(task: TraceTask) -> MeasuredTrace | InputError:
    try:
        _check_no_result(task.file)
        columns = with_products(read_trace(task.file, task.reading, report), task.gpu)
        columns = replace(columns, info=replace(columns.info, name=task.name or columns.info.name))
        report(f"measuring {task.path.name}")
        timeline = build(columns)
    except InputError as error:
        return error
    wanted = task.selection
    chosen = [
        rank
        for rank in timeline.ranks
        if wanted.gpu in (None, rank.device) and wanted.rank in (None, _number(rank, task))
    ]
    if len(chosen) > MOST_RANKS.value:
        return errors.NotATrace(
            f"{task.file} has work of {len(chosen):,} pairs of a process and a GPU; no machine has "
            f"over {MOST_RANKS.value:,.0f}. Choose some with --gpu, or record again."
        )
    unknown = check_rows(task.rows, timeline.ranks)
    ranks, missed, warnings = _measured(chosen, task)
    numbers = [number for rank in timeline.ranks if (number := _number(rank, task)) is not None]
    return MeasuredTrace(
        task.path,
        columns.info,
        (*timeline.warnings, *unknown, *warnings),
        timeline.graph_launches,
        timeline.opaque_graph_launches,
        tuple(each(timeline.ranks, "device")),
        tuple(numbers),
        measure_messages(columns) if ranks else None,
        ranks,
        missed,
    )


def _check_no_result(path: Path) -> None:
    if path.name.endswith(SUFFIX) and path.is_file():
        with opened(path) as file:
            if is_summary(file.read(64)):
                raise errors.NotATrace(
                    f"{path} is a summary of a rank, no trace. Type moe-diag merge {path}"
                )
    if path.name.endswith((".json", ".json.gz")) and path.is_file() and is_result(path):
        raise errors.NotATrace(
            f"{path} is an earlier result, no trace. Type moe-diag report {path}"
        )


def _measured(
    ranks: Sequence[RankTimeline], task: TraceTask
) -> tuple[
    tuple[RankMeasurements, ...],
    tuple[Missed, ...],
    Texts,
]:
    done, missed, warnings = [], [], []
    for rank in ranks:
        try:
            own = measure_rank(rank, task.selection, only_data_parallel=task.only_data_parallel)
        except EmptySelection as error:
            missed.append((rank.process, rank.device, EmptySelection(str(error))))  # holds no frame
            continue
        if row := row_of(task.rows, rank):
            recorded = own.summary.identity
            warnings += contradictions(recorded, row)
            identity = identified(recorded, row)
            own = replace(own, rank=identity.rank, summary=replace(own.summary, identity=identity))
        done.append(own)
    return tuple(done), tuple(missed), tuple(warnings)


def _number(rank: RankTimeline, task: TraceTask) -> int | None:
    """Its number as recorded, else by the map."""
    if rank.process in rank.columns.rank_of:
        return rank.columns.rank_of[rank.process]
    row = row_of(task.rows, rank)
    if not row:
        return None
    return row.rank


def chosen_of(
    paths: Sequence[Path], traces: Sequence[MeasuredTrace | InputError], selection: Selection
) -> tuple[list[MeasuredTrace], Texts, list[str]]:
    """The traces with chosen ranks, why others were skipped, and warnings.

    Raises the first error where no trace can be used. A rank the selection misses becomes a
    warning, unless it misses all.
    """
    warnings = []
    read = []
    failed = list[InputError | errors.NothingToDiagnose]()
    for path, outcome in zip(paths, traces, strict=True):
        if isinstance(outcome, InputError):
            failed.append(outcome)
        elif not outcome.devices:
            failed.append(errors.NothingToDiagnose(_what_to_record(outcome)))
        else:
            read.append(outcome)
            for warning in outcome.warnings:
                warnings.append(f"{told_path(path)}: {warning}")
            continue
        warnings.append(f"{told_path(path)} was skipped: {why_skipped(failed[-1])}")
    if not read:
        raise failed[0]
    missed = [*chain.from_iterable(each(read, "missed"))]
    for process, device, error in missed:
        warnings.append(f"process {process}, GPU {device} is left out: {error}")
    measured = [trace for trace in read if trace.ranks]
    if measured:
        return measured, tuple(map(str, failed)), warnings
    if missed:
        raise missed[0][2]
    gpus, numbers = _listed(read, "devices"), _listed(read, "recorded_ranks")
    known = f"recorded ranks are {numbers}" if numbers else "no rank is recorded in the trace"
    options = ("--rank", selection.rank), ("--gpu", selection.gpu)
    given = " ".join(f"{option} {value}" for option, value in options if value is not None)
    raise EmptySelection(
        f"{given} matches nothing: kernels ran on GPU {gpus}, and {known}. Choose one of these."
    )


def _what_to_record(trace: MeasuredTrace) -> str:
    path, kind = trace.path, trace.info.kind
    if trace.graph_launches:
        return (
            f"{path} has {trace.graph_launches} CUDA graph launches, but {NO_WORK}: "
            f"this export dropped them. To diagnose it, {cure('dropped_graphs', kind)}."
        )
    nothing = "no CUDA data, " if CALLS in trace.info.missing_tables else ""
    work = "no kernels" if "graph replays" in recorded_by(kind).never else NO_WORK
    return f"{path} has {nothing}{work}: nothing to diagnose. Record the GPU: {cure('work', kind)}"


def _listed(traces: Sequence[MeasuredTrace], field: str) -> str:
    return ", ".join(map(str, sorted({*chain.from_iterable(each(traces, field))})))


def recording_gaps(index: int, trace: MeasuredTrace) -> Iterator[Missing]:
    if trace.opaque_graph_launches:
        yield Missing(
            f"traces[{index}].graph_launches",
            f"{trace.opaque_graph_launches} of {trace.graph_launches} CUDA graph launches show "
            "neither kernels nor a replay, so idle time may be work",
            cure("dropped_graphs", trace.info.kind),
        )
    if any(rank.kernel_count and rank.replay_count for rank in trace.ranks):
        yield Missing(
            f"traces[{index}].graph_replays",
            "some graph replays were recorded whole: communication in them counts as compute",
            cure("graphs", trace.info.kind),
        )


def window_warnings(ranks: Sequence[RankMeasurements]) -> Iterator[str]:
    """A window that reaches beyond the recording counts idle time that nobody recorded."""
    if outside_ns := max(each(ranks, "outside_activity_ns")):
        beyond = duration(outside_ns)
        yield (
            f"the window given reaches {beyond} beyond the recorded GPU work, which counts as idle"
        )

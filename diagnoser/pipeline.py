"""The whole flow on one screen: read, build, measure, judge, write down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from diagnoser.command_line import command_line, path_words
from diagnoser.diagnosis import Diagnosis
from diagnoser.gaps import (
    no_such_rank,
    recording_gaps,
    what_to_record,
    why_skipped,
    window_warnings,
)
from diagnoser.version import VERSION
from heuristics.config.given import only_data_parallel
from heuristics.judgement import Configured, judge
from heuristics.run.given import Given
from reports.result.fill.result import result_of_run
from reports.result.fill.trace import ReadTrace
from reports.result.read import is_result
from traces.columns import Columns
from traces.errors import EmptySelection, InputError, NotATrace, NothingToDiagnose, UsageError
from traces.formats.known_texts import trace_name
from traces.formats.open import ReadOptions, read_trace
from traces.measure.measurements import RankMeasurements, measure_rank
from traces.measure.messages import measure_messages
from traces.names.gpus import with_sm_count
from traces.progress import Progress, silent
from traces.steps.selection import Selection
from traces.timeline import RankTimeline, Timeline, build

if TYPE_CHECKING:
    from heuristics.plan.asked import Ask


def diagnose(
    paths: Sequence[Path],
    *,
    selection: Selection | None = None,
    options: ReadOptions | None = None,
    given: Given | None = None,
    configured: Configured | None = None,
    ask: Ask | None = None,
    progress: Progress = silent,
    redact: bool = True,
    command: str | None = None,
) -> Diagnosis:
    """Diagnose traces of one run; see `diagnoser.analyze` for what it raises.

    `configured`: what files say of the run; `ask`: asks Megatron-Core whether it takes a change; `command`:
    the line that makes the result again, None for that without options.
    """
    if not paths:
        raise UsageError("no trace given. Name one: moe-diag analyze run.nsys-rep")
    _check_distinct(paths)
    selection = selection or Selection()
    read, skipped, warnings = _read_all(
        paths, options or ReadOptions(), progress, given.gpu if given else None
    )
    alone = only_data_parallel(given or Given(), (configured or Configured()).files)
    measured = _measure_all(read, selection, warnings, alone)
    ranks = [rank for trace in measured for rank in trace.ranks]
    missing = [
        gap
        for index, trace in enumerate(measured)
        for gap in recording_gaps(index, trace.timeline, trace.ranks)
    ]
    result = result_of_run(
        VERSION,
        judge(ranks, given, configured, ask),
        traces=[
            ReadTrace(
                trace.columns.info,
                _launched_frac(trace.ranks),
                measure_messages(trace.columns),
                None if redact else path_words(trace.path, redact),
            )
            for trace in measured
        ],
        ranks=ranks,
        warnings=[*warnings, *window_warnings(ranks)],
        missing=missing,
        redact=redact,
        command=command or command_line("analyze", paths, {}, redact=redact),
    )
    return Diagnosis(result, skipped)


def _check_distinct(paths: Sequence[Path]) -> None:
    """A trace given twice would count twice."""
    seen: dict[Path, Path] = {}
    for path in paths:
        if (first := seen.setdefault(path.resolve(), path)) is not path:
            raise UsageError(f"{path} is given twice (also as {first}), and would count twice. Name it once.")


def _check_no_result(path: Path) -> None:
    """An earlier result is rendered, not diagnosed."""
    if path.name.endswith((".json", ".json.gz")) and path.is_file() and is_result(path):
        raise NotATrace(f"{path} is an earlier result, no trace. Type moe-diag report {path}")


@dataclass(frozen=True, slots=True)
class _Trace:
    """One trace on its way through the flow."""

    path: Path
    columns: Columns
    timeline: Timeline
    ranks: tuple[RankMeasurements, ...] = ()


def _read_all(
    paths: Sequence[Path], options: ReadOptions, progress: Progress, gpu: str | None
) -> tuple[list[_Trace], tuple[str, ...], list[str]]:
    """Every trace that can be read and has GPU work, why others were skipped, and warnings.

    `gpu`: the product the user names, for what a trace does not tell of it. Raises the first error where
    there is none.
    """
    read, failed, warnings = [], [], []
    for path in paths:
        try:
            _check_no_result(path)
            columns = with_sm_count(read_trace(path, options, progress), gpu)
            progress(f"measuring {path.name}", None)
            timeline = build(columns)
            if not timeline.ranks:
                raise NothingToDiagnose(what_to_record(path, columns.info.kind, timeline))
        except (InputError, NothingToDiagnose) as error:
            failed.append(error)
            warnings.append(f"{trace_name(path)} was skipped: {why_skipped(error)}")
            continue
        read.append(_Trace(path, columns, timeline))
        warnings += [f"{trace_name(path)}: {warning}" for warning in timeline.warnings]
    if not read:
        raise failed[0]
    return read, tuple(map(str, failed)), warnings


def _measure_all(
    read: Sequence[_Trace], selection: Selection, warnings: list[str], only_data_parallel: bool
) -> list[_Trace]:
    """Measure the chosen ranks. A rank the selection misses becomes a warning, unless it misses all."""
    chosen = [
        (trace, [rank for rank in trace.timeline.ranks if _is_chosen(rank, selection)]) for trace in read
    ]
    if not any(ranks for _, ranks in chosen):
        raise EmptySelection(
            no_such_rank([rank for trace in read for rank in trace.timeline.ranks], selection)
        )
    measured, missed = [], []
    for trace, ranks in chosen:
        done: list[RankMeasurements] = []
        for rank in ranks:
            try:
                done.append(measure_rank(rank, selection, only_data_parallel=only_data_parallel))
            except EmptySelection as error:
                missed.append(error)
                warnings.append(f"process {rank.process}, GPU {rank.device} is left out: {error}")
        if done:
            measured.append(replace(trace, ranks=tuple(done)))
    if not measured:
        raise missed[0]
    return measured


def _is_chosen(rank: RankTimeline, selection: Selection) -> bool:
    recorded = None if rank.process is None else rank.columns.rank_of.get(rank.process)
    gpu_fits = selection.gpu is None or rank.device == selection.gpu
    return gpu_fits and (selection.rank is None or recorded == selection.rank)


def _launched_frac(ranks: Sequence[RankMeasurements]) -> float | None:
    kernels = sum(rank.kernel_count for rank in ranks)
    return sum(rank.launched_count for rank in ranks) / kernels if kernels else None

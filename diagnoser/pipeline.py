"""The whole flow on one screen: read, build, measure, judge, write down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import UNSET

from diagnoser.cluster import workers_of
from diagnoser.command_line import command_line, path_words
from diagnoser.diagnosis import Diagnosis
from diagnoser.gaps import (
    no_such_rank,
    recording_gaps,
    what_to_record,
    why_skipped,
    window_warnings,
)
from diagnoser.inputs import traces_named
from diagnoser.measured import MeasuredTrace, TraceTask, measure_all
from diagnoser.rank_map import mapped_world, read_rank_map
from diagnoser.version import VERSION
from diagnoser.world import configured_world, other_world
from heuristics.config.given import only_data_parallel
from heuristics.judging.judgement import Configured, judge
from heuristics.run.given import Given
from reports.result.fill.result import result_of_run
from reports.result.fill.trace import ReadTrace
from reports.result.left_out import left_out
from traces.errors import EmptySelection, InputError, NothingToDiagnose
from traces.formats.known_texts import trace_name
from traces.formats.open import ReadOptions
from traces.measure.measurements import RankMeasurements
from traces.progress import Progress, silent
from traces.ranks.identity import with_world_size
from traces.steps.selection import Selection

if TYPE_CHECKING:
    from heuristics.plan.allowed import Ask
    from traces.sections.run import Run


def diagnose(
    paths: Sequence[Path],
    *,
    selection: Selection | None = None,
    options: ReadOptions | None = None,
    given: Given | None = None,
    configured: Configured | None = None,
    ask: Ask | None = None,
    jobs: int | None = 1,
    rank_map: Path | None = None,
    scheduler: str | None = None,
    progress: Progress = silent,
    redact: bool = True,
    command: str | None = None,
) -> Diagnosis:
    """Diagnose traces of one run; see `diagnoser.analyze` for what it raises.

    `configured`: what files say of the run; `ask`: asks Megatron-Core whether it takes a change; `command`:
    the line that makes the result again, None for that without options; `jobs`: how many
    traces at once, None: as many as there are cores; `scheduler`: the address of a cluster that reads them;
    `rank_map`: a file of rank numbers.
    """
    named, paths = paths, traces_named(paths)
    rows = read_rank_map(rank_map, paths)
    alone = only_data_parallel(given or Given(), (configured or Configured()).files)
    gpu = given.gpu if given else None
    chosen, how = selection or Selection(), options or ReadOptions()
    folder = None if scheduler is None else Path.cwd()
    tasks = {
        str(path): TraceTask(path, chosen, how, gpu, alone, rows.get(path, ()), folder) for path in paths
    }
    with workers_of(jobs, scheduler, progress) as workers:
        measured, skipped, warnings = _chosen(paths, measure_all(workers, tasks), chosen)
        world = configured_world(given, configured)
        size = mapped_world(rows) or world
        found = [
            replace(rank, summary=with_world_size(rank.summary, size))
            for trace in measured
            for rank in trace.ranks
        ]
        ranks, together = _together(found)
        judged = judge(ranks, given, configured, ask, together)
        warnings += other_world(world, together) if together else []
    sources = [trace.path for trace in measured for _ in trace.ranks]
    missing = [gap for index, trace in enumerate(measured) for gap in recording_gaps(index, trace)]
    result = result_of_run(
        VERSION,
        judged,
        traces=[
            ReadTrace(
                trace.info,
                _launched_frac(trace.ranks),
                trace.messages,
                None if redact else path_words(trace.path, redact),
            )
            for trace in measured
        ],
        ranks=ranks,
        run=together or UNSET,
        warnings=[*warnings, *window_warnings(ranks), *left_out(together)],
        missing=missing,
        redact=redact,
        command=command or command_line("analyze", named, {}, redact=redact),
    )
    return Diagnosis(result, skipped, tuple(zip(sources, (rank.summary for rank in found), strict=True)))


def _together(found: Sequence[RankMeasurements]) -> tuple[Sequence[RankMeasurements], Run | None]:
    """The ranks used, in order, and what they show together; None of one, which needs none of that code."""
    if len(found) < 2:
        return found, None
    from heuristics.run.repairs import repaired
    from traces.ranks.problems import refuse_unlike
    from traces.ranks.run import judge, run_of

    refuse_unlike(found)
    tables = judge([rank.summary for rank in found])
    run = repaired(run_of(tables, [rank.trace for rank in found]))
    places = zip(tables.together.indices, run.ranks, strict=True)
    return [replace(found[index], rank=one.rank) for index, one in places], run


def _chosen(
    paths: Sequence[Path],
    found: Sequence[MeasuredTrace | InputError],
    selection: Selection,
) -> tuple[list[MeasuredTrace], tuple[str, ...], list[str]]:
    """The traces with chosen ranks, why others were skipped, and warnings.

    Raises the first error where no trace can be used. A rank the selection misses becomes a warning, unless
    it misses all.
    """
    warnings: list[str] = []
    read: list[MeasuredTrace] = []
    failed: list[InputError | NothingToDiagnose] = []
    for path, one in zip(paths, found, strict=True):
        if isinstance(one, MeasuredTrace) and one.devices:
            read.append(one)
            warnings += [f"{trace_name(path)}: {warning}" for warning in one.warnings]
        else:
            failed.append(NothingToDiagnose(what_to_record(one)) if isinstance(one, MeasuredTrace) else one)
            warnings.append(f"{trace_name(path)} was skipped: {why_skipped(failed[-1])}")
    if not read:
        raise failed[0]
    if not any(trace.is_chosen for trace in read):
        raise EmptySelection(no_such_rank(read, selection))
    missed = [one for trace in read for one in trace.missed]
    for process, device, error in missed:
        warnings.append(f"process {process}, GPU {device} is left out: {error}")
    measured = [trace for trace in read if trace.ranks]
    if not measured:
        raise missed[0][2]
    return measured, tuple(map(str, failed)), warnings


def _launched_frac(ranks: Sequence[RankMeasurements]) -> float | None:
    kernels = sum(rank.kernel_count for rank in ranks)
    return sum(rank.launched_count for rank in ranks) / kernels if kernels else None

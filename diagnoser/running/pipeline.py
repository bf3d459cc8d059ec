"""The whole flow on one screen: read, build, measure, judge, write down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import UNSET

from diagnoser.diagnosis import Diagnosis
from diagnoser.options.given import given_from
from diagnoser.options.requests import Analysis, made_again, path_of, path_words, reading_of
from diagnoser.running.configuration import asker, read_configured
from diagnoser.running.inputs.named import traces_named
from diagnoser.running.inputs.rank_map import (
    configured_world,
    mapped_world,
    other_world,
    read_rank_map,
)
from diagnoser.running.inputs.snapshots import read_snapshots, with_peak
from diagnoser.running.inputs.whole_names import with_whole_names
from diagnoser.running.inputs.witnesses import read_all
from diagnoser.running.work.cluster import workers_of
from diagnoser.running.work.measured import (
    TraceTask,
    chosen_of,
    measure_all,
    recording_gaps,
    replay_at,
    window_warnings,
)
from diagnoser.version import VERSION
from heuristics.config.given import only_data_parallel
from heuristics.judging.judgement import judge
from reports.result.fill.result import result_of_run
from reports.result.fill.trace import ReadTrace
from reports.result.left_out import left_out
from reports.rows import each
from traces.errors import InputError, NothingToDiagnose
from traces.formats.open import read_and_examine
from traces.gpu_work import build
from traces.measure.capture import measure_capture
from traces.measurements import RankMeasurements
from traces.missing import Missing
from traces.names.file_names import told_path, told_paths
from traces.ranks.summaries.identity import with_world_size
from traces.steps.selection import parse_selection

if TYPE_CHECKING:
    from reports.content.page import Page
    from traces.sections.run import Run


def diagnose(
    request: Analysis, command: str | None = None, left_out_steps: frozenset[int] | None = None
) -> Diagnosis:
    """Diagnose traces of one run; see `diagnoser.analyze` for what it raises.

    `command`: the line that makes the result again, None for that of `analyze`.
    `left_out_steps`: see `Selection`.
    """
    paths_given, progress = request.paths, request.progress
    inputs = [*map(Path, [paths_given] if isinstance(paths_given, str | PathLike) else paths_given)]
    given, config = given_from(request.about or {}), path_of(request.config)
    configured = read_configured(config, path_of(request.log), given, progress)
    chosen = parse_selection(
        request.steps, request.nvtx, request.start, request.end, request.rank, request.gpu
    )
    chosen = replace(chosen, left_out_steps=left_out_steps)
    paths = traces_named(inputs)
    rows = read_rank_map(path_of(request.ranks), paths)
    alone = only_data_parallel(given, configured.files)
    folder = None if request.scheduler is None else Path.cwd()
    how = reading_of(request)
    names = told_paths(paths)
    tasks = {
        str(path): TraceTask(
            path, chosen, how, given.gpu, alone, rows.get(path, ()), folder, names[path]
        )
        for path in paths
    }
    with workers_of(request.jobs, request.scheduler, progress) as workers:
        read = measure_all(workers, tasks)
        measured, skipped, warnings = chosen_of(paths, read, chosen)
        world = configured_world(given, configured)
        size, snapshot = mapped_world(rows) or world, read_snapshots(request.memory_snapshot)
        all_ranks = with_peak([*chain.from_iterable(each(measured, "ranks"))], snapshot)
        ranks_found = [
            replace(rank, summary=with_world_size(rank.summary, size)) for rank in all_ranks
        ]
        ranks, together, order = _together(ranks_found)
        ask = asker(request.ask_megatron and configured.has_files)
        judged = judge(ranks, given, configured, ask, together, replay_at(workers, read, order))
        warnings += other_world(world, together) if together else []
    witnessed = read_all(request.witness, each(ranks, "rank"))
    sources, missing, traces = [], list[Missing](), []
    for index, trace in enumerate(measured):
        sources += [trace.path] * len(trace.ranks)
        missing += recording_gaps(index, trace)
        path = None if request.redact else path_words(trace.path, redact=False)
        traces.append(ReadTrace(trace.info, _launched_frac(trace.ranks), trace.messages, path))
    result = result_of_run(
        VERSION,
        judged,
        traces=traces,
        ranks=ranks,
        run=together or UNSET,
        warnings=[*warnings, *window_warnings(ranks), *left_out(together), *witnessed.warnings],
        missing=missing,
        redact=request.redact,
        command=command or made_again("analyze", inputs, request),
        hang=witnessed.hang,
        witness=witnessed.witness,
        memory_snapshot=snapshot,
    )
    skipped += witnessed.skipped
    result = with_whole_names(result, [*paths, config, path_of(request.log)])
    return Diagnosis(
        result, skipped, tuple(zip(sources, each(ranks_found, "summary"), strict=True))
    )


def _together(
    measured: Sequence[RankMeasurements],
) -> tuple[Sequence[RankMeasurements], Run | None, Sequence[int] | None]:
    """The ranks used, what they show together, and their places among those found.

    None of one rank, which needs none of that code.
    """
    if len(measured) < 2:
        return measured, None, None
    from heuristics.late.run import judge, run_of
    from heuristics.run.repairs import repaired
    from traces.ranks.one_run.mixed import refuse_mixed
    from traces.unlike import refuse_unlike

    refuse_unlike(measured)
    tables, names = judge(each(measured, "summary")), each(measured, "trace")
    refuse_mixed(tables.measured.together, names, "analyze")
    run = repaired(run_of(tables, names))
    order = tables.measured.together.indices
    ranks = [
        replace(measured[index], rank=in_run.rank)
        for index, in_run in zip(order, run.ranks, strict=True)
    ]
    return ranks, run, order


def _launched_frac(ranks: Sequence[RankMeasurements]) -> float | None:
    kernels = sum(each(ranks, "kernel_count"))
    if kernels:
        return float(sum(each(ranks, "launched_count")) / kernels)
    return None


def examined(trace: Path, request: Analysis) -> Page:
    """What is in a recording, how it went wrong, and what it is good enough for; of several each in
    a line.

    Raises `InputError`; of several one that cannot be read is a line too.
    """
    from reports.content.doctor import page_of_several

    examined_files: list[tuple[str, Page | str]] = []
    paths = traces_named([trace])
    if len(paths) == 1:
        return _examined(paths[0], request)
    for path in paths:
        try:
            examined_files.append((told_path(path), _examined(path, replace(request, paths=path))))
        except InputError as error:
            examined_files.append((told_path(path), str(error).replace(str(path), told_path(path))))
    return page_of_several(told_path(trace) or ".", examined_files)


def _examined(trace: Path, request: Analysis) -> Page:
    from reports.content.doctor import page

    columns, traps = read_and_examine(trace, reading_of(request), request.progress)
    capture = measure_capture(columns, build(columns))
    try:
        result = diagnose(request).result
    except (InputError, NothingToDiagnose):
        result = None
    return page(columns.info, capture, traps, result)

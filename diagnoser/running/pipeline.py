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


def diagnose(asked: Analysis, command: str | None = None) -> Diagnosis:
    """Diagnose traces of one run; see `diagnoser.analyze` for what it raises.

    `command`: the line that makes the result again, None for that of `analyze`.
    """
    several, progress = asked.paths, asked.progress
    named = [*map(Path, [several] if isinstance(several, str | PathLike) else several)]
    given, config = given_from(asked.about or {}), path_of(asked.config)
    configured = read_configured(config, path_of(asked.log), given, progress)
    chosen = parse_selection(asked.steps, asked.nvtx, asked.start, asked.end, asked.rank, asked.gpu)
    paths = traces_named(named)
    rows = read_rank_map(path_of(asked.ranks), paths)
    alone = only_data_parallel(given, configured.files)
    folder = None if asked.scheduler is None else Path.cwd()
    how = reading_of(asked)
    names = told_paths(paths)
    tasks = {
        str(path): TraceTask(
            path, chosen, how, given.gpu, alone, rows.get(path, ()), folder, names[path]
        )
        for path in paths
    }
    with workers_of(asked.jobs, asked.scheduler, progress) as workers:
        read = measure_all(workers, tasks)
        measured, skipped, warnings = chosen_of(paths, read, chosen)
        world = configured_world(given, configured)
        size, snapshot = mapped_world(rows) or world, read_snapshots(asked.memory_snapshot)
        every = with_peak([*chain.from_iterable(each(measured, "ranks"))], snapshot)
        found = [replace(rank, summary=with_world_size(rank.summary, size)) for rank in every]
        ranks, together, order = _together(found)
        ask = asker(asked.ask_megatron and configured.has_files)
        judged = judge(ranks, given, configured, ask, together, replay_at(workers, read, order))
        warnings += other_world(world, together) if together else []
    witnessed = read_all(asked.witness, each(ranks, "rank"))
    sources, missing, traces = list[Path](), list[Missing](), list[ReadTrace]()
    for index, trace in enumerate(measured):
        sources += [trace.path] * len(trace.ranks)
        missing += recording_gaps(index, trace)
        path = None if asked.redact else path_words(trace.path, redact=False)
        traces.append(ReadTrace(trace.info, _launched_frac(trace.ranks), trace.messages, path))
    result = result_of_run(
        VERSION,
        judged,
        traces=traces,
        ranks=ranks,
        run=together or UNSET,
        warnings=[*warnings, *window_warnings(ranks), *left_out(together), *witnessed.warnings],
        missing=missing,
        redact=asked.redact,
        command=command or made_again("analyze", named, asked),
        hang=witnessed.hang,
        witness=witnessed.witness,
        memory_snapshot=snapshot,
    )
    skipped += witnessed.skipped
    result = with_whole_names(result, asked.redact, [*paths, config, path_of(asked.log)])
    return Diagnosis(result, skipped, tuple(zip(sources, each(found, "summary"), strict=True)))


def _together(
    found: Sequence[RankMeasurements],
) -> tuple[Sequence[RankMeasurements], Run | None, Sequence[int] | None]:
    """The ranks used, what they show together, and their places among those found.

    None of one rank, which needs none of that code.
    """
    if len(found) < 2:
        return found, None, None
    from heuristics.late.run import judge, run_of
    from heuristics.run.repairs import repaired
    from traces.ranks.one_run.mixed import refuse_mixed
    from traces.unlike import refuse_unlike

    refuse_unlike(found)
    tables, names = judge(each(found, "summary")), each(found, "trace")
    refuse_mixed(tables.measured.together, names, "analyze")
    run = repaired(run_of(tables, names))
    order = tables.measured.together.indices
    ranks = [
        replace(found[index], rank=one.rank) for index, one in zip(order, run.ranks, strict=True)
    ]
    return ranks, run, order


def _launched_frac(ranks: Sequence[RankMeasurements]) -> float | None:
    kernels = sum(each(ranks, "kernel_count"))
    if kernels:
        return float(sum(each(ranks, "launched_count")) / kernels)
    return None


def examined(trace: Path, asked: Analysis) -> Page:
    """What is in a recording, how it went wrong, and what it is good enough for; of several each in
    a line.

    Raises `InputError`; of several one that cannot be read is a line too.
    """
    from reports.content.doctor import page_of_several

    found: list[tuple[str, Page | str]] = []
    paths = traces_named([trace])
    if len(paths) == 1:
        return _examined(paths[0], asked)
    for path in paths:
        try:
            found.append((told_path(path), _examined(path, replace(asked, paths=path))))
        except InputError as error:
            found.append((told_path(path), str(error).replace(str(path), told_path(path))))
    return page_of_several(told_path(trace) or ".", found)


def _examined(trace: Path, asked: Analysis) -> Page:
    from reports.content.doctor import page

    columns, traps = read_and_examine(trace, reading_of(asked), asked.progress)
    capture = measure_capture(columns, build(columns))
    try:
        found = diagnose(asked).result
    except (InputError, NothingToDiagnose):
        found = None
    return page(columns.info, capture, traps, found)

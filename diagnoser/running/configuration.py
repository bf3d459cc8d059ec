"""A run's configuration and its log, which say what a trace cannot: read, and judged without a
trace.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from diagnoser.diagnosis import Diagnosis
from diagnoser.options.given import given_from
from diagnoser.options.requests import Check, made_again, path_of
from diagnoser.running.inputs.snapshots import peak_of, read_snapshots
from diagnoser.running.inputs.whole_names import with_whole_names
from diagnoser.version import VERSION
from reports.rows import each
from traces.errors import InputError
from traces.files.plain_file import no_file, read_text
from traces.names.file_names import told_path
from traces.progress import Progress, silent

if TYPE_CHECKING:
    from heuristics.config.about import Given
    from heuristics.judging.judgement import FilesRead
    from heuristics.plan.allowed import Ask
    from traces.settings.settings import FileProblem
    from traces.training_log.log import TrainingLog


def read_configured(
    config: Path | None,
    log: Path | None,
    given: Given,
    progress: Progress = silent,
    has_more: bool = False,
) -> FilesRead:
    """Read both; a path that is None was not given. A configuration that is none, and holds
    lines of a log, is read as the log.

    A text of no kind that we know stops nothing where the other one, or `has_more` beside them,
    tells of the run: it is a problem of the file then. Raises `InputError` for a file that is
    missing, too large or binary, or of no kind that we know and all there is.
    """
    from heuristics.judging.judgement import FilesRead

    for path in filter(None, (config, log)):
        _check(path)
    logged, problems = _read_log(log, progress, is_all=config is None) if log else (None, ())
    if not config:
        return FilesRead(log=logged, problems=problems)

    from heuristics.config.versions import core_of_bridge
    from heuristics.run.run import Run
    from traces.settings.read import read_configuration
    from traces.settings.settings import FileProblem, NotAConfiguration

    core = Run(given=given).config.core_text or (logged.versions.get("core") if logged else None)
    try:
        read = read_configuration(config, core)
        if not core and (core := core_of_bridge(read.versions.get("bridge"))):
            read = read_configuration(config, core)
    except NotAConfiguration as error:
        if not log:
            with suppress(InputError):
                return FilesRead(log=_read_log(config, progress, is_all=True)[0])
        if not logged and not has_more:
            raise
        reason = f"not read as a configuration ({error}); everything else is judged"
        return FilesRead(log=logged, problems=(*problems, FileProblem(told_path(config), reason)))
    return FilesRead(read.settings, logged, (*read.problems, *problems), read.versions)


def _check(path: Path) -> None:
    """Say plainly what a path names that no reader can open."""
    if what := no_file(path):
        cure = (
            "Name the file in it."
            if path.is_dir()
            else "Save what it gives to a file, and name that."
        )
        raise InputError(f"{path} is {what}. {cure}")
    if not path.exists():
        raise InputError(f"{path} does not exist. Check the path.")


def _read_log(
    path: Path, progress: Progress, is_all: bool
) -> tuple[TrainingLog | None, tuple[FileProblem, ...]]:
    """The log; a problem in its place where no line is one that a training run prints.

    Raises `InputError` then where the log `is_all` there is.
    """
    from heuristics.rules.rules import known_lines
    from traces.settings.settings import FileProblem
    from traces.training_log.read import read_log

    log = read_log(path, known_lines(), progress)
    read = (
        log.iterations,
        log.versions,
        log.settings,
        log.memory,
        log.out_of_memory,
        log.messages,
        log.loading_fracs,
        log.batch_ns,
        log.theoretical,
        log.unknown_error,
    )
    if not any(read):
        reason = f"{told_path(path)} holds no line that we know of a training run."
        if is_all:
            raise InputError(f"{reason} Give the text that the run printed, or leave the log out.")
        return None, (
            FileProblem(told_path(path), f"{reason.rstrip('.')}; everything else is judged"),
        )
    return log, ()


def asker(wanted: bool) -> Ask | None:
    if not wanted:
        return None
    from diagnoser.megatron import check_with_megatron

    return check_with_megatron


def check_config(request: Check, ask: Ask | None = None) -> Diagnosis:
    """Judge a configuration, alone or with symptoms that are said of the run.

    `ask`: asks Megatron-Core itself, None: as is asked for. Raises `InputError` for files that are
    not what they should be.
    """
    from heuristics.evidence.evidence import with_fit
    from heuristics.evidence.symptoms import Symptoms, observed_from, read_symptoms
    from heuristics.judging.judgement import judge_observed
    from reports.result.fill.result import result_of_run
    from reports.result.voice.kept import in_our_words

    given = given_from(request.about or {})
    config = Path(request.path)
    symptoms = path_of(request.symptoms)
    configured = read_configured(
        config, path_of(request.log), given, request.progress, has_more=bool(symptoms)
    )
    read = Symptoms()
    if symptoms:
        try:
            text = read_text(symptoms)
        except (OSError, ValueError):
            raise InputError(
                f"{symptoms}: cannot be read as text. Give a JSON file of symptoms."
            ) from None
        raw = read_symptoms(text, symptoms.name)
        read = replace(raw, walls=in_our_words(raw.walls), verdict=in_our_words(raw.verdict))
    request.progress("checking the configuration", None)
    memory, seen = read_snapshots(request.memory_snapshot), observed_from(read, configured.settings)
    if seen.observed.peak_bytes is None:
        seen = replace(seen, observed=replace(seen.observed, peak_bytes=peak_of(memory)))
    observed = with_fit(seen, given, configured.log)
    judgement = judge_observed(observed, given, configured, ask or asker(request.ask_megatron))
    is_unmeasured = {*each(judgement.walls, "outcome")} <= {"unmeasurable"}
    judged = symptoms is not None or not is_unmeasured
    result = result_of_run(
        VERSION,
        judgement,
        about=told_path(config),
        judged=judged,
        warnings=read.unread,
        redact=request.redact,
        command=made_again("check-config", [config], request),
        memory_snapshot=memory,
    )
    return Diagnosis(with_whole_names(result, [config, path_of(request.log)]))

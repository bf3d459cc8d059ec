"""The files that say what a trace cannot: the run's configuration, and the log of its training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from traces.errors import InputError
from traces.files.plain_file import no_file
from traces.progress import Progress, silent

if TYPE_CHECKING:
    from heuristics.judging.judgement import Configured
    from heuristics.run.given import Given
    from traces.training_log.log import TrainingLog


def read_configured(
    config: Path | None, log: Path | None, given: Given, progress: Progress = silent
) -> Configured:
    """Read both; a path that is None was not given.

    Raises `InputError` for a file that is missing, too large, binary, or of no kind that we know.
    """
    from heuristics.judging.judgement import Configured

    for path in (config, log):
        _check(path)
    logged = _read_log(log, progress) if log else None
    if config is None:
        return Configured(log=logged)

    from heuristics.run.run import Run
    from traces.settings.read import read_configuration

    core = Run(given=given).config.core_text or (logged.versions.get("core") if logged else None)
    read = read_configuration(config, core)
    return Configured(read.settings, logged, read.problems, read.versions)


def _check(path: Path | None) -> None:
    """Say plainly what a path names that no reader can open."""
    if path is None:
        return
    if what := no_file(path):
        cure = "Name the file in it." if path.is_dir() else "Save what it gives to a file, and name that."
        raise InputError(f"{path} is {what}. {cure}")
    if not path.exists():
        raise InputError(f"{path} does not exist. Check the path.")


def _read_log(path: Path, progress: Progress) -> TrainingLog:
    """The log. Raises `InputError` for a text of which no line is one that a training run prints."""
    from heuristics.rules.rules import known_lines
    from traces.training_log.read import read_log

    log = read_log(path, known_lines(), progress)
    said = (log.iterations, log.versions, log.settings, log.memory, log.out_of_memory, log.messages)
    if not any((*said, log.theoretical, log.unknown_error)):
        raise InputError(
            f"{path.name} holds no line that we know of a training run. Give the text that the run "
            "printed, or leave the log out."
        )
    return log

"""The files that say what a trace cannot: the run's configuration, and the log of its training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from traces.progress import Progress, silent

if TYPE_CHECKING:
    from heuristics.judgement import Configured
    from heuristics.run import Given


def read_configured(
    config: Path | None, log: Path | None, given: Given, progress: Progress = silent
) -> Configured:
    """Read both; a path that is None was not given.

    Raises `InputError` for a file that is missing, too large, binary, or of no kind that we know.
    """
    from heuristics.fixes.preconditions import core_version
    from heuristics.judgement import Configured
    from heuristics.run import Run
    from traces.settings.read import read_configuration
    from traces.training_log.read import read_log

    logged = read_log(log, progress) if log else None
    core = core_version(Run(given=given)) or (logged.versions.get("core") if logged else None)
    if config is None:
        return Configured(log=logged)
    read = read_configuration(config, core)
    return Configured(read.settings, logged, read.problems, read.versions)

"""Two runs compared by their configurations and logs: read both sides, compare, write down."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from diagnoser.diagnosis import Diagnosis, FilesResult
from diagnoser.options.given import given_from
from diagnoser.options.requests import FilesComparison, gate_asked, made_again, path_of
from diagnoser.running.comparison import named
from diagnoser.running.configuration import read_configured
from diagnoser.running.inputs.whole_names import with_whole_names
from diagnoser.version import VERSION
from reports.result.read import is_result
from reports.rows import each
from traces.errors import UsageError
from traces.files.beneath import opened
from traces.files.plain_file import no_file
from traces.formats.open import OF_RUNS
from traces.missing import of_known
from traces.names.file_names import told_path
from traces.sections.section import copied

if TYPE_CHECKING:
    from heuristics.comparison.files.side import FileSide
    from heuristics.config.about import Given
    from heuristics.judging.judgement import FilesRead

_OF_RECORDINGS: Final = ("expect", "steps", "nvtx", "base_gpu", "new_gpu", "more_base")
"""Options that choose in a recording, or judge one."""
_NO_CONFIGURATION: Final = ("schema_version", "traceEvents", "deviceProperties")
"""Keys of JSON files that are results or recordings."""


def is_of_files(path: Path) -> bool:
    """Whether a path names a configuration or a log, as its ending says; a JSON file is looked
    into.

    What is not there is named by what reads it, as its ending says.
    """
    if no_file(path) or (path.exists() and not path.is_file()):
        return False
    if path.suffix.lower() != ".json":
        return path.suffix.lower() in OF_RUNS
    # loads readers of configurations, which two traces need not
    from traces.settings.read import (
        LARGEST,
    )

    if not path.exists() or path.stat().st_size > LARGEST.value or is_result(path):
        return False
    try:
        with opened(path) as file:
            value = json.loads(file.read(LARGEST.whole + 1))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(value, dict) and bool(value) and value.keys().isdisjoint(_NO_CONFIGURATION)


def asked_of_files(
    base: Path | Diagnosis | None, new: Path | Diagnosis | None, typed: Mapping[str, Any]
) -> FilesComparison | None:
    """The comparison of files that a command line asks for; None where a side is a recording or a
    result.

    Raises `UsageError` where one side is a file of a run and the other a recording of one, and for
    an option that is of recordings.
    """
    if isinstance(base, Diagnosis) or isinstance(new, Diagnosis):
        return None
    sides = [*filter(None, (base, new))]
    are_files = [*map(is_of_files, sides)]
    if any(are_files) and not all(are_files):
        _refuse_mixed(sides, are_files)
    base_given, new_given = base or typed.get("base_config"), new or typed.get("new_config")
    if not all(are_files) or not any(
        (base_given, new_given, typed.get("base_log"), typed.get("new_log"))
    ):
        return None
    for name in filter(typed.get, _OF_RECORDINGS):
        flag = f"--{name.replace('_', '-')}"
        raise UsageError(
            f"{flag} is of recordings. Type the same line without it, or give recordings."
        )
    own = {*each(fields(FilesComparison), "name")} & {*typed}
    return FilesComparison(base_given, new_given, **{name: typed[name] for name in own})


def _refuse_mixed(sides: list[Path], are_files: list[bool]) -> None:
    file, other = sides[are_files.index(True)], sides[are_files.index(False)]
    if not other.exists() or file.suffix.lower() == ".json":
        return  # named where it is read
    raise UsageError(
        f"{file} is a file of a run, {other} is none. Give two configurations or logs, or two "
        "recordings with --base-config and --new-config."
    )


def compare_files(request: FilesComparison) -> FilesResult:
    """Compare; see `diagnoser.compare_files` for what it raises."""
    from heuristics.comparison.files.comparison import compare_files as compared

    gate = gate_asked(request)
    given = given_from(request.about or {})
    base, new = _side("base", request, given), _side("new", request, given)
    request.progress("comparing", None)
    configs = path_of(request.base), path_of(request.new)
    files = [*filter(None, configs)]
    alone = {} if len(files) == 2 else {"--base-config": configs[0], "--new-config": configs[1]}
    compared_files = compared(base, new, gate)
    result = structs.replace(
        compared_files,
        tool=structs.replace(compared_files.tool, version=VERSION),
        redacted=request.redact,
        command=made_again("compare", [] if alone else files, request, alone),
    )
    logs = path_of(request.base_log), path_of(request.new_log)
    return FilesResult(with_whole_names(result, [*configs, *logs]))


def _side(name: str, request: FilesComparison, given: Given) -> FileSide:
    """One side, read. Raises `UsageError` for one of which nothing is given."""
    config, log = path_of(getattr(request, name)), path_of(getattr(request, f"{name}_log"))
    if not config and not log:
        raise UsageError(
            f"{name} has neither a configuration nor a log. Type moe-diag compare BASE.yaml "
            "NEW.yaml, or give --base-log and --new-log"
        )
    from heuristics.comparison.files.side import FileSide
    from reports.result.fill.shown import shown_of

    with named(name):
        config, log, configured = _read(config, log, request, given)
    of_config, of_log = of_known(told_path, config), of_known(told_path, log)
    return copied(
        FileSide,
        configured,
        name=of_config or of_log or "",
        config=of_config,
        given=given,
        problems=len(configured.problems),
        shown=partial(shown_of, request.redact),
    )


def _read(
    config: Path | None, log: Path | None, request: FilesComparison, given: Given
) -> tuple[Path | None, Path | None, FilesRead]:
    """What is given of a side; a file that is a log, by its name or its lines, is read as one."""
    if config and not log and config.suffix.lower() in (".log", ".out"):
        config, log = None, config
    configured = read_configured(config, log, given, request.progress)
    if configured.log and not log:
        config, log = None, config
    return config, log, configured

"""One side of a comparison: what is given of it, and the finished document that is compared."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from diagnoser.about import given_from
from diagnoser.command_line import Value
from diagnoser.configuration import read_configured
from diagnoser.diagnosis import Diagnosis
from diagnoser.earlier import with_about, with_files
from diagnoser.inputs import real, traces_named
from diagnoser.pipeline import diagnose
from diagnoser.running.processes import Workers
from heuristics.result.result import Result
from reports.result.read import is_result, of_one_run, read_result, typed
from traces.errors import MoeDiagError, NotAResult, NotATrace, NothingToDiagnose, ProcessEnded, UsageError
from traces.formats.open import ReadOptions
from traces.progress import Progress, listener, silent
from traces.steps.selection import Selection

SideName = Literal["base", "new"]
Source = Path | Mapping[str, Any] | Diagnosis
"""The path of a trace, of several (a folder, a pattern) or of an earlier result; or what holds a result."""


@contextmanager
def named(side: SideName) -> Iterator[None]:
    """Whatever goes wrong within names the side, and stays of its class."""
    try:
        yield
    except MoeDiagError as error:
        error.args = (f"{side}: {error}",)
        raise


@dataclass(frozen=True, slots=True)
class Side:
    """What is given of one side. `gpu`: the CUDA device that is compared, None for the first.

    `baseline`: the name of the history that the source came by.
    """

    name: SideName
    source: Source
    gpu: int | None = None
    config: Path | None = None
    log: Path | None = None
    baseline: str | None = None

    def files(self) -> list[Path]:
        """Every file that is given of it. Raises what `traces_named` says."""
        with named(self.name):
            sources = traces_named([self.source]) if isinstance(self.source, Path) else []
        return [*sources, *(path for path in (self.config, self.log) if path)]

    def file(self, result: Result) -> Path:
        """The file that is compared; for a result given as such, the trace it is of."""
        return self.source if isinstance(self.source, Path) else Path(result.traces[0].name)


@dataclass(frozen=True, slots=True)
class Reading:
    """How both sides are read. `about`: fields of `heuristics.run.run.Given`, said of both runs.

    `redact`: paths and texts of configurations are withheld. `typed`: options of both sides, as they were.
    `jobs`: how many traces are read at once, None: as many as there are cores.
    """

    selection: Selection = field(default_factory=Selection)
    options: ReadOptions = field(default_factory=ReadOptions)
    about: Mapping[str, object] = field(default_factory=dict)
    redact: bool = True
    typed: Mapping[str, Value] = field(default_factory=dict)
    jobs: int | None = 1


def read_sides(base: Side, new: Side, reading: Reading, progress: Progress = silent) -> tuple[Result, Result]:
    """The results of both sides, each with at least one rank. One file for both is read once.

    Raises what `diagnoser.compare` says; each message begins with the name of its side.
    """
    given_from(reading.about)  # said of both: what is wrong in it is of no side
    is_one = isinstance(base.source, Path) and _files(base) == _files(new)
    sides = [base] if is_one else [base, new]
    jobs = reading.jobs if all(map(_takes_long, sides)) else 1
    with Workers(jobs, progress) as workers:
        found = workers.map(_read, {side.name: (side, reading) for side in sides})
    results = []
    for one in found:
        if isinstance(one, ProcessEnded):
            raise one
        results.append(one)
    return results[0], results[-1]


def _takes_long(side: Side) -> bool:
    """Whether its source is one trace, or may be: an earlier result is read at once, several traces share."""
    return isinstance(side.source, Path) and side.source.is_file() and not is_result(side.source)


def _files(side: Side) -> tuple[str | None, ...]:
    given = (side.source if isinstance(side.source, Path) else None, side.config, side.log)
    return tuple(None if one is None else real(one) for one in given)


def _read(task: tuple[Side, Reading]) -> Result:
    (side, reading), tell = task, listener()

    def shown(doing: str, fraction: float | None = None, rows: int | None = None) -> None:
        tell(f"{side.name}: {doing}", fraction, rows)

    with named(side.name):
        result = _result(side, reading, shown)
        if not result.ranks:
            what = side.source if isinstance(side.source, Path) else "this result"
            raise NothingToDiagnose(
                f"{what} has no trace in it. Give a trace, or what moe-diag analyze made of one."
            )
        return result


def _result(side: Side, reading: Reading, progress: Progress) -> Result:
    if not isinstance(side.source, Path):
        return _from_earlier(_given(side.source), side, reading, progress)
    if side.source.is_file() and is_result(side.source):
        return _from_earlier(_saved(side.source), side, reading, progress)
    try:
        return _diagnosed(side.source, side, reading, progress)
    except NotATrace:
        if not (side.source.is_file() and side.source.name.endswith((".json", ".json.gz"))):
            raise
    return _from_earlier(_saved(side.source), side, reading, progress)  # its keys were sorted


def _given(source: Mapping[str, Any] | Diagnosis) -> Result:
    return source.result if isinstance(source, Diagnosis) else of_one_run(typed(source))


def _saved(path: Path) -> Result:
    try:
        return read_result(path)
    except NotAResult as error:
        raise NotAResult(f"{str(error).rstrip('.')}, or give a trace") from None


def _diagnosed(path: Path, side: Side, reading: Reading, progress: Progress) -> Result:
    given = given_from(reading.about)
    return diagnose(
        [path],
        selection=reading.selection,
        options=reading.options,
        given=given,
        jobs=1 if path.is_file() else reading.jobs,
        configured=read_configured(side.config, side.log, given, progress),
        progress=progress,
        redact=reading.redact,
    ).result


def _from_earlier(result: Result, side: Side, reading: Reading, progress: Progress) -> Result:
    """An earlier result, with what is given beside it.

    Raises `UsageError` where a trace would be needed, and for a result that is not redacted as it should be.
    """
    if reading.redact and not result.redacted:
        raise UsageError(
            "this earlier result was made with --no-redact and holds paths. Give --no-redact to show them, "
            "or make it again without it."
        )
    if reading.selection != Selection():
        raise UsageError(
            "steps can be chosen in a trace only, and this is an earlier result. Give its trace, or leave "
            "--steps and --nvtx out."
        )
    if side.config or side.log:
        return with_files(result, side.config, side.log, reading.about, progress, reading.redact)
    return with_about(result, reading.about, reading.redact) if reading.about else result

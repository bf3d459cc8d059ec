"""The post-mortem on one screen: read both sides, compare, write down.

A side is a trace, or an earlier result into which a configuration, a log and words about the run
are laid as `analyze` would have.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from statistics import median
from typing import Any, Final, get_args

from msgspec import structs

from diagnoser.diagnosis import ComparisonResult, Diagnosis
from diagnoser.options.given import given_from, predictions
from diagnoser.options.requests import (
    Analysis,
    Comparison,
    Source,
    gate_asked,
    made_again,
    path_of,
    reading_of,
)
from diagnoser.running.configuration import read_configured
from diagnoser.running.inputs.named import traces_named
from diagnoser.running.inputs.whole_names import with_whole_names
from diagnoser.running.pipeline import diagnose
from diagnoser.running.work.processes import Workers, all_of
from diagnoser.version import VERSION
from heuristics.comparison.comparison import compare
from heuristics.comparison.difference.left_out import left_out_alike
from heuristics.comparison.difference.subject import Subject
from heuristics.comparison.expected import Prediction
from heuristics.comparison.gate import Asked
from heuristics.comparison.witnesses import weigh
from heuristics.config.about import OPTIONS, Guidance
from heuristics.evidence.symptoms import observed_from, symptoms_of
from heuristics.judging.judgement import judge_observed
from heuristics.result.result import Result
from reports.result.codec import encode
from reports.result.fill.result import result_of_run
from reports.result.fill.shown import given as given_of_run
from reports.result.read import is_result, kept_as_ours, of_one_run, read_result
from traces.errors import MoeDiagError, NotAResult, NotATrace, NothingToDiagnose, UsageError
from traces.files.beneath import real_path
from traces.frozen import frozen
from traces.limits import MOST
from traces.missing import known, of_known
from traces.patterns import compiled
from traces.progress import Progress, listener, silent
from traces.sections.section import copied
from traces.steps.selection import parse_selection
from traces.training_log.iterations import perturbation_frac, steady_step

_FROM_FILES: Final = (
    "configuration",
    "config_findings",
    "defects",
    "incidents",
    "rules",
    "workflow",
    "experiments",
    "memory_estimate",
    "throughput",
    "normal",
    "log",
    "given",
)
"""Fields of a result that a configuration and a log make."""


@contextmanager
def named(side: str) -> Iterator[None]:
    """Whatever goes wrong within names the side, and stays of its class."""
    try:
        yield
    except MoeDiagError as error:
        error.args = (f"{side}: {error}",)
        raise


Held = Path | Mapping[str, Any] | Diagnosis
"""Where a side is read, or what holds its result."""


@frozen
class Side:
    """What is given of one side, `base` or `new`, or of a further recording, `more-base 1`."""

    name: str
    source: Held
    config: Path | None
    log: Path | None

    @property
    def path(self) -> Path | None:
        """Where it is read; None for what holds a result itself."""
        if isinstance(self.source, Path):
            return self.source
        return None

    def files(self) -> list[Path]:
        """Every file that is given of it. Raises what `traces_named` says."""
        with named(self.name):
            sources = traces_named([self.path]) if self.path else []
        return [*sources, *filter(None, (self.config, self.log))]


def sides_of(request: Comparison) -> tuple[Side, ...]:
    """Base, new, and further recordings of base."""
    sides = [
        Side(
            "base", _source(request.base), path_of(request.base_config), path_of(request.base_log)
        ),
        Side("new", _source(request.new), path_of(request.new_config), path_of(request.new_log)),
    ]
    for number, source in enumerate(request.more_base, 1):
        sides.append(Side(f"more-base {number}", _source(source), None, None))
    return tuple(sides)


def _source(given: Source) -> Held:
    if isinstance(given, str | PathLike):
        return Path(given)
    return given


def check_comparison(request: Comparison) -> tuple[Asked | None, tuple[Prediction, ...]]:
    """The gate, and what is expected. Raises `UsageError`: what is wrong here is of no side."""
    parse_selection(request.steps, request.nvtx)
    reading_of(request)
    return gate_asked(request), predictions(request.expect)


def compare_sides(
    request: Comparison, baseline: str | None = None, progress: Progress = silent
) -> ComparisonResult:
    """Compare two runs; see `diagnoser.compare` for what it raises. `baseline`: how base is
    named.
    """
    gate, expected = check_comparison(request)
    results, sides = read_sides(request, progress), sides_of(request)
    progress("comparing", None)
    files, given, warnings = [], [], list[str]()
    for side, recorded in zip(sides, results, strict=True):
        files.append(side.path or Path(recorded.traces[0].name))
        given += side.files()
        warnings += (f"{side.name}: {warning}" for warning in recorded.warnings)
    base, new, *more = results
    compared = compare(base, new, (request.base_gpu, request.new_gpu), gate, expected, more)
    beside = {"--baseline": baseline, "--more-base": tuple(files[2:])}
    result = structs.replace(
        compared,
        tool=structs.replace(compared.tool, version=VERSION),
        warnings=(*compared.warnings, *warnings),
        redacted=request.redact,
        command=made_again("compare", files[bool(baseline) : 2], request, beside),
    )
    return ComparisonResult(with_whole_names(result, given))


def read_sides(request: Comparison, progress: Progress = silent) -> tuple[Result, ...]:
    """The results of both sides and of further recordings, each with at least one rank. One file
    for both sides is read once.

    Raises what `diagnoser.compare` says; each message begins with the name of its side.
    """
    given_from(request.about or {})  # said of both: what is wrong in it is of no side
    base, new, *more = sides_of(request)
    is_one = base.path and _files(base) == _files(new)
    sides = [base, *more] if is_one else [base, new, *more]
    # an earlier result is read at once, several traces share the processes themselves
    jobs = request.jobs if all(map(_is_trace, sides)) else 1
    with Workers(jobs, progress) as workers:
        results = all_of(workers.map(_read, {side.name: (side, request) for side in sides}))
    if is_one:
        return (results[0], *results)
    return (*_alike(sides[:2], results[:2], request), *results[2:])


def _alike(
    sides: Sequence[Side], results: Sequence[Result], request: Comparison
) -> Iterator[Result]:
    """Base and new, unless steps were chosen. Where one alone has steps, or blocks of both hold
    other work or those of a side little of its work, all that was recorded: what one does not show
    is not compared. Where both have, both leave out as many.
    """
    steps = [result.ranks[0].steps for result in results]
    is_free = request.steps is None and request.nvtx is None
    both_read = all(map(_is_trace, sides))
    is_alone = both_read and {len(result.ranks) for result in results} == {1}
    blocks = is_free and both_read and {found.unit for found in steps} == {"block"}
    subjects = [Subject(each, each.ranks[0]) for each in results]
    unlike = blocks and not (all(map(_holds_most, subjects)) and weigh(*subjects).same)
    for side, result, found, left_out in zip(
        sides, results, steps, left_out_alike(*steps), strict=True
    ):
        if not is_free or not _is_trace(side):
            yield result
        elif unlike or (found.found and not all(each.found for each in steps)):
            yield _read((side, replace(request, steps="none")))
        elif is_alone and left_out != frozenset(found.slow):
            yield _read((side, request), left_out)
        else:
            yield result


def _holds_most(side: Subject) -> bool:
    """Whether most of what kernels do is in its blocks; blocks of a set-up are no unit of it."""
    totals = known(side.rank.totals)
    of_blocks_ns = sum(kernel.work_ns for kernel in side.rank.kernel_table.rows)
    return totals is None or of_blocks_ns > MOST.value * totals.kernel_work_ns


def _is_trace(side: Side) -> bool:
    return side.path is not None and side.path.is_file() and not is_result(side.path)


def _files(side: Side) -> tuple[str | None, ...]:
    return tuple(map(partial(of_known, real_path), (side.path, side.config, side.log)))


def _read(task: tuple[Side, Comparison], left_out_steps: frozenset[int] | None = None) -> Result:
    (side, request), tell = task, listener()

    def shown(doing: str, fraction: float | None = None, rows: int | None = None) -> None:
        tell(f"{side.name}: {doing}", fraction, rows)

    with named(side.name):
        result = _diagnosed(side, request, shown, left_out_steps) or _from_earlier(
            _earlier(side.source), side, request, shown
        )
        if not result.ranks:
            raise NothingToDiagnose(
                f"{side.path or 'this result'} has no trace in it. Give a trace, or what moe-diag "
                "analyze made of one."
            )
        return result


def _earlier(source: Held) -> Result:
    if isinstance(source, Diagnosis):
        return source.result
    if not isinstance(source, Path):
        return of_one_run(kept_as_ours(source))
    try:
        return read_result(source)
    except NotAResult as error:
        raise NotAResult(f"{str(error).rstrip('.')}, or give a trace") from None


def _diagnosed(
    side: Side, request: Comparison, progress: Progress, left_out_steps: frozenset[int] | None
) -> Result | None:
    """What is found in traces; None for what may be an earlier result."""
    path = side.path
    if not path or (path.is_file() and is_result(path)):
        return None
    jobs = 1 if path.is_file() else request.jobs
    own = copied(
        Analysis, request, side, paths=[path], jobs=jobs, ask_megatron=False, progress=progress
    )
    try:
        return diagnose(own, left_out_steps=left_out_steps).result
    except NotATrace:
        if path.is_file() and path.name.endswith((".json", ".json.gz")):
            return None  # a result whose keys were sorted
        raise


def _from_earlier(result: Result, side: Side, request: Comparison, progress: Progress) -> Result:
    """An earlier result, with what is given beside it.

    Raises `UsageError` where a trace would be needed, and for a result that is not redacted as it
    should be.
    """
    if request.redact and not result.redacted:
        raise UsageError(
            "this earlier result was made with --no-redact and holds paths. Give --no-redact to "
            "show them, or make it again without it."
        )
    if request.steps is not None or request.nvtx is not None:
        raise UsageError(
            "steps can be chosen in a trace only, and this is an earlier result. Give its trace, "
            "or leave --steps and --nvtx out."
        )
    if side.config or side.log:
        return _with_files(result, side, request, progress)
    about = request.about or {}
    given = {**result.given}
    for key, value in given_of_run(given_from(about), request.redact).items():
        if key in about:
            given[key] = value
    return structs.replace(result, given=given)


def _with_files(result: Result, side: Side, request: Comparison, progress: Progress) -> Result:
    """The result with the sections that a configuration and a log make, and the room that these
    tell of.

    Its verdict stays as it was. In a result that holds a configuration the log's section alone is
    replaced. Raises `UsageError` for a second configuration, and what `read_configured` raises.
    """
    configured_before = bool(result.configuration)
    if side.config and configured_before:
        raise UsageError(
            "this earlier result already holds a configuration or a log. Leave the configuration "
            "out, or analyze the trace again: moe-diag analyze TRACE --config FILE -f json"
        )
    given = given_from({**_about(result), **(request.about or {})})
    configured = read_configured(side.config, side.log, given, progress)
    step_ns = _step_ns(result)
    # how much longer the profiled step is than the log's; None where either is not known
    slower_frac = of_known(perturbation_frac, step_ns, steady_step(configured.log))
    observed = observed_from(symptoms_of(encode(result)), configured.settings)
    observed = replace(observed, step_ns=step_ns, perturbation_frac=slower_frac)
    judged = result_of_run(
        VERSION, judge_observed(observed, given, configured), redact=request.redact
    )
    sections = ("log",) if configured_before else _FROM_FILES
    kept_gaps = [gap for gap in result.missing if _section(gap.path) not in sections]
    lacking = [gap for gap in judged.missing if _section(gap.path) in sections]
    rooms = {wall.id: wall.room for wall in judged.walls}
    updated = structs.replace(
        result,
        walls=tuple(
            structs.replace(wall, room=rooms.get(wall.id, wall.room)) for wall in result.walls
        ),
        missing=(*kept_gaps, *lacking),
        **{name: getattr(judged, name) for name in sections},
    )
    if slower_frac is None:
        return updated
    traces = []
    for trace in result.traces:
        capture = structs.replace(trace.capture, perturbation_frac=slower_frac)
        traces.append(structs.replace(trace, capture=capture))
    return structs.replace(updated, traces=tuple(traces))


def _section(path: str) -> str:
    return compiled(r"[.[]").split(path)[0]


def _about(result: Result) -> dict[str, object]:
    """What was said of the run when the result was made, where this version knows it."""
    given = {**result.given, "guidance": result.tool.guidance}
    if given["guidance"] not in get_args(Guidance):
        del given["guidance"]
    about = {}
    for key, value in given.items():
        if isinstance(value, list | tuple) and key != "env":
            value = ",".join(map(str, value))
        if key in OPTIONS and isinstance(value, OPTIONS[key].kind):
            about[key] = value
    return about


def _step_ns(result: Result) -> int | None:
    lengths = list[int]()
    for rank in result.ranks:
        if rank.steps.found:
            lengths += rank.lengths_ns
    if lengths:
        return round(median(lengths))
    return None

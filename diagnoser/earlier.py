"""A configuration, a log and words about the run laid into an earlier result, as `analyze` would have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final, get_args

from msgspec import structs

from diagnoser.about import given_from
from diagnoser.configuration import read_configured
from diagnoser.version import VERSION
from heuristics.config.options import OPTIONS
from heuristics.evidence.symptoms import observed_from, symptoms_of
from heuristics.judging.judgement import judge_observed
from heuristics.result.result import Result
from heuristics.run.given import Guidance
from reports.result.codec import encode
from reports.result.fill.result import result_of_run
from reports.result.fill.shown import given as given_of_run
from traces.errors import UsageError
from traces.missing import known
from traces.progress import Progress, silent
from traces.training_log.iterations import perturbation_frac, steady_step

if TYPE_CHECKING:
    from heuristics.judging.judgement import Configured


_FROM_FILES: Final = (
    *("configuration", "config_findings", "defects", "rules", "workflow", "experiments"),
    *("memory_estimate", "throughput", "log", "given"),
)
"""Fields of a result that a configuration and a log make."""


def with_about(result: Result, about: Mapping[str, object], redact: bool = True) -> Result:
    """The result with what is said of the run; `about` and `redact` as `analyze` takes them."""
    said = {key: value for key, value in given_of_run(given_from(about), redact).items() if key in about}
    return structs.replace(result, given={**result.given, **said})


def with_files(
    result: Result,
    config: Path | None,
    log: Path | None,
    about: Mapping[str, object],
    progress: Progress = silent,
    redact: bool = True,
) -> Result:
    """The result with the sections that a configuration and a log make, and the room that these tell of.

    Its verdict stays as it was. In a result that holds a configuration the log's section alone is replaced.
    Raises `UsageError` for a second configuration, and what `read_configured` raises.
    """
    configured_before = known(result.configuration) is not None
    if config is not None and configured_before:
        raise UsageError(
            "this earlier result already holds a configuration or a log. Leave the configuration out, or "
            "analyze the trace again: moe-diag analyze TRACE --config FILE -f json"
        )
    given = given_from({**_about(result), **about})
    configured = read_configured(config, log, given, progress)
    slower_frac = _perturbation_frac(result, configured)
    observed = observed_from(symptoms_of(encode(result)), configured.settings)
    observed = replace(observed, step_ns=_step_ns(result), perturbation_frac=slower_frac)
    made = result_of_run(VERSION, judge_observed(observed, given, configured), redact=redact)
    sections = ("log",) if configured_before else _FROM_FILES
    rooms = {wall.id: wall.room for wall in made.walls}
    laid = structs.replace(
        result,
        walls=tuple(structs.replace(wall, room=rooms.get(wall.id, wall.room)) for wall in result.walls),
        missing=(
            *(gap for gap in result.missing if _section(gap.path) not in sections),
            *(gap for gap in made.missing if _section(gap.path) in sections),
        ),
        **{name: getattr(made, name) for name in sections},
    )
    return laid if slower_frac is None else _perturbed(laid, slower_frac)


def _section(path: str) -> str:
    return path.split(".")[0].split("[")[0]


def _about(result: Result) -> dict[str, object]:
    """What was said of the run when the result was made, where this version knows it."""
    said: dict[str, Any] = {**result.given, "guidance": result.tool.guidance}
    plain = {
        key: ",".join(map(str, one)) if isinstance(one, list | tuple) and key != "env" else one
        for key, one in said.items()
    }
    told = {key: one for key, one in plain.items() if key in OPTIONS and isinstance(one, OPTIONS[key].kind)}
    if told.get("guidance") not in get_args(Guidance):
        told.pop("guidance", None)
    return told


def _step_ns(result: Result) -> int | None:
    lengths = [one for rank in result.ranks if rank.steps.found for one in rank.lengths_ns]
    return round(median(lengths)) if lengths else None


def _perturbation_frac(result: Result, configured: Configured) -> float | None:
    """How much longer the profiled step is than the log's; None where either is not known."""
    steady = steady_step(configured.log) if configured.log else None
    step_ns = _step_ns(result)
    return None if steady is None or step_ns is None else perturbation_frac(step_ns, steady)


def _perturbed(result: Result, slower_frac: float) -> Result:
    traces = tuple(
        structs.replace(one, capture=structs.replace(one.capture, perturbation_frac=slower_frac))
        for one in result.traces
    )
    return structs.replace(result, traces=traces)

"""A configuration, a log and words about the run laid into an earlier result, as `analyze` would have."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final, get_args

import diagnoser
from diagnoser.about import ABOUT, given_from
from diagnoser.configuration import read_configured
from heuristics.judgement import judge_observed
from heuristics.run import Guidance
from heuristics.symptoms import observed_from, read_symptoms
from reports.document import Document
from reports.result.codec import encode
from reports.result.fill.result import result_of_run
from reports.result.fill.shown import given as given_of_run
from traces.errors import UsageError
from traces.progress import Progress, silent
from traces.results.read import result_of
from traces.training_log.steady import perturbation_frac, steady_step

if TYPE_CHECKING:
    from heuristics.judgement import Configured


_FROM_FILES: Final = (
    *("configuration", "config_findings", "rules", "workflow", "experiments"),
    *("memory_estimate", "throughput", "log", "given"),
)
"""Sections that a configuration and a log make."""


def with_about(document: Document, about: Mapping[str, object], redact: bool = True) -> Document:
    """The result with what is said of the run; `about` and `redact` as `analyze` takes them."""
    said = {key: value for key, value in given_of_run(given_from(about), redact).items() if key in about}
    return {**document, "given": {**(document.get("given") or {}), **said}}


def with_files(
    document: Document,
    config: Path | None,
    log: Path | None,
    about: Mapping[str, object],
    progress: Progress = silent,
    redact: bool = True,
) -> Document:
    """The result with the sections that a configuration and a log make; its verdict stays as it was.

    In a result that holds a configuration the log's section alone is replaced. Raises `UsageError` for a
    second configuration, and what `read_configured` raises.
    """
    configured_before = document.get("configuration") is not None
    if config is not None and configured_before:
        raise UsageError(
            "this earlier result already holds a configuration or a log. Leave the configuration out, or "
            "analyze the trace again: moe-diag analyze TRACE --config FILE -f json"
        )
    given = given_from({**_about(document), **about})
    configured = read_configured(config, log, given, progress)
    slower_frac = _perturbation_frac(document, configured)
    observed = observed_from(read_symptoms(json.dumps(document), "the result"), configured.settings)
    observed = replace(observed, step_ns=_step_ns(document), perturbation_frac=slower_frac)
    judgement = judge_observed(observed, given, configured)
    made = encode(result_of_run(diagnoser.__version__, judgement, redact=redact))
    sections = {key: made[key] for key in _FROM_FILES}
    if configured_before:
        sections = {"log": sections["log"]}
    laid = {**document, **sections, "missing": _missing(document, sections, made["missing"])}
    return laid if slower_frac is None else _perturbed(laid, slower_frac)


def _about(document: Document) -> dict[str, object]:
    """What was said of the run when the result was made, where this version knows it."""
    said: dict[str, Any] = {**(document.get("given") or {}), "guidance": document["tool"]["guidance"]}
    plain = {key: ",".join(map(str, one)) if isinstance(one, list) else one for key, one in said.items()}
    known = {key: one for key, one in plain.items() if key in ABOUT and isinstance(one, ABOUT[key][0])}
    if known.get("guidance") not in get_args(Guidance):
        known.pop("guidance", None)
    return known


def _step_ns(document: Document) -> int | None:
    ranks = result_of(document).ranks
    lengths = [one for rank in ranks if rank.steps.has_steps for one in rank.steps.lengths_ns]
    return round(median(lengths)) if lengths else None


def _perturbation_frac(document: Document, configured: Configured) -> float | None:
    """How much longer the profiled step is than the log's; None where either is not known."""
    steady = steady_step(configured.log) if configured.log else None
    step_ns = _step_ns(document)
    return None if steady is None or step_ns is None else perturbation_frac(step_ns, steady)


def _missing(document: Document, sections: Document, made: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    """Entries of what is still missing: the old ones of other sections, the new ones of these."""
    kept = [one for one in document.get("missing") or [] if _section(one["path"]) not in sections]
    return [*kept, *(one for one in made if _section(one["path"]) in sections)]


def _section(path: str) -> str:
    return path.split(".")[0].split("[")[0]


def _perturbed(document: Document, slower_frac: float) -> Document:
    traces = [
        {**one, "capture": {**(one.get("capture") or {}), "perturbation_frac": slower_frac}}
        for one in document.get("traces") or []
    ]
    missing = [one for one in document["missing"] if not one["path"].endswith("].capture.perturbation_frac")]
    return {**document, "traces": traces, "missing": missing}

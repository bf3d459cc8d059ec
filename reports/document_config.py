"""A judged configuration in the document: settings, findings, rules, workflow, memory, throughput, log."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

from heuristics import Judgement
from heuristics.checked import Checked
from heuristics.failures.failure import Failure
from heuristics.plan import Planned
from heuristics.run import Run
from heuristics.workflow.rule import Step
from traces.missing import Missing
from traces.settings.settings import Value
from traces.sizes.memory import Estimate
from traces.sizes.throughput import Throughput
from traces.training_log.peak import peak_memory

_PLAIN: Final = re.compile(r"[\w.,:|*()+= \[\]-]{1,80}")
"""What a text value may be made of to be shown; anything else might be a path or a secret."""
_GIVE: Final = "give the run's configuration: --config FILE"
_GIVE_LOG: Final = "give the training log: --log FILE"
Section = dict[str, Any]


def config_sections(judgement: Judgement) -> Section:
    """Every key about the configuration; None and empty where no file was given."""
    checked = judgement.checked
    if checked is None:
        return {
            "configuration": None,
            "config_findings": [],
            "rules": None,
            "workflow": [],
            "experiments": None,
            "memory_estimate": None,
            "throughput": None,
            "log": None,
        }
    return {
        "configuration": _configuration(judgement.run, checked),
        "config_findings": [
            *(asdict(one) for one in checked.findings),
            *(_failure(one) for one in checked.failures),
        ],
        "rules": _rules(checked),
        "workflow": [_step(one) for one in checked.steps],
        "experiments": asdict(judgement.experiments),
        "memory_estimate": _memory(checked.memory),
        "throughput": _throughput(checked, judgement),
        "log": _log(judgement.run, checked),
    }


def config_gaps(judgement: Judgement) -> Iterator[Missing]:
    """An entry for every None above."""
    checked = judgement.checked
    if checked is None:
        for key in ("configuration", "rules", "experiments", "memory_estimate", "throughput", "log"):
            yield Missing(key, "no configuration was given", _GIVE)
        return
    for key, found in (("memory_estimate", checked.memory), ("throughput", checked.throughput)):
        if isinstance(found, Missing):
            yield Missing(key, found.reason, found.cure)
    if isinstance(found := checked.throughput, Throughput) and found.peak is None:
        yield Missing("throughput", "the GPU's peak in this precision is unknown", "--gpu-model, --precision")
    if judgement.run.log is None:
        yield Missing("log", "no training log was given", _GIVE_LOG)
    elif checked.steady is None or not judgement.run.log.memory:
        yield Missing("log", "the log holds no steady iteration, or no memory report", "a longer log")
    for package, version in _versions(judgement.run).items():
        if version is None:
            yield Missing(f"configuration.versions.{package}", "nobody says it", f"--{package}-version")
    hidden = any(_shown(one.value) is None for one in judgement.run.settings.by_knob.values())
    if hidden or judgement.run.settings.framework is None:
        yield Missing(
            "configuration", "some values are null, or are not shown as they may hold a path", "none"
        )


def checked_section(judgement: Judgement, planned: Planned) -> list[Section]:
    """What each tier says of a fix, merged into the whole configuration."""
    if judgement.checked is None:
        return [{"tier": "rules", "answer": "not_checked", "text": f"no configuration was given; {_GIVE}"}]
    after = f" after {' and '.join(planned.after)}" if planned.after else ""
    said = f"merged into the configuration{after} it breaks no rule of these versions"
    answers = judgement.answers.get(planned.fix.id, ())
    own = [{"tier": "rules", "answer": "ok", "text": said}]
    return [*own, *({"tier": one.tier, "answer": one.answer, "text": one.text} for one in answers)]


def _configuration(run: Run, checked: Checked) -> Section:
    settings = run.settings
    return {
        "framework": settings.framework,
        "legal": checked.legal,
        "versions": _versions(run),
        "settings": [
            {"knob": knob, "value": _shown(one.value), "said": one.said}
            for knob, one in sorted(settings.by_knob.items())
        ],
        "problems": [asdict(one) for one in checked.problems],
        "checked": [{"tier": one.tier, "answer": one.answer, "text": one.text} for one in checked.answers],
    }


def _versions(run: Run) -> dict[str, str | None]:
    given = run.given
    return {
        "core": given.core_version,
        "bridge": given.bridge_version,
        "torch": given.torch_version,
        "te": given.te_version,
    }


def _shown(value: Value) -> Any:
    """A value as it may be shown."""
    if isinstance(value, tuple):
        return [_shown(one) for one in value]
    return value if not isinstance(value, str) or _PLAIN.fullmatch(value) else None


def _failure(one: Failure) -> Section:
    where = f"line {one.line} of the log" if one.line else "the configuration"
    return {
        "id": one.id,
        "state": one.state,
        "text": one.text,
        "evidence": f"{where}; to confirm: {one.confirm} ({one.source})",
        "fix": f"{one.fix_id}: {one.fix}",
    }


def _rules(checked: Checked) -> Section:
    return {
        "broken": [
            {
                "id": one.rule.id,
                "level": one.level,
                "text": one.text,
                "cure": one.rule.cure,
                "fix": one.rule.fix,
                "source": one.rule.source,
            }
            for one in checked.broken
        ],
        "undecided": [
            {"id": one.rule.id, "text": one.rule.text, "asks": list(one.asks)} for one in checked.undecided
        ],
    }


def _step(step: Step) -> Section:
    rule, judged = step.rule, step.judged
    about = {"id": rule.id, "phase": rule.phase, "title": rule.title, "seed": rule.seed}
    return {**about, **asdict(judged)}


def _memory(found: Estimate | Missing) -> Section | None:
    if isinstance(found, Missing):
        return None
    return {**asdict(found), "total_bytes": found.total_bytes}


def _throughput(checked: Checked, judgement: Judgement) -> Section | None:
    found, steady = checked.throughput, checked.steady
    if isinstance(found, Missing):
        return None
    logged = steady is not None
    return {
        "step_ns": steady.median_ns if steady else judgement.step_ns,
        "tokens_per_s_per_gpu": found.tokens_per_s_per_gpu,
        "model_tflops_per_gpu": found.model_tflops_per_gpu,
        "mfu_frac": found.mfu_frac,
        "peak": asdict(found.peak) if found.peak else None,
        "source": "configuration and the log's steady step" if logged else "configuration and profiled step",
        "references": [asdict(one) for one in checked.references],
    }


def _log(run: Run, checked: Checked) -> Section | None:
    log, steady = run.log, checked.steady
    if log is None:
        return None
    peak = peak_memory(log)
    left_out: Mapping[str, int] = {}
    if steady:
        reasons = [one.reason for one in steady.left_out]
        left_out = {reason: reasons.count(reason) for reason in sorted(set(reasons))}
    return {
        "name": log.name,
        "line_count": log.line_count,
        "iteration_count": len(log.iterations),
        "steady_count": steady.count if steady else 0,
        "left_out": dict(left_out),
        "steady_step_ns": steady.median_ns if steady else None,
        "spread_ns": steady.spread_ns if steady else None,
        "peak_allocated_bytes": peak.allocated_bytes if peak else None,
        "peak_reserved_bytes": peak.reserved_bytes if peak else None,
        "skipped_lines": list(log.skipped),
        "versions": dict(log.versions),
    }

"""A judged configuration in the document: settings, findings, rules, workflow, memory, throughput, log."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from heuristics import Judgement
from heuristics.planned import Planned
from heuristics.run import Given, Run
from traces.limits import Limit
from traces.missing import Missing
from traces.settings.knobs import knobs
from traces.settings.settings import Setting, Value
from traces.settings.stages import stage_count
from traces.training_log.peak import peak_memory

if TYPE_CHECKING:  # loaded with a configuration only
    from _typeshed import DataclassInstance

    from heuristics.checked import Checked
    from heuristics.failures.failure import Failure
    from heuristics.workflow.rule import Step
    from traces.sizes.memory import Estimate

_KNOWN_WORDS: Final = frozenset(
    {
        *("0", "1", "true", "false", "expandable_segments:True", "INFO", "WARN", "VERSION"),
        *("adam", "sgd", "muon", "dist_muon", "silu", "gelu", "swiglu", "squared_relu", "relu"),
    }
)
"""Texts of knobs that take any word, as the frameworks' own recipes have them: nobody's name or path."""
_LAYOUT: Final = "pipeline_model_parallel_layout"
_GIVE: Final = "give the run's configuration: --config FILE"
_GIVE_LOG: Final = "give the training log: --log FILE"
_PLAIN: Final = re.compile(r"[0-9]+(\.[0-9a-z]+)*|[a-z0-9_]{1,24}|[A-Z]{1,4}[0-9]{2,4}[A-Z]{0,2}")
"""A version, a word of the frameworks, a GPU: nothing that could be a path or somebody's name."""
STEADY_SHOWN: Final = Limit(
    2000, "iterations", "ours: the last ones, as two runs are compared by hundreds, and a file one can open"
)

Section = dict[str, Any]


def config_sections(judgement: Judgement, redact: bool = True) -> Section:
    """Every key about the configuration; None and empty where no file was given.

    `redact`: texts that may be a path or a name are withheld.
    """
    told = judgement.told
    if told is None:
        return {
            "configuration": None,
            "config_findings": [],
            "rules": None,
            "workflow": [],
            "experiments": None,
            "memory_estimate": None,
            "throughput": None,
            "log": None,
            "given": given_section(judgement.run.given, redact),
        }
    checked = told.checked
    return {
        "configuration": _configuration(judgement.run, checked, redact),
        "config_findings": [
            *(_plain(one) for one in checked.findings),
            *(_failure(one) for one in checked.failures),
        ],
        "rules": _rules(checked),
        "workflow": [_step(one) for one in checked.steps],
        "experiments": _plain(told.experiments),
        "memory_estimate": _memory(checked.memory),
        "throughput": _throughput(checked, judgement),
        "log": _log(judgement.run, checked),
        "given": given_section(judgement.run.given, redact),
    }


def given_section(given: Given, redact: bool = True) -> Section:
    """What is known of the run by option, file or log, by field of `Given`.

    `redact`: texts only as we know them.
    """
    values = {key: value for key, value in asdict(given).items() if value is not None and key != "guidance"}
    shown = {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}
    return {key: value for key, value in shown.items() if not redact or _is_plain(key, value)}


def _is_plain(field: str, value: Any) -> bool:
    if field == "pp_layout":
        return stage_count(value) is not None
    texts = value if isinstance(value, list) else [value]
    return all(not isinstance(text, str) or _PLAIN.fullmatch(text) for text in texts)


def config_gaps(judgement: Judgement, redact: bool = True) -> Iterator[Missing]:
    """An entry for every None above."""
    if judgement.told is None:
        for key in ("configuration", "rules", "experiments", "memory_estimate", "throughput", "log"):
            yield Missing(key, "no configuration was given", _GIVE)
        return
    checked = judgement.told.checked
    for key, found in (("memory_estimate", checked.memory), ("throughput", checked.throughput)):
        if isinstance(found, Missing):
            yield Missing(key, found.reason, found.cure)
    yield from _throughput_gaps(checked)
    if not isinstance(checked.memory, Missing) and checked.memory.rest_bytes is None:
        yield Missing("memory_estimate.rest_bytes", "no log tells the peak of memory", _GIVE_LOG)
    yield from _log_gaps(_log(judgement.run, checked))
    for package, version in _versions(judgement.run).items():
        if version is None:
            yield Missing(f"configuration.versions.{package}", "nobody says it", f"--{package}-version")
    if judgement.run.settings.framework is None:
        yield Missing("configuration.framework", "no file says whose spelling it is", _GIVE)
    by_knob = judgement.run.settings.by_knob
    shown = [_shown(knob, one.value, redact) for knob, one in by_knob.items()]
    if any(one is None or (isinstance(one, list) and None in one) for one in shown):
        why = "it is null, or a text that is not shown, as it may be a path or a name"
        yield Missing("configuration.settings", why, "none is needed: look into the file")


def _log_gaps(log: Section | None) -> Iterator[Missing]:
    if log is None:
        yield Missing("log", "no training log was given", _GIVE_LOG)
        return
    for key, value in log.items():
        if value is None:
            memory = key.endswith("_bytes")
            why = "no report of memory in it says that" if memory else "it holds no steady iterations"
            cure = "give the log from its start, where trainers report it" if memory else "give a longer log"
            yield Missing(f"log.{key}", why, cure)


def _throughput_gaps(checked: Checked) -> Iterator[Missing]:
    found = checked.throughput
    if isinstance(found, Missing):
        return
    if found.peak is None:
        for key in ("mfu_frac", "peak"):
            why = "the GPU, or its peak in this precision, is unknown"
            yield Missing(f"throughput.{key}", why, "--gpu-model, --precision")
    if any(value is None for one in checked.references for value in asdict(one).values()):
        yield Missing("throughput.references", "the published row does not say it", "none is needed")


def checked_section(judgement: Judgement, planned: Planned) -> list[Section]:
    """What each tier says of a fix, merged into the whole configuration."""
    told = judgement.told
    if told is None:
        return [{"tier": "rules", "answer": "not_checked", "text": f"no configuration was given; {_GIVE}"}]
    after = f" after {' and '.join(planned.after)}" if planned.after else ""
    said = f"merged into the configuration{after} it breaks no rule of these versions"
    answers = told.answers.get(planned.fix.id, ())
    own = [{"tier": "rules", "answer": "ok", "text": said}]
    return [*own, *({"tier": one.tier, "answer": one.answer, "text": one.text} for one in answers)]


def _configuration(run: Run, checked: Checked, redact: bool) -> Section:
    settings = run.settings
    return {
        "framework": settings.framework,
        "legal": checked.legal,
        "versions": _versions(run),
        "settings": [_setting(knob, one, redact) for knob, one in sorted(settings.by_knob.items())],
        "problems": [_plain(one) for one in checked.problems],
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


def _plain(found: DataclassInstance) -> Section:
    """The fields of a dataclass as plain values: lists in place of tuples."""
    return {key: _listed(value) for key, value in asdict(found).items()}


def _listed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _listed(one) for key, one in value.items()}
    return [_listed(one) for one in value] if isinstance(value, tuple | list) else value


def _setting(knob: str, setting: Setting, redact: bool) -> Section:
    """`withheld`: the value is a text that is not shown, as it may be a path or a name."""
    shown = _shown(knob, setting.value, redact)
    return {"knob": knob, "value": shown, "said": setting.said, "withheld": _withheld(shown, setting.value)}


def _withheld(shown: Any, value: Value) -> bool:
    hidden = isinstance(shown, list) and None in shown
    return hidden or (shown is None and value is not None)


def _shown(knob: str, value: Value, redact: bool) -> Any:
    """A value as it may be shown: redacted, None for a text that is none of the frameworks' own."""
    if isinstance(value, tuple):
        return [_shown(knob, one, redact) for one in value]
    if not isinstance(value, str) or not redact:
        return value
    row = knobs().get(knob)
    known = row is not None and value in row.choices
    is_layout = knob == _LAYOUT and stage_count(value) is not None
    return value if known or is_layout or value in _KNOWN_WORDS or value.isdecimal() else None


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
    return {**about, **_plain(judged)}


def _memory(found: Estimate | Missing) -> Section | None:
    if isinstance(found, Missing):
        return None
    return {**_plain(found), "total_bytes": found.total_bytes}


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
        "peak": _plain(found.peak) if found.peak else None,
        "source": "configuration and the log's steady step" if logged else "configuration and profiled step",
        "references": [_plain(one) for one in checked.references],
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
        "iterations_ns": [
            one.length_ns for one in (steady.with_far_above if steady else ())[-int(STEADY_SHOWN.value) :]
        ],
        "spread_ns": steady.spread_ns if steady else None,
        "peak_allocated_bytes": peak.allocated_bytes if peak else None,
        "peak_reserved_bytes": peak.reserved_bytes if peak else None,
        "skipped_lines": list(log.skipped),
        "versions": dict(log.versions),
    }

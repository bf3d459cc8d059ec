"""Sentences about a judged configuration, unwrapped, for every format that people read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from reports.document import Document
from reports.words import milliseconds, percent, printable

_GB: Final = 1e9
_ANSWERS: Final = {
    "ok": "ok",
    "rejected": "rejected",
    "needs": "not verifiable here",
    "no_such_knob": "no such knob",
    "not_checked": "not checked",
}
_TIERS: Final = {
    "rules": "our rules",
    "config": "megatron-core's configuration",
    "layer": "its groups and layer",
}
_REFERENCES: Final = 3


def legal_sentence(document: Document) -> str:
    """Whether anything refuses the configuration, and for which versions that was asked."""
    told = document["configuration"]
    versions = ", ".join(f"{name} {one}" for name, one in told["versions"].items() if one)
    of = f"for {versions}" if versions else "for the newest releases, as no version is known"
    errors = [one for one in document["rules"]["broken"] if one["level"] == "error"]
    if told["legal"]:
        return f"legal {of}: no rule that could be told is broken."
    count = len(errors)
    rejected = any(one["answer"] == "rejected" for one in told["checked"])
    own = f"{count} rule{'s are' if count != 1 else ' is'} broken" if count else ""
    core = "megatron-core itself rejects it" if rejected else ""
    return f"illegal {of}: {' and '.join(part for part in (own, core) if part)}."


def answer_sentences(answers: list[dict[str, str]]) -> Iterator[str]:
    """What each tier says; the text where it is more than yes."""
    for one in answers:
        tier, answer = _TIERS[one["tier"]], _ANSWERS[one["answer"]]
        yield (
            f"{tier}: {answer}"
            if one["answer"] == "ok" and one["tier"] == "rules"
            else (f"{tier}: {answer} ({one['text']})")
        )


def checked_sentence(fix: dict[str, Any]) -> str:
    """What the tiers say of a fix, on one line; empty where no configuration was given."""
    said = [one for one in fix.get("checked", ()) if one["answer"] != "not_checked" or one["tier"] != "rules"]
    if not said:
        return ""
    texts = [
        f"{_TIERS[one['tier']]} {_ANSWERS[one['answer']]}"
        + ("" if one["answer"] == "ok" else f" ({one['text']})")
        for one in said
    ]
    if len(said) > 1 and all(one["answer"] == "not_checked" for one in said[1:]):
        texts = [texts[0], f"megatron-core not asked ({said[1]['text']})"]
    return f"checked: {'; '.join(texts)}"


def broken_sentences(document: Document, everything: bool) -> Iterator[str]:
    """Rules that are broken: errors and what is ignored or warned of, each with its cure."""
    for one in document["rules"]["broken"]:
        level = {"error": "", "warning": "warning: ", "ignored": "has no effect: "}[one["level"]]
        fix = f" ({one['fix']})" if one["fix"] else ""
        source = f" [{one['source']}]" if everything else ""
        cure = f" Instead: {one['cure'].rstrip('.')}{fix}." if one["cure"] else ""
        yield f"{level}{one['text'].rstrip('.')}.{cure}{source}"


def finding_sentences(document: Document) -> Iterator[str]:
    """Contradictions and failures, each with how it is known and what to do."""
    for one in document["config_findings"]:
        said = f"{one['id']} ({one['state'].replace('_', ' ')}): {one['text'].rstrip('.')}."
        fix = f" To mend: {one['fix'].rstrip('.')}." if one["fix"] else ""
        yield f"{said} Seen: {one['evidence'].rstrip('.')}.{fix}"


def problem_sentences(document: Document) -> Iterator[str]:
    """What in the file was not taken as it stands."""
    for one in document["configuration"]["problems"]:
        instead = f" Write {one['instead']}." if one["instead"] else ""
        yield f"{printable(one['where'], 60)}: {one['text'].rstrip('.')}.{instead}"


def number_sentences(document: Document) -> Iterator[str]:
    """Throughput, memory and the steady step in numbers."""
    yield from _log_sentences(document)
    if (found := document["throughput"]) is not None:
        yield _throughput_sentence(found)
        yield from map(_reference_sentence, found["references"][:_REFERENCES])
    if (found := document["memory_estimate"]) is not None:
        yield _memory_sentence(found)


def _throughput_sentence(found: dict[str, Any]) -> str:
    rate = f"{found['model_tflops_per_gpu']:,.1f} model TFLOP/s"
    said = f"{found['tokens_per_s_per_gpu']:,.0f} tokens/s and {rate} a GPU"
    said += f" at {milliseconds(found['step_ns'])} ms a step"
    if (peak := found["peak"]) is not None and found["mfu_frac"] is not None:
        of = f"{peak['tflops']:,.0f} TFLOP/s ({peak['precision']})"
        said += f"; MFU {percent(found['mfu_frac'])} of {of}"
    return f"Throughput: {said} ({found['source']})."


def _reference_sentence(one: dict[str, Any]) -> str:
    layout = f", TP/PP/VP/EP {one['layout']}" if one["layout"] else ""
    rates = f"{one['tokens_per_s_per_gpu']:,.0f} tokens/s, {one['tflops_per_gpu']:,.0f} TFLOP/s a GPU"
    run = f"{one['model']}, {one['gpus']} {one['gpu']}, {one['precision']}{layout}"
    return f"Published for its shape, no target for another: {run}: {rates} ({one['source']})."


def _log_sentences(document: Document) -> Iterator[str]:
    log = document["log"]
    if log is None or log["steady_step_ns"] is None:
        return
    said = f"{milliseconds(log['steady_step_ns'])} ms over {log['steady_count']} steady iterations"
    peak = log["peak_allocated_bytes"]
    room = f"; peak allocated {peak / _GB:.1f} GB" if peak else ""
    yield f"Log: {said}{room}."
    for trace in document["traces"]:
        if (slower := trace["capture"]["perturbation_frac"]) is not None:
            yield f"The profiled step is {percent(slower)} longer than that."


def _memory_sentence(found: dict[str, Any]) -> str:
    parts = ("parameters", "gradients", "optimizer", "activations", "logits")
    said = ", ".join(f"{part} {found[f'{part}_bytes'] / _GB:.1f}" for part in parts)
    rest = found["rest_bytes"]
    more = f", rest {rest / _GB:.1f} ({found['calibrated_by']})" if rest is not None else ""
    return (
        f"Memory of the fullest rank (pipeline stage {found['stage']}), estimated: "
        f"{found['total_bytes'] / _GB:.1f} GB: {said}{more}."
    )


def step_sentences(document: Document, everything: bool) -> Iterator[tuple[str, str]]:
    """Rules of the workflow, each with its phase: those that are violated, all of them with `everything`."""
    for one in document["workflow"]:
        if one["state"] != "violated" and not everything:
            continue
        said = f"{one['state'].replace('_', ' ')}: {one['title'].rstrip('.')}: {one['because'].rstrip('.')}."
        if one["advice"]:
            fix = f" ({one['fix']})" if one["fix"] else ""
            said += f" {one['advice'].rstrip('.')}{fix}."
        if one["tells"]:
            said += f" To tell: {one['tells'].rstrip('.')}."
        yield one["phase"], said


def untold_sentences(document: Document) -> Iterator[str]:
    """What would tell of the rules that are unknown, with how many each settles; most first."""
    wanted: dict[str, int] = {}
    for one in document["workflow"]:
        if one["state"] == "unknown":
            wanted[one["tells"]] = wanted.get(one["tells"], 0) + 1
    for tells, count in sorted(wanted.items(), key=lambda part: -part[1]):
        yield f"{count} rule{'s' if count > 1 else ''} more with {tells.rstrip('.')}"


def experiment_sentences(document: Document) -> Iterator[str]:
    """The plan as experiments, one variable each."""
    for when in ("first", "then", "later"):
        for one in document["experiments"][when]:
            fix = f"{one['fix']} " if one["fix"] else ""
            yield f"{when}: {fix}{one['title'].rstrip('.')}; over {one['step_count']} unprofiled steps."

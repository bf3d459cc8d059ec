"""Sentences about a judged configuration, unwrapped, for every format that people read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from reports.document import Document
from reports.words import printable

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
TO_MEND: Final = frozenset(
    {
        *("rejected", "overwritten", "inert", "requested_not_active", "active_not_requested"),
        *("misspelled", "illegal"),
    }
)
"""States of findings that are mended before anything is tuned: what was asked for is not what runs."""
_OF_THE_RUN: Final = frozenset({"trace", "default"})
"""Where settings were said that nobody wrote down."""
_MORE: Final = {
    "the configuration": "more of the configuration",
    "the log of that run": "the log of a trial on one GPU",
}
"""What would tell of a rule, where it stands alone."""
Answers = Sequence[Mapping[str, str]]


def legal_sentence(document: Document) -> str:
    """Whether anything refuses the configuration, and for which versions that was asked."""
    told = document["configuration"]
    versions = ", ".join(f"{name} {one}" for name, one in told["versions"].items() if one)
    of = f"for {versions}" if versions else "for the newest releases, as no version is known"
    count, rejected = len(_errors(document)), any(one["answer"] == "rejected" for one in told["checked"])
    if not told["legal"]:
        own = f"{count} rule{'s are' if count != 1 else ' is'} broken" if count else ""
        core = "megatron-core itself rejects it" if rejected else ""
        return f"illegal {of}: {' and '.join(part for part in (own, core) if part)}."
    if not is_written(document):
        return "not given: only what the trace shows of it is known. Give --config FILE."
    said = f"legal {of}: no rule that could be told is broken."
    if problems := len(told["problems"]):
        said += f" {problems} thing{'s' if problems > 1 else ''} in it could not be taken as written."
    return said


def _errors(document: Document) -> list[dict[str, Any]]:
    return [one for one in document["rules"]["broken"] if one["level"] == "error"]


def is_written(document: Document) -> bool:
    """Whether a file says anything of the configuration."""
    told = document["configuration"]
    said = {one["said"] for one in told["settings"]} - _OF_THE_RUN
    return bool(told["problems"]) or any(not one.startswith("--") for one in said)


def answer_sentences(answers: Answers) -> Iterator[str]:
    """What each tier says; the text where it is more than yes. Not asked for one reason: said once."""
    left = [one for one in answers if one["tier"] == "rules"]
    asked = [one for one in answers if one["tier"] != "rules"]
    for one in left:
        text = "" if one["answer"] == "ok" else f" ({one['text']})"
        yield f"{_TIERS['rules']}: {_answer(one)}{text}"
    if asked and all(one["answer"] == "not_checked" for one in asked):
        yield f"megatron-core was not asked ({asked[0]['text']})"
        return
    for one in asked:
        tier = _TIERS.get(one["tier"], one["tier"])
        yield f"{tier}: {_answer(one)} ({one['text'].rstrip('.')})"


def _answer(one: Mapping[str, str]) -> str:
    return _ANSWERS.get(one["answer"], one["answer"])  # later versions may have others


def checked_sentence(fix: dict[str, Any]) -> str:
    """What the tiers say of a fix, on one line; empty where no configuration was given."""
    answers = fix.get("checked", ())
    if all(one["tier"] == "rules" and one["answer"] == "not_checked" for one in answers):
        return ""
    return f"checked: {'; '.join(answer_sentences(answers))}"


def broken_sentences(document: Document, everything: bool, level: str = "") -> Iterator[str]:
    """Rules that are broken: errors and what is ignored or warned of, each with its cure.

    `level`: only those of it. What a finding mends in the same words is left to the finding.
    """
    mended = [one["fix"] for one in document["config_findings"]]
    for one in document["rules"]["broken"]:
        soft = one["level"] != "error"
        if (level and one["level"] != level) or (soft and _is_said(one["cure"], mended)):
            continue
        start = {"warning": "warning: ", "ignored": "has no effect: "}.get(one["level"], "")
        source = f" [{one['source']}]" if everything else ""
        yield f"{start}{one['text'].rstrip('.')}.{_instead(one['cure'], one['fix'])}{source}"


def _is_said(cure: str, mended: Sequence[str]) -> bool:
    return bool(cure) and any(cure.rstrip(".") in other for other in mended)


def _instead(cure: str, fix: str, word: str = "Instead") -> str:
    number = f" ({fix})" if fix else ""
    return f" {word}: {cure.rstrip('.')}{number}." if cure else ""


def finding_sentences(document: Document) -> Iterator[str]:
    """Contradictions and failures, each with how it is known and what to do."""
    for one in document["config_findings"]:
        said = f"{one['id']} ({one['state'].replace('_', ' ')}): {one['text'].rstrip('.')}."
        fix = f" To mend: {one['fix'].rstrip('.')}." if one["fix"] else ""
        yield f"{said} Seen: {one['evidence'].rstrip('.')}.{fix}"


def problem_sentences(document: Document) -> Iterator[str]:
    """What in the file was not taken as it stands, less what is a finding."""
    found = {one["text"] for one in document["config_findings"]}
    for one in document["configuration"]["problems"]:
        if one["text"] not in found:
            instead = f" Write {one['instead']}." if one["instead"] else ""
            yield f"{printable(one['where'], 60)}: {one['text'].rstrip('.')}.{instead}"


def mend_sentences(document: Document, everything: bool) -> list[str]:
    """All that is wrong or contradicts: what makes it illegal first, then findings, then what is ignored."""
    return [
        *broken_sentences(document, everything, "error"),
        *finding_sentences(document),
        *broken_sentences(document, everything, "warning"),
        *broken_sentences(document, everything, "ignored"),
        *problem_sentences(document),
    ]


def first_mends(document: Document) -> Iterator[str]:
    """What has to be mended before anything is tried, each on one line; nothing without a configuration."""
    if document.get("configuration") is None:  # results of earlier versions have none
        return
    yield from broken_sentences(document, everything=False, level="error")
    for one in document["configuration"]["checked"]:
        if one["answer"] == "rejected":
            yield f"megatron-core rejects it: {one['text'].rstrip('.')}."
    for one in document["config_findings"]:
        if one["state"] in TO_MEND:
            fix = f" To mend: {one['fix'].rstrip('.')}." if one["fix"] else ""
            yield f"{one['id']}: {one['text'].rstrip('.')}.{fix}"


def mend_first_sentence(document: Document) -> str:
    """That something of the configuration is to be mended before the plan; empty where nothing is."""
    if document.get("configuration") is None:
        return ""
    if not document["configuration"]["legal"]:
        return "Mend first what makes the configuration illegal: it does not run as it is."
    named = [one["id"] for one in document["config_findings"] if one["state"] in TO_MEND]
    if not named:
        return ""
    return f"Mend first what does not run as written: {', '.join(named)}."


def no_plan_sentence(document: Document) -> str:
    """Why no change is planned, and what would give one."""
    if not document.get("judged", True):
        return "nothing was measured. Give --symptoms S.json, or analyze a trace with --config FILE."
    return f"{'; '.join(dict.fromkeys(document['verdict']['because']))}."


def step_sentences(document: Document, violated: bool) -> Iterator[tuple[str, str]]:
    """Rules of the workflow that are violated, or all others with their state; each with its phase."""
    for one in document["workflow"]:
        if (one["state"] == "violated") != violated:
            continue
        start = "" if violated else f"{one['state'].replace('_', ' ')}: "
        about, _, _ = one["title"].partition(":")
        because = one["because"].removeprefix(f"{about}: ")
        said = f"{start}{one['title'].rstrip('.')}: {because.rstrip('.')}."
        tells = f" To tell: {one['tells'].rstrip('.')}." if one["tells"] else ""
        word = "Instead" if one["state"] == "violated" else "Try"
        yield one["phase"], f"{said}{_instead(one['advice'], one['fix'], word)}{tells}"


def untold_sentence(document: Document, shown: int) -> str:
    """How many rules are unknown, and what would tell most of them; empty where none is."""
    wanted: dict[str, int] = {}
    for one in document["workflow"]:
        if one["state"] == "unknown":
            wanted[one["tells"]] = wanted.get(one["tells"], 0) + 1
    if not wanted:
        return ""
    ranked = sorted(wanted.items(), key=lambda part: -part[1])
    told = "; ".join(f"{_MORE.get(tells, tells.rstrip('.'))} ({count})" for tells, count in ranked[:shown])
    more = f"; and {len(ranked) - shown} more" if len(ranked) > shown else ""
    return f"{sum(wanted.values())} could not be told. What would tell, and of how many: {told}{more}."


def experiment_sentences(document: Document) -> Iterator[str]:
    """The plan as experiments: one variable each, and what is held fixed; nothing where there is no plan."""
    plan = document["experiments"]
    if plan is None or not (plan["then"] or plan["later"] or len(plan["first"]) > 1):
        return
    steps = [one for when in ("first", "then", "later") for one in plan[when]]
    named = "; ".join(one["fix"] or one["title"].removeprefix("baseline: ").rstrip(".") for one in steps)
    yield f"As experiments, one variable each, over {steps[0]['step_count']} unprofiled steps: {named}."
    if held := steps[0]["holds"]:
        yield f"Held fixed: {', '.join(held)}."

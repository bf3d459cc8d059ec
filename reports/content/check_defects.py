"""What is wrong with a configuration, one entry a defect: what it is, its cure, where it was seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from heuristics.result.configured import BrokenRule, ConfigFinding, Configuration
from heuristics.result.judged import Checked
from heuristics.result.result import Result
from heuristics.result.told import known
from reports.content.blocks import Code, Detail, Words, words
from reports.content.quantities import counted
from reports.content.wording import ended, joined
from traces.settings.derive import DEFAULT


class Weight(IntEnum):
    """How much a defect matters, heaviest first."""

    REJECTED = 0
    """The framework refuses the configuration."""
    NOT_AS_WRITTEN = 1
    """What was asked for is not what runs."""
    FOUND = 2
    """Other contradictions, and failures of the log."""
    WARNED = 3
    NO_EFFECT = 4
    UNREAD = 5
    """Part of a file that could not be taken."""


@dataclass(frozen=True, slots=True)
class Defect:
    """One entry. `id`: what `explain` takes; empty where nothing more is known of it.

    `seen`: how it is known, with each part; `places`: only where to look, as a first screen has it.
    """

    id: str
    weight: Weight
    what: str
    cure: str
    seen: Words
    places: Words


NOT_AS_WRITTEN: Final = frozenset(
    {
        *("rejected", "overwritten", "inert", "requested_not_active", "active_not_requested"),
        *("misspelled", "illegal", "logged_otherwise"),
    }
)
"""States of findings that are corrected before anything is tuned: what was asked for is not what runs."""
_OF_THE_RUN: Final = frozenset({"trace", DEFAULT})
"""Where settings come from that nobody wrote down."""
_LEVELS: Final = {"error": Weight.REJECTED, "warning": Weight.WARNED, "ignored": Weight.NO_EFFECT}
_TIERS: Final = {
    "rules": "Rules of moe-diag",
    "config": "Megatron-Core's configuration",
    "layer": "Megatron-Core's groups and layer",
}
_ANSWERS: Final = {
    "ok": "accepted",
    "rejected": "rejected",
    "needs": "could not be checked here",
    "no_such_knob": "no such setting",
    "not_checked": "not checked",
}


def defects(result: Result) -> tuple[Defect, ...]:
    """Every defect once, heaviest first; none where no configuration was given."""
    configuration, rules = known(result.configuration), known(result.rules)
    if configuration is None:
        return ()
    found = [
        *(_rule(one) for one in (rules.broken if rules else ()) if not one.same_as),
        *(_answer(one) for one in configuration.checked if one.answer == "rejected"),
        *(_finding(one) for one in result.config_findings if not one.same_as),
        *_unread(configuration),
    ]
    return tuple(sorted(found, key=lambda one: one.weight))


def _rule(one: BrokenRule) -> Defect:
    seen = joined([words(Code(part.knob), " (", Code(part.said), ")") for part in one.seen])
    places = joined([(Code(place),) for place in dict.fromkeys(part.said for part in one.seen)])
    cure = f"{one.cure.rstrip('.')} ({one.fix})" if one.fix else one.cure
    return Defect(one.id, _LEVELS[one.level], one.text, cure, seen, places)


def _answer(one: Checked) -> Defect:
    return Defect("", Weight.REJECTED, f"Megatron-Core rejects it: {one.text}", "", (), ())


def _finding(one: ConfigFinding) -> Defect:
    weight = Weight.NOT_AS_WRITTEN if one.state in NOT_AS_WRITTEN else Weight.FOUND
    seen = words(one.evidence.rstrip("."))
    return Defect(one.id, weight, one.text, one.fix, seen, seen)


def _unread(configuration: Configuration) -> Iterator[Defect]:
    """Problems of the file; one with a right spelling is a finding already."""
    for one in configuration.problems:
        if not one.instead:
            place = words(Code(one.where))
            yield Defect("", Weight.UNREAD, one.text, "", place, place)


def defect_words(one: Defect, detail: Detail) -> Words:
    """One entry: its id, what is wrong, what cures it, and where it was seen."""
    start: Words = (Code(one.id), ": ") if one.id else ()
    mark = {Weight.WARNED: "warning: ", Weight.NO_EFFECT: "no effect: "}.get(one.weight, "")
    cure = f" Cure: {ended(one.cure)}" if one.cure else ""
    where = one.seen if detail is Detail.FULL else one.places
    return words(start, f"{mark}{ended(one.what)}{cure}", words(" Seen: ", where, ".") if where else ())


def first_errors(result: Result) -> tuple[Words, ...]:
    """What must be corrected before anything is tried; none without a configuration."""
    heavy = [one for one in defects(result) if one.weight <= Weight.NOT_AS_WRITTEN]
    return tuple(defect_words(one, Detail.FIRST) for one in heavy)


def fix_first(result: Result) -> str:
    """That the configuration comes before the plan, as one sentence; empty where nothing is wrong with it."""
    configuration = known(result.configuration)
    if configuration is None:
        return ""
    if not configuration.legal:
        return "Fix the configuration errors first; Megatron rejects this configuration."
    named = [one.id for one in defects(result) if one.weight == Weight.NOT_AS_WRITTEN]
    return f"Fix first what does not run as written: {', '.join(named)}." if named else ""


def legal_words(result: Result, configuration: Configuration) -> str:
    """Whether anything refuses the configuration, and for which versions that was asked."""
    told = configuration.versions
    packages = (
        ("Megatron-Core", told.core),
        ("Megatron-Bridge", told.bridge),
        ("PyTorch", told.torch),
        ("Transformer Engine", told.te),
    )
    versions = [f"{name} {version}" for name, one in packages if (version := known(one))]
    of = ", ".join(versions) or "the newest releases (version unknown: --core-version)"
    if not configuration.legal:
        count = sum(one.weight == Weight.REJECTED for one in defects(result))
        return f"{counted(count, 'error')} for {of}: Megatron rejects this configuration."
    if not is_written(configuration):
        return "No configuration was given; only what the trace shows of it is known. Give --config FILE."
    return f"No rule that could be checked is broken, for {of}."


def is_written(configuration: Configuration) -> bool:
    """Whether a file says anything of the configuration."""
    said = {one.said for one in configuration.settings} - _OF_THE_RUN
    return bool(configuration.problems) or any(not one.startswith("--") for one in said)


def answer_words(answers: Sequence[Checked]) -> tuple[str, ...]:
    """What each tier says of a configuration or a change, one sentence each; one reason is said once."""
    asked = [one for one in answers if one.tier != "rules"]
    if asked and all(one.answer == "not_checked" for one in asked):
        silent = (f"Megatron-Core was not asked: {asked[0].text.rstrip('.')}.",)
        return (*map(_said, (one for one in answers if one.tier == "rules")), *silent)
    return tuple(map(_said, answers))


def _said(one: Checked) -> str:
    text = f": {one.text.rstrip('.')}" if one.text else ""
    return f"{_TIERS[one.tier]}: {_ANSWERS[one.answer]}{text}."

"""What is wrong with a configuration, one entry a defect: what it is, its cure, where it was seen."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from heuristics.result import configured
from heuristics.result.configured import Configuration
from heuristics.result.judged import Checked
from heuristics.result.result import Result
from reports.content.blocks import Code, Detail, Words, words
from reports.content.judged_settings import judged, placed, values_of
from reports.content.names import capital, ended, joined
from traces.missing import known
from traces.settings.derive import DEFAULT
from traces.settings.knobs import FIRST, is_before_tables
from traces.settings.settings import PROGRAMS
from traces.spelling import counted


class Weight(IntEnum):
    """How much a defect matters, heaviest first."""

    REJECTED = 0
    """The framework refuses the configuration."""
    FAILS = 1
    """Nobody refuses it before it runs, and then it fails."""
    NOT_AS_WRITTEN = 2
    """What was asked for is not what runs."""
    FOUND = 3
    """Other contradictions, and failures of the log."""
    WARNED = 4
    NO_EFFECT = 5
    UNREAD = 6
    """Part of a file that could not be taken, or has an older name."""


@dataclass(frozen=True, slots=True)
class Defect:
    """One entry. `id`: what `explain` takes; empty where nothing more is known of it.

    `seen`: how it is known, with each part; `places`: only where to look, as a first screen has it. `more`:
    what else there is to say of it.
    """

    id: str
    weight: Weight
    what: str
    cure: str
    seen: Words
    places: Words
    more: str = ""


_OF_THE_RUN: Final = frozenset({"trace", DEFAULT})
"""Where settings come from that nobody wrote down."""
_RECIPE_KNOWN: Final = "launcher.recipe_values_known"

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
    configuration = known(result.configuration)
    if configuration is None:
        return ()
    values = values_of(result)
    return (*(_entry(one, values) for one in result.defects), *_unread(configuration))


def _entry(one: configured.Defect, values: Mapping[str, str]) -> Defect:
    settings = [at for at in one.seen if at.source == "configuration"]
    others = [at for at in one.seen if at.source in ("log", "evidence")]
    logged = [at.where for at in others if at.source == "log" and at.where]
    seen = [placed(at, values) for at in settings]
    seen += [words(at.what) for at in others if at.source == "evidence"]
    seen += [words(f"{place} of the log") for place in logged]
    named = joined([words(judged(at, values)) for at in settings])
    where = joined([words(Code(at)) for at in dict.fromkeys(at.where for at in settings)])
    places = [words(named, " (", where, ")")] if settings else []
    places += seen[len(settings) :]
    cure = f"{one.cure.rstrip('.')} ({one.fix})" if one.fix and one.fix not in one.cure else one.cure
    return Defect(one.id, Weight[one.kind.upper()], one.what, cure, joined(seen), joined(places), _more(one))


def _more(one: configured.Defect) -> str:
    releases = [f"from {one.since}"] if one.since else []
    releases += [f"before {one.until}"] if one.until else []
    also = f" The same cure meets: {'; '.join(one.also)}." if one.also else ""
    of = f" ({', '.join(releases)})" if releases else ""
    return f"{capital(one.cost)}{of}.{also}"


def _unread(configuration: Configuration) -> Iterator[Defect]:
    """Problems of the file; one with a right spelling is a finding already, but for an older name."""
    for one in configuration.problems:
        if not one.instead or one.effect == "older_name":
            place = words(Code(one.where))
            yield Defect("", Weight.UNREAD, one.text, "", place, place)


def defect_words(one: Defect, detail: Detail) -> Words:
    start: Words = (Code(one.id), ": ") if one.id else ()
    mark = {Weight.WARNED: "warning: ", Weight.NO_EFFECT: "no effect: "}.get(one.weight, "")
    cure = f" Cure: {ended(one.cure)}" if one.cure else ""
    where = one.seen if detail is Detail.FULL else one.places
    more = f" {one.more}" if one.more and detail is Detail.FULL else ""
    seen = words(" Seen: ", where, ".") if where else ()
    return words(start, f"{mark}{ended(one.what)}{more}{cure}", seen)


def first_errors(result: Result) -> tuple[Words, ...]:
    """What must be corrected before anything is tried; none without a configuration."""
    heavy = [one for one in defects(result) if one.weight <= Weight.NOT_AS_WRITTEN]
    return tuple(defect_words(one, Detail.FIRST) for one in heavy)


def other_program(configuration: Configuration) -> str:
    """The program that is no Megatron whose configuration this is; empty where it is Megatron's."""
    framework = known(configuration.framework)
    return next((name for program, name in PROGRAMS.items() if program == framework), "")


def legal_words(result: Result, configuration: Configuration) -> str:
    if program := other_program(configuration):
        return f"A configuration of {program}, of which little is read: whether it is legal is not checked."
    told = configuration.versions
    packages = {"Megatron-Core": told.core, "Megatron-Bridge": told.bridge, "PyTorch": told.torch}
    packages["Transformer Engine"] = told.te
    versions = [f"{name} {version}" for name, one in packages.items() if (version := known(one))]
    if is_before_tables(core := known(told.core)):
        oldest = ".".join(map(str, FIRST[:2]))
        versions[0] = f"Megatron-Core {core} (checked by the rules of {oldest}, the oldest that are known)"
    of = ", ".join(versions) or "the newest releases (version unknown: --core-version)"
    if not configuration.legal:
        count, who = _errors(result)
        return f"{count} for {of}: {who}"
    if not is_written(configuration):
        return "No configuration was given; only what the trace shows of it is known. Give --config FILE."
    said = f"No rule that could be checked is broken, for {of}."
    if recipe_known(configuration):
        return said
    return f"{said} What its recipe sets is not known: give TP, PP, EP and the batch as flags to check them."


def _errors(result: Result) -> tuple[str, str]:
    weights = [one.weight for one in defects(result)]
    rejected, fails = weights.count(Weight.REJECTED), weights.count(Weight.FAILS)
    if not rejected:
        return counted(
            fails, "error"
        ), "no framework rejects this configuration at its start; it fails later, while it runs."
    others = fails + weights.count(Weight.NOT_AS_WRITTEN)
    more = counted(others, "more entry", "more entries")
    also = f" Fix first has {more}, which Megatron does not reject." if others else ""
    return counted(rejected, "error"), f"Megatron rejects this configuration.{also}"


def recipe_known(configuration: Configuration) -> bool:
    """Whether the values of the recipe that a command names are known; so where it names none."""
    return not any(one.knob == _RECIPE_KNOWN and one.value is False for one in configuration.settings)


def is_written(configuration: Configuration) -> bool:
    said = {one.said for one in configuration.settings} - _OF_THE_RUN
    framed = known(configuration.framework) is not None
    return bool(configuration.problems) or (framed and any(not one.startswith("--") for one in said))


def answer_words(answers: Sequence[Checked]) -> tuple[str, ...]:
    """What each tier says of a configuration or a change, one sentence each; one reason is said once."""
    asked = [one for one in answers if one.tier != "rules"]
    if asked and all(one.answer == "not_checked" for one in asked):
        silent = (f"Megatron-Core was not asked: {asked[0].text.rstrip('.')}.",)
        return (*map(_said, (one for one in answers if one.tier == "rules")), *silent)
    return tuple(map(_said, answers))


def _said(one: Checked) -> str:
    text = f": {one.text.rstrip('.')}" if one.text else ""
    if one.tier == "rules" and one.answer == "ok" and text:  # rules that we know, no framework that accepts
        return f"{_TIERS[one.tier]}{text}."
    return f"{_TIERS[one.tier]}: {_ANSWERS[one.answer]}{text}."

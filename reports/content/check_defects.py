"""What is wrong with a configuration, one entry a defect: what it is, its cure, where it was
seen.
"""

from collections.abc import Sequence
from enum import IntEnum
from functools import partial
from typing import Final

from heuristics.result import configured
from heuristics.result.judged import Checked
from heuristics.result.result import Result
from reports.content.blocks import Code, Words, words
from reports.content.judged_settings import Settings, judged, seen_in
from reports.content.names import around, capital, codes, ended, joined, optional, settings_of
from reports.content.page import Detail
from reports.measures import words_of
from reports.rows import each, those
from traces.frozen import frozen
from traces.texts import Texts


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


@frozen
class DefectEntry:
    """One entry. `id`: what `explain` takes; empty where nothing more is known of it.

    `seen`: how it is known, with each part; `places`: only where to look, as a first screen has it.
    `more`: what else there is to say of it.
    """

    id: str
    weight: Weight
    what: str
    cure: str
    seen: Words
    places: Words
    more: str = ""


_MARKS: Final = {Weight.WARNED: "warning: ", Weight.NO_EFFECT: "no effect: "}


def defects(result: Result) -> tuple[DefectEntry, ...]:
    """Every defect once, heaviest first; none where no configuration was given."""
    configuration = result.configuration
    if not configuration:
        return ()
    entries = [*map(partial(_entry, settings_of(result)), result.defects)]
    for problem in configuration.problems:
        # one with a right spelling is a finding already, but for an older name
        if not problem.instead or problem.effect == "older_name":
            place = words(Code(problem.where))
            entries.append(DefectEntry("", Weight.UNREAD, problem.text, "", place, place))
    return tuple(entries)


def _entry(settings: Settings, defect: configured.Defect) -> DefectEntry:
    named, where = [], dict[str, None]()
    for at in those(defect.seen, source="configuration"):
        named.append(judged(at, settings))
        where.setdefault(at.where)
    others = [*seen_in("evidence", defect, settings), *seen_in("log", defect, settings)]
    seen, places = [*seen_in("configuration", defect, settings), *others], others
    if named:
        places = [words(joined(named), " (", codes(where), ")"), *others]
    releases = filter(
        None, (optional("from {}", defect.since), optional("before {}", defect.until))
    )
    more = capital(defect.cost) + optional(" ({})", ", ".join(releases))
    more += f".{optional(' The same cure meets: {}.', defect.also, '; '.join)}"
    weight, cure = Weight[defect.kind.upper()], cure_with_fix(defect)
    return DefectEntry(defect.id, weight, defect.what, cure, joined(seen), joined(places), more)


def cure_with_fix(entry: configured.Defect | configured.Incident) -> str:
    """The cure, with the fix that is one where it does not name it."""
    if entry.fix and entry.fix not in entry.cure:
        return f"{entry.cure.rstrip('.')} ({entry.fix})"
    return entry.cure


def defect_words(defect: DefectEntry, detail: Detail) -> Words:
    start = (Code(defect.id), ": ") if defect.id else ()
    text = _MARKS.get(defect.weight, "") + ended(defect.what)
    where = defect.places
    if detail is Detail.FULL:
        text, where = text + optional(" {}", defect.more), defect.seen
    text += optional(" Cure: {}", defect.cure, ended)
    return words(start, text, around(" Seen: ", where, "."))


def first_errors(result: Result) -> list[DefectEntry]:
    """What must be corrected before anything is tried; none without a configuration."""
    return [defect for defect in defects(result) if defect.weight <= Weight.NOT_AS_WRITTEN]


def answer_words(answers: Sequence[Checked]) -> Texts:
    """What each tier says of a configuration or a change, one sentence each; one reason is said
    once.
    """
    asked_of_megatron = [checked for checked in answers if checked.tier != "rules"]
    is_silent = {*each(asked_of_megatron, "answer")} == {"not_checked"}
    sentences = []
    for row in answers:
        tier, text = words_of("tier")[row.tier], row.text.rstrip(".")
        # of rules that we know, no framework
        if row.tier == "rules" and row.answer == "ok" and text:
            sentences.append(f"{tier}: {text}.")
        elif row.tier == "rules" or not is_silent:
            sentences.append(f"{tier}: {words_of('answer')[row.answer]}{optional(': {}', text)}.")
    if is_silent:
        sentences.append(f"Megatron-Core was not asked: {asked_of_megatron[0].text.rstrip('.')}.")
    return tuple(sentences)

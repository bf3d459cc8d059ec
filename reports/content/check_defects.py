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
class Defect:
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


def defects(result: Result) -> tuple[Defect, ...]:
    """Every defect once, heaviest first; none where no configuration was given."""
    configuration = result.configuration
    if not configuration:
        return ()
    found = [*map(partial(_entry, settings_of(result)), result.defects)]
    for one in configuration.problems:
        # one with a right spelling is a finding already, but for an older name
        if not one.instead or one.effect == "older_name":
            place = words(Code(one.where))
            found.append(Defect("", Weight.UNREAD, one.text, "", place, place))
    return tuple(found)


def _entry(settings: Settings, one: configured.Defect) -> Defect:
    named, where = [], dict[str, None]()
    for at in those(one.seen, source="configuration"):
        named.append(judged(at, settings))
        where.setdefault(at.where)
    others = [*seen_in("evidence", one, settings), *seen_in("log", one, settings)]
    seen, places = [*seen_in("configuration", one, settings), *others], others
    if named:
        places = [words(joined(named), " (", codes(where), ")"), *others]
    releases = filter(None, (optional("from {}", one.since), optional("before {}", one.until)))
    more = capital(one.cost) + optional(" ({})", ", ".join(releases))
    more += f".{optional(' The same cure meets: {}.', one.also, '; '.join)}"
    weight, cure = Weight[one.kind.upper()], cure_with_fix(one)
    return Defect(one.id, weight, one.what, cure, joined(seen), joined(places), more)


def cure_with_fix(one: configured.Defect | configured.Incident) -> str:
    """The cure, with the fix that is one where it does not name it."""
    if one.fix and one.fix not in one.cure:
        return f"{one.cure.rstrip('.')} ({one.fix})"
    return one.cure


def defect_words(one: Defect, detail: Detail) -> Words:
    start: Words = (Code(one.id), ": ") if one.id else ()
    said = _MARKS.get(one.weight, "") + ended(one.what)
    where = one.places
    if detail is Detail.FULL:
        said, where = said + optional(" {}", one.more), one.seen
    said += optional(" Cure: {}", one.cure, ended)
    return words(start, said, around(" Seen: ", where, "."))


def first_errors(result: Result) -> list[Defect]:
    """What must be corrected before anything is tried; none without a configuration."""
    return [one for one in defects(result) if one.weight <= Weight.NOT_AS_WRITTEN]


def answer_words(answers: Sequence[Checked]) -> Texts:
    """What each tier says of a configuration or a change, one sentence each; one reason is said
    once.
    """
    asked = [one for one in answers if one.tier != "rules"]
    is_silent = {*each(asked, "answer")} == {"not_checked"}
    said = []
    for one in answers:
        tier, text = words_of("tier")[one.tier], one.text.rstrip(".")
        # of rules that we know, no framework
        if one.tier == "rules" and one.answer == "ok" and text:
            said.append(f"{tier}: {text}.")
        elif one.tier == "rules" or not is_silent:
            said.append(f"{tier}: {words_of('answer')[one.answer]}{optional(': {}', text)}.")
    if is_silent:
        said.append(f"Megatron-Core was not asked: {asked[0].text.rstrip('.')}.")
    return tuple(said)

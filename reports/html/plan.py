"""What to change: the first change at the top of the page, the whole plan further down."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from reports.config_sentences import checked_sentence, first_mends, mend_first_sentence
from reports.html.section import Section, Table, sentence
from reports.sentences import (
    SPELLINGS,
    advice,
    between,
    choice_sentences,
    fix_title,
    framework_sentence,
    lever_sentence,
    needs,
    no_plan_sentence,
    sharing_sentences,
)
from traces.cures import cures

_SHOWN_REFUSED: Final = 3
_RULED_OUT: Final = 2
_ID: Final = re.compile(r"[A-Z]+-[0-9]+")
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """One fix or lever in words. `knobs`: what each spelling is called, and its settings as one text."""

    id: str
    title: str
    knobs: tuple[tuple[str, str], ...]
    said: tuple[str, ...]
    verify: str
    about: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """`mends` and `intro` stand before the changes, `notes` after them.

    `not_now`: obvious alternatives, each with what forbids it.
    """

    mends: tuple[str, ...]
    intro: str
    changes: tuple[Change, ...]
    notes: tuple[str, ...]
    not_now: tuple[str, ...]
    more_refused: int
    refused: Section


def plan_of(document: Document, everything: bool) -> Plan:
    """The plan, or the levers where no wall stands, in the order to try."""
    fixes = document["fixes"] or document["levers"]
    notes = [said] if (said := framework_sentence(document)) else []
    notes += sharing_sentences(fixes)
    if everything or document["fixes"]:
        notes += choice_sentences(document, everything)
    notes += advice(document)
    if not fixes and not notes:
        notes = [cures(document["traces"][0]["kind"])["look"]]
    megatron = document["framework"] == "megatron"
    if megatron and document.get("configuration") is None:  # results of earlier versions have none
        notes.append("Nothing was checked against your configuration: give --config FILE, --log FILE.")
    not_now = _not_now(document)
    mend = mend_first_sentence(document)
    return Plan(
        mends=(mend, *first_mends(document)) if mend else (),
        intro=lever_sentence(document) if document["levers"] else "" if fixes else no_plan_sentence(document),
        changes=tuple(_change(fix) for fix in fixes),
        notes=tuple(notes),
        not_now=tuple(refusal(one) for one in not_now[:_SHOWN_REFUSED]),
        more_refused=len(document["refused"]) - len(not_now[:_SHOWN_REFUSED]),
        refused=_refused(document),
    )


def refusal(one: dict[str, Any]) -> str:
    """A fix that is not in the plan, why, and what would let it in."""
    unlocked = f" Unlocked by: {one['unlocked_by'].rstrip('.')}." if one["unlocked_by"] else ""
    return f"{one['id']} {one['title']}: {one['because'].rstrip('.')}.{unlocked}"


def _not_now(document: Document) -> list[dict[str, Any]]:
    """First what the first of the plan rules out, then what else is refused of the verdict's wall."""
    wall, plan = document["verdict"]["wall"], document["fixes"] or document["levers"]
    of_wall = [one for one in document["refused"] if wall and one["wall"] == wall]
    first = plan[0]["id"] if plan else ""
    ruled_out = [one for one in of_wall if first in _ID.findall(one["because"])][:_RULED_OUT]
    return [*ruled_out, *(one for one in of_wall if one not in ruled_out)]


def _change(fix: dict[str, Any]) -> Change:
    knobs = ((name, between(name).join(fix["knobs"][key])) for key, name in SPELLINGS)
    said = [sentence(f"Versions: {fix['versions']}")] if fix["versions"] else []
    if checked := checked_sentence(fix):
        said.append(sentence(checked))
    if room := fix.get("room"):  # results of earlier versions have none
        said.append(f"Memory: {room['because']}")
    said += [f"{need[:1].upper()}{need[1:]}" for need in needs(fix)]
    about = [f"Met: {one['text']}" for one in fix["preconditions"] if one["state"] == "met"]
    if fix["gain_source"]:
        about.append(f"Measured elsewhere: {fix['gain_source']}")
    about += [f"Beware: {effect}" for effect in fix["side_effects"]]
    about += [f"Source: {source}" for source in fix["sources"]]
    return Change(
        id=fix["id"],
        title=fix_title(fix),
        knobs=tuple((name, settings) for name, settings in knobs if settings),
        said=tuple(said),
        verify=sentence(fix["verify"]),
        about=tuple(about),
    )


def _refused(document: Document) -> Section:
    rows = tuple(
        (
            f"{one['id']} {one['title']}",
            one["because"],
            one["unlocked_by"] or "nothing we know",
            one["source"],
        )
        for one in document["refused"]
    )
    table = Table("Changes that are not in the plan", ("Change", "Why not", "Unlocked by", "Source"), rows)
    return Section("refused", "Refused changes", tables=(table,) if rows else ())

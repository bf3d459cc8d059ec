"""What to try next, what is refused, how to check it, and what would tell more, of a ticket."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any, Final

from reports.config_sentences import checked_sentence, first_mends, mend_first_sentence
from reports.document import Document
from reports.markdown_blocks import (
    Block,
    Code,
    Fold,
    Item,
    Items,
    Phrase,
    Strong,
    folded,
    items,
    joined,
    table,
)
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

_FIXES: Final = 3
_MENDS: Final = 2
_CHECKS: Final = 3
_REFUSED: Final = 3
_RULED_OUT: Final = 2
_ADVICE: Final = 2
_NO_CURES: Final = ("none is needed", "use a later version")
_SPELLED: Final = ("megatron_lm", "megatron_bridge")
_ID: Final = re.compile(r"[A-Z]+-[0-9]+")


def next_blocks(document: Document, everything: bool) -> Iterator[Block]:
    """The plan, how to see whether it helped, and what would tell more; the rest folded."""
    has_plan = bool(document["fixes"] or document["levers"])
    told = _advice(document, has_plan)
    shown = len(told) if everything else _ADVICE if has_plan else 2 * _ADVICE
    then = [*told[:shown], *_checking(document)]
    yield from items([said] if (said := framework_sentence(document)) else [])
    yield from plan_blocks(document, everything, no_plan_sentence(document), then)
    yield from folded("What the guides choose", items(choice_sentences(document, everything=True)))
    yield from folded("What else would tell more", items(told[shown:]))


def plan_blocks(
    document: Document, everything: bool, no_plan: str, then: Sequence[Phrase] = (), mends: int = _MENDS
) -> Iterator[Block]:
    """What to mend, what to try in its order, the first whole; what is refused; the rest folded.

    `no_plan`: said where nothing is to be tried; `then`: what stands after all of it; `mends`: how many
    things to mend are named.
    """
    fixes = document["fixes"] or document["levers"]
    shown = fixes if everything else fixes[:_FIXES]
    refused = _nearest_first(document)
    near = refused if everything else refused[:_REFUSED]
    listed = [*sharing_sentences(shown), *map(_refusal, near), *then]
    if shown:
        steps = [_step(fix, whole=everything or place == 0) for place, fix in enumerate(shown)]
        yield from items(_before(document, mends))
        yield Items(tuple(steps), numbered=True)
        yield from items(listed)
    else:
        yield from items([*_before(document, mends), no_plan, *listed])
    for fix in shown:
        yield from folded(f"More about {fix['id']}", items(_about(fix)))
    yield from folded("More fixes", _later(fixes[len(shown) :]))
    yield from folded("More that is refused", items(map(_refusal, refused[len(near) :])))


def _before(document: Document, mends: int) -> Iterator[str | Item]:
    """What comes before the plan."""
    if first := mend_first_sentence(document):
        yield Item(first, tuple(first_mends(document))[:mends])
    if document["levers"]:
        yield lever_sentence(document)


def _step(fix: dict[str, Any], whole: bool) -> Item:
    """A fix: what to set, what it wins and needs; `whole`: in every spelling, and how to check it."""
    said = [*_knobs(fix, _SPELLED[: None if whole else 1])]
    if conditions := _conditions([*needs(fix)], whole):
        said.append(conditions)
    if whole:
        said.append(f"check next time: {fix['verify']}")
    return Item((Strong(fix["id"]), f" {fix_title(fix)}"), tuple(said))


def _knobs(fix: dict[str, Any], spelled: Sequence[str]) -> Iterator[Phrase]:
    """What to set: in the spellings that are asked for, or the only one it has, and in the environment."""
    knobs, names = fix["knobs"], dict(SPELLINGS)
    has = [key for key in _SPELLED if knobs[key]]
    shown = [key for key in has if key in spelled] or has
    for key in [*shown, "environment", "pytorch"]:
        if knobs[key]:
            yield (f"{names[key]}: ", *joined(map(Code, knobs[key]), between(names[key])))


def _conditions(said: list[str], whole: bool) -> str:
    """What is not met; of a whole fix the first to check as well."""
    told = [one for one in said if one.startswith("needs: ")]
    checks = [one.removeprefix("check: ") for one in said if one not in told] if whole else []
    if checks:
        more = f"; and {len(checks) - _CHECKS} more below" if len(checks) > _CHECKS else ""
        told.append(f"check first: {'; '.join(checks[:_CHECKS])}{more}")
    return "; ".join(told)


def _about(fix: dict[str, Any]) -> Iterator[Phrase]:
    """All that is known of a fix: spellings, versions, conditions, gains elsewhere, side effects, sources."""
    for key, name in SPELLINGS:
        if fix["knobs"][key]:
            yield (f"{name}: ", *joined(map(Code, fix["knobs"][key]), between(name)))
    yield f"versions: {fix['versions']}"
    if checked := checked_sentence(fix):
        yield checked
    if room := fix.get("room"):  # results of earlier versions have none
        yield f"memory: {room['because']}"
    yield from needs(fix)
    yield from (f"met: {one['text']}" for one in fix["preconditions"] if one["state"] == "met")
    yield f"check next time: {fix['verify']}"
    if fix["gain_source"]:
        yield f"measured elsewhere: {fix['gain_source']}"
    yield from (f"beware: {effect}" for effect in fix["side_effects"])
    yield from (f"source: {source}" for source in fix["sources"])


def _later(fixes: list[dict[str, Any]]) -> Iterator[Block]:
    steps = (Item((Strong(fix["id"]), f" {fix_title(fix)}"), tuple(_about(fix))) for fix in fixes)
    yield from items(steps)


def _nearest_first(document: Document) -> list[dict[str, Any]]:
    """What is refused: first what the first of the plan rules out, then the verdict's wall, then others."""
    wall, plan = document["verdict"]["wall"], document["fixes"] or document["levers"]
    of_wall = sorted(document["refused"], key=lambda one: one["wall"] != wall)
    first = plan[0]["id"] if plan else ""
    ruled_out = [one for one in of_wall if first in _ID.findall(one["because"])][:_RULED_OUT]
    return [*ruled_out, *(one for one in of_wall if one not in ruled_out)]


def _refusal(one: dict[str, Any]) -> Item:
    unlocked = f" Unlocked by: {one['unlocked_by']}." if one["unlocked_by"] else ""
    return Item(("Refused: ", Strong(one["id"]), f" {one['title']}: {one['because']}.{unlocked}"))


def _advice(document: Document, has_plan: bool) -> list[str]:
    told = advice(document)
    return told if told or has_plan else [cures(document["traces"][0]["kind"])["look"]]


def _checking(document: Document) -> Iterator[Phrase]:
    """How to see whether a change helped, which needs a plan and one trace to compare with."""
    if len(document["traces"]) == 1 and (document["fixes"] or document["levers"]):
        compare = Code(f"moe-diag compare {shlex.quote(document['traces'][0]['name'])} AFTER")
        yield ("Did it help? Record again in the same way, then ", compare)


def gap_blocks(document: Document, everything: bool) -> Iterator[Fold]:
    """What could not be told, folded; every gap where everything is asked for, else those with a cure."""
    rows = [
        ((Code(gap["path"]),), gap["reason"], gap["cure"])
        for gap in document["missing"]
        if everything or gap["cure"] not in _NO_CURES
    ]
    yield from folded("What could not be told", table(["Where", "Why", "To tell"], rows))

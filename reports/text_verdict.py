"""Verdict, walls and what to try next, as plain text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from reports.config_sentences import checked_sentence
from reports.document import Document
from reports.layout import INDENT, titled, wrap
from reports.sentences import (
    SPELLINGS,
    advice,
    between,
    choice_sentences,
    fix_title,
    framework_sentence,
    lever_sentence,
    needs,
    outcome_words,
    replay_sentences,
    sharing_sentences,
    verdict_sentences,
    wall_sentence,
)
from reports.words import kind_words, milliseconds, percent, wall_words
from traces.cures import cures

_SHOWN_FIXES: Final = 3
_SHOWN_CHECKS: Final = 3
"""Preconditions to check that are shown of a fix; `--all` shows every one."""


def verdict_lines(document: Document) -> Iterator[str]:
    """The verdict in a few lines: the wall or none, how sure, where the time goes."""
    yield from titled("Verdict", wall_sentence(document))
    for said in verdict_sentences(document):
        yield from wrap(said)


def wall_lines(document: Document) -> Iterator[str]:
    """One line a wall: what it costs at most, and the outcome."""
    yield from titled("Why", "what each wall costs at most, by replay without its handicap:")
    for wall in sorted(document["walls"], key=lambda one: -(one["cost_frac"] or 0)):
        name = wall_words(wall["id"])
        if wall["cost_frac"] is None:
            yield from wrap(f"{name:<22}{_untold(wall)}", INDENT, INDENT + " " * 22)
            continue
        row = f"{INDENT}{name:<22}{milliseconds(wall['cost_ns']):>14} ms {percent(wall['cost_frac']):>8}"
        yield f"{row}  {outcome_words(wall)}"
        parts = sorted((wall["cost_by_kind_ns"] or {}).items(), key=lambda part: -part[1])
        if parts and wall["outcome"] == "finding":
            alone = "; ".join(f"{kind_words(kind)} {milliseconds(ns)}" for kind, ns in parts[:4])
            yield from wrap(f"  each kind alone (they overlap), ms: {alone}", INDENT, INDENT + "  ")
    for said in replay_sentences(document):
        yield from wrap(said)


def _untold(wall: dict[str, Any]) -> str:
    """An outcome without a cost: why, the price of what could be priced, and the most it can be."""
    said = outcome_words(wall)
    said = f"{said}: {wall['missing'][0]}" if wall["missing"] else said
    price = [one["value"] for one in wall["evidence"] if one["measure"] == "cost_frac"]
    return f"{said}. Price: {percent(price[0])}" if price else said


def next_lines(document: Document, everything: bool) -> Iterator[str]:
    """The plan, what could not be told and how to tell it; `everything`: all fixes and all refusals."""
    parts = [[f"- {said}"]] if (said := framework_sentence(document)) else []
    parts += plan_lines(document, everything)
    if everything or document["fixes"]:
        parts += [["- " + said] for said in choice_sentences(document, everything)]
    open_ = advice(document)
    if not parts and not open_:
        open_ = [cures(document["traces"][0]["kind"])["look"]]
    parts += [["- " + text] for text in open_]
    if document.get("configuration") is None and document["framework"] == "megatron":
        parts.append(["- Nothing was checked against your configuration: give --config FILE, --log FILE."])
    for index, (first, *rest) in enumerate(parts):
        yield from titled("Next" if index == 0 else "", first)
        for line in rest:
            yield from wrap(line, INDENT + "   ", INDENT + "     ")


def plan_lines(document: Document, everything: bool) -> Iterator[list[str]]:
    """The plan as paragraphs: the first line of each, and those under it."""
    fixes = document["fixes"] or document["levers"]
    shown = len(fixes) if everything else _SHOWN_FIXES
    if document["levers"]:
        yield [lever_sentence(document)]
    for place, fix in enumerate(fixes[:shown], start=1):
        yield [f"{place}. {fix['id']} {fix_title(fix)}", *_fix_lines(fix, everything)]
    for sharing in sharing_sentences(fixes[:shown]):
        yield [f"- {sharing}"]
    more = len(fixes) - shown
    left = [f"{more} more fix{'es' if more > 1 else ''}"] if more > 0 else []
    if document["refused"] and not everything:
        left.append(f"{len(document['refused'])} refused, each with its reason")
    if left:
        yield [f"- {' and '.join(left)}: with --all."]
    if everything:
        for one in document["refused"]:
            unlocked = f" Unlocked by: {one['unlocked_by']}." if one["unlocked_by"] else ""
            yield [f"- refused: {one['id']} {one['title']}: {one['because']}.{unlocked}"]


def _fix_lines(fix: dict[str, Any], everything: bool) -> Iterator[str]:
    for key, name in SPELLINGS:
        if fix["knobs"][key] and (everything or key != "bridge_harness"):
            yield f"{name}: {between(name).join(fix['knobs'][key])}"
    yield f"versions: {fix['versions']}"
    if checked := checked_sentence(fix):
        yield checked
    if room := fix.get("room"):  # results of earlier versions have none
        yield f"memory: {room['because']}"
    conditions = [*needs(fix)]
    shown = len(conditions) if everything else _SHOWN_CHECKS
    yield from conditions[:shown]
    if len(conditions) > shown:
        yield f"and {len(conditions) - shown} more to check: with --all"
    if everything:
        if fix["gain_source"]:
            yield f"elsewhere: {fix['gain_source']}"
        yield from (f"beware: {effect}" for effect in fix["side_effects"])
    yield f"verify: {fix['verify']}"

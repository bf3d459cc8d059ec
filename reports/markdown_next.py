"""What to try next, and what would tell more, as GitHub markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from reports.config_sentences import checked_sentence
from reports.cures import cures
from reports.document import Document
from reports.markdown_marks import code, folded, plain, table
from reports.sentences import (
    SPELLINGS,
    advice,
    choice_sentences,
    fix_title,
    lever_sentence,
    needs,
    sharing_sentences,
)

_SHOWN_FIXES: Final = 3
_SHOWN_ADVICE: Final = 4
_NO_CURES: Final = ("none is needed", "use a later version")


def next_lines(document: Document, everything: bool) -> Iterator[str]:
    """The plan and what would tell more; the rest of each fix folded."""
    yield from ("", "## Next", "")
    fixes = document["fixes"] or document["levers"]
    shown = fixes if everything else fixes[:_SHOWN_FIXES]
    if document["levers"]:
        yield from (lever_sentence(document), "")
    for place, fix in enumerate(shown, start=1):
        yield f"{place}. **{plain(fix['id'])}** {plain(fix_title(fix))}"
        yield from (f"   - {line}" for line in _fix(fix))
    if shown:
        yield ""
    told = advice(document)
    for sharing in sharing_sentences(shown):
        yield f"- {plain(sharing)}"
    yield from (f"- {line}" for line in _left_out(document, len(fixes) - len(shown), everything))
    if everything or document["fixes"]:
        yield from (f"- {plain(said)}" for said in choice_sentences(document, everything))
    yield from (f"- {plain(one)}" for one in (told if everything else told[:_SHOWN_ADVICE]))
    if not shown and not told:
        yield f"- {plain(cures(document['traces'][0]['kind'])['look'])}"
    for fix in shown:
        yield from folded(f"More about {fix['id']}", _about(fix))
    if everything:
        yield from folded("Refused fixes", _refused(document["refused"]))


def _fix(fix: dict[str, Any]) -> Iterator[str]:
    for key, name in SPELLINGS:
        if fix["knobs"][key] and key != "bridge_harness":
            yield f"{name}: {' '.join(map(code, fix['knobs'][key]))}"
    if checked := checked_sentence(fix):
        yield plain(checked)
    if room := fix.get("room"):  # results of earlier versions have none
        yield f"memory: {plain(room['because'])}"
    if open_ := [plain(need) for need in needs(fix)]:
        yield "; ".join(open_)
    yield f"verify: {plain(fix['verify'])}"


def _about(fix: dict[str, Any]) -> Iterator[str]:
    """What else is known of a fix: the other spelling, versions, gains elsewhere, side effects, sources."""
    harness = dict(SPELLINGS)["bridge_harness"]
    if fix["knobs"]["bridge_harness"]:
        yield f"- {plain(harness)}: {' '.join(map(code, fix['knobs']['bridge_harness']))}"
    yield f"- versions: {plain(fix['versions'])}"
    met = [one["text"] for one in fix["preconditions"] if one["state"] == "met"]
    yield from (f"- met: {plain(text)}" for text in met)
    if fix["gain_source"]:
        yield f"- measured elsewhere: {plain(fix['gain_source'])}"
    yield from (f"- beware: {plain(effect)}" for effect in fix["side_effects"])
    yield from (f"- source: {plain(source)}" for source in fix["sources"])


def _left_out(document: Document, more: int, everything: bool) -> Iterator[str]:
    left = [f"{more} more fix{'es' if more > 1 else ''}"] if more else []
    if document["refused"] and not everything:
        left.append(f"{len(document['refused'])} refused, each with its reason")
    if left:
        yield f"{' and '.join(left)}: with {code('--all')}."


def _refused(refused: list[dict[str, Any]]) -> Iterator[str]:
    for one in refused:
        unlocked = f" Unlocked by: {plain(one['unlocked_by'])}." if one["unlocked_by"] else ""
        yield f"- **{plain(one['id'])}** {plain(one['title'])}: {plain(one['because'])}.{unlocked}"


def gap_lines(document: Document, everything: bool) -> Iterator[str]:
    """What could not be told, folded; every gap where everything is asked for, else those with a cure."""
    rows = [
        [code(gap["path"]), plain(gap["reason"]), plain(gap["cure"])]
        for gap in document["missing"]
        if everything or gap["cure"] not in _NO_CURES
    ]
    if rows:
        yield from folded("What could not be told", table(["Where", "Why", "To tell"], rows))

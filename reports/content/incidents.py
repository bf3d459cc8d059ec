"""Published troubles of a run, one entry each: what happens and why, what helps, how it is
known.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from heuristics.result.configured import Incident
from heuristics.result.result import Result
from reports.content.blocks import Blocks, Code, Items, Sentence, Tone, Words, words
from reports.content.check_defects import cure_with_fix
from reports.content.judged_settings import Settings, seen_in
from reports.content.names import around, beyond, ended, joined, optional, settings_of
from reports.content.page import Detail
from reports.measures import words_of
from reports.rows import those
from traces.spelling import spoken

_FIRST: Final = 2
"""Entries on the first screen, each of them whole."""
_TITLE: Final = "Known of such a run"


def logged_incidents(result: Result) -> Blocks:
    """What a line of the log shows comes before the plan."""
    seen = those(result.incidents or (), state="seen")
    yield from _listed(result, _TITLE, seen[:1], Detail.FIRST)


def met_incidents(result: Result) -> Blocks:
    """What the run may meet as it is set up: below the plan, of which it takes no room."""
    met = those(result.incidents or (), state="met")
    for row in met[:1]:
        more = beyond(len(met), 1, " {}.", "more entry", "more entries")
        text = (
            f"{_condition(row)}{words_of('incident')[row.kind]}. Cure: "
            f"{ended(cure_with_fix(row))}{more}"
        )
        yield Sentence(words(Code(row.id), f": {text}"), "Known", Tone.NOTICE, whole=True)


def incident_items(result: Result, detail: Detail) -> Blocks:
    """What the run is known to meet, the strongest first; on a long page also what it may."""
    met = [incident for incident in result.incidents or () if incident.state != "possible"]
    may_be = those(result.incidents or (), state="possible")
    if detail is Detail.FULL:
        yield from _listed(result, _TITLE, met, detail)
        yield from _listed(result, "Known of such a run, if", may_be, detail)
    else:
        more_entries = beyond(len(met), _FIRST, " {}: --full.", "more entry", "more entries")
        yield from _listed(result, _TITLE, met[:_FIRST], detail, more_entries)


def _listed(
    result: Result, title: str, incidents: Sequence[Incident], detail: Detail, ending: str = ""
) -> Iterator[Items]:
    """On a first screen without every place where they were seen. `ending`: of the last entry."""
    entries = [*map(partial(_words, settings_of(result), detail), incidents)]
    if entries:
        entries[-1] = words(entries[-1], ending)
        yield Items(tuple(entries), title, whole=True)


def _words(settings: Settings, detail: Detail, row: Incident) -> Words:
    text = f": {_condition(row)}{ended(row.what)} Cure: {ended(cure_with_fix(row))}"
    seen = [*seen_in("log", row, settings), *seen_in("evidence", row, settings)]
    if detail is Detail.FULL or not seen:
        seen += seen_in("configuration", row, settings)
    source = f" Source: {ended(row.source)}"
    if detail is Detail.FIRST:
        seen, source = seen[:2], ""
    return words(Code(row.id), text, around(" Seen: ", joined(seen), "."), source)


def _condition(incident: Incident) -> str:
    return optional("if it fits (not known here: {}): ", ", ".join(map(spoken, incident.only_if)))

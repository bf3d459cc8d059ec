"""Settings that a sentence rests on, each with its value."""

from collections.abc import Mapping

from heuristics.result.configured import Defect, Incident, Setting, Sighting
from reports.content.blocks import Code, Words, words
from reports.content.names import optional
from traces.settings.spelling import spelled

Settings = Mapping[str, Setting]
"""By their knobs."""


def judged(at: Sighting, settings: Settings) -> Code:
    """A setting and its value, where that may be shown: it may be a path or a name."""
    setting = settings.get(at.what)
    if not setting or setting.withheld:
        return Code(at.what)
    return Code(f"{at.what} {spelled(setting.value)}")


def sighted(at: Sighting, settings: Settings) -> Words:
    """Where something was seen: a setting and where it was set, a line of the log, the evidence."""
    if at.source == "configuration":
        return words(judged(at, settings), " (", Code(at.where), ")")
    if at.source == "log":
        return words(optional("{} of the log", at.where))
    return words(at.what)


def seen_in(source: str, entry: Defect | Incident, settings: Settings) -> list[Words]:
    """The same of all its sightings of a kind; none of the log without a line."""
    return [
        sighting for at in entry.seen if at.source == source and (sighting := sighted(at, settings))
    ]

"""Settings that a sentence rests on, each with its value."""

from collections.abc import Mapping

from heuristics.result.configured import Sighting
from heuristics.result.result import Result
from reports.content.blocks import Code, Words, words
from reports.content.names import settings_of
from traces.settings.spelling import spelled


def values_of(result: Result) -> Mapping[str, str]:
    """The values of settings in words; none of those withheld, which may be a path or a name."""
    return {one.knob: spelled(one.value) for one in settings_of(result) if not one.withheld}


def judged(at: Sighting, values: Mapping[str, str]) -> Code:
    """A setting and its value, where that may be shown."""
    return Code(f"{at.what} {values[at.what]}" if at.what in values else at.what)


def placed(at: Sighting, values: Mapping[str, str]) -> Words:
    """The same, and where it was set."""
    return words(judged(at, values), " (", Code(at.where), ")")

"""Published troubles of a run, one entry each: what happens and why, what helps, how it is known."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from heuristics.result.configured import Incident
from heuristics.result.result import Result
from reports.content.blocks import Block, Code, Detail, Items, Sentence, Tone, Words, words
from reports.content.judged_settings import placed, values_of
from reports.content.names import ended, joined
from traces.spelling import counted

_FIRST: Final = 2
"""Entries on the first screen, each of them whole."""
_DOES: Final = {
    "hangs": "such a run was seen to hang",
    "fails": "such a run was seen to stop",
    "memory": "such a run was seen to run out of memory",
    "wrong": "such a run was seen to compute something wrong",
    "slow": "such a run was seen to take longer than it has to",
}
_TITLE: Final = "Known of such a run"
_MAY_BE: Final = "Known of such a run, if"


def logged_incidents(result: Result) -> Iterator[Block]:
    """What a line of the log shows comes before the plan."""
    seen = [one for one in result.incidents or () if one.state == "seen"]
    yield from _listed(_TITLE, [incident_words(one, Detail.FIRST, values_of(result)) for one in seen[:1]])


def met_incidents(result: Result) -> Iterator[Block]:
    """What the run may meet as it is set up: below the plan, of which it takes no room."""
    met = [one for one in result.incidents or () if one.state == "met"]
    for one in met[:1]:
        more = f" {counted(len(met) - 1, 'more entry', 'more entries')}." if len(met) > 1 else ""
        said = f"{_condition(one)}{_DOES[one.kind]}. Cure: {ended(_cure(one))}{more}"
        yield Sentence(words(Code(one.id), f": {said}"), "Known", Tone.NOTICE, whole=True)


def incident_items(result: Result, detail: Detail) -> Iterator[Block]:
    """What the run is known to meet, the strongest first; on a long page also what it may."""
    found, values = result.incidents or (), values_of(result)
    met = [one for one in found if one.state != "possible"]
    may_be = [one for one in found if one.state == "possible"]
    if detail is Detail.FULL:
        yield from _listed(_TITLE, [incident_words(one, detail, values) for one in met])
        yield from _listed(_MAY_BE, [incident_words(one, detail, values) for one in may_be])
        return
    entries = [incident_words(one, detail, values) for one in met[:_FIRST]]
    if len(met) > _FIRST:
        left = counted(len(met) - _FIRST, "more entry", "more entries")
        entries[-1] = words(*entries[-1], f" {left}: --full.")
    yield from _listed(_TITLE, entries)


def _listed(title: str, entries: Sequence[Words]) -> Iterator[Items]:
    if entries:
        yield Items(tuple(entries), title, whole=True)


def incident_words(one: Incident, detail: Detail, values: Mapping[str, str]) -> Words:
    """`detail`: on a first screen without every place where it was seen. `values`: of settings, in words."""
    start = words(Code(one.id), f": {_condition(one)}{ended(one.what)} Cure: {ended(_cure(one))}")
    seen = _seen(one, detail, values)
    end = words(" Seen: ", seen, ".") if seen else ()
    source = f" Source: {ended(one.source)}" if detail is Detail.FULL else ""
    return words(start, end, source)


def _condition(one: Incident) -> str:
    return f"if it fits ({open_words(one.only_if)}): " if one.only_if else ""


def _cure(one: Incident) -> str:
    return f"{one.cure.rstrip('.')} ({one.fix})" if one.fix and one.fix not in one.cure else one.cure


def open_words(names: Sequence[str]) -> str:
    """What is not known of the run, by its names."""
    return f"not known here: {', '.join(name.replace('_', ' ') for name in names)}"


def _seen(one: Incident, detail: Detail, values: Mapping[str, str]) -> Words:
    logged = [words(f"{at.where} of the log") for at in one.seen if at.source == "log"]
    versions = [words(at.what) for at in one.seen if at.source == "evidence"]
    settings = [placed(at, values) for at in one.seen if at.source == "configuration"]
    found = [*logged, *versions, *(settings if detail is Detail.FULL or not (logged or versions) else ())]
    return joined(found if detail is Detail.FULL else found[:2])

"""The arguments that Megatron-LM prints at the start of its log, one a line behind dots."""

from collections.abc import Iterable
from itertools import chain
from typing import Final

from traces.patterns import compiled
from traces.settings.bridge import take
from traces.settings.knobs import FIRST, MAIN, Knob, Release, by_dest, knobs
from traces.settings.settings import Draft

HEADER: Final = compiled(r"-{8,} arguments -{8,}")
END: Final = compiled(r"-{8,} end of arguments -{8,}")
_ENTRY: Final = compiled(r"(?:^|\s)([A-Za-z_]\w{0,100}) \.+ (.*?)\s*$")
"""`  num_layers ..... 61`, behind a rank or a time where the launcher puts one (_print_args)."""


def has_arguments(text: str) -> bool:
    """Whether a text holds the block."""
    return HEADER.search(text) is not None


def take_arguments(draft: Draft, lines: Iterable[str]) -> bool:
    """Take the last block of a log's lines. Whether it was read to its end."""
    found: list[tuple[int, str, str]] = []
    is_inside = is_whole = False
    for number, line in enumerate(lines, 1):
        if HEADER.search(line):
            found, is_inside, is_whole = [], True, False
        elif is_inside and END.search(line):
            is_inside, is_whole = False, True
        elif is_inside and (entry := _ENTRY.search(line[:2000])):
            found.append((number, entry[1], entry[2]))
    draft.framework = "megatron_lm"
    for number, name, text in found:
        for knob in by_dest().get(name, ()):
            _take(draft, knob, name, text, number)
    names = {name for _, name, _ in found}
    if is_whole:
        used = chain.from_iterable(by_dest().get(name, ()) for name in names)
        at_least = FIRST
        for knob in used:
            older = knob.older if knob.dest in names else ()
            at_least = max(at_least, knob.flag_since, *(old.until for old in older))
        others = (knob for knob in knobs().values() if knob.dest and knob.until is None)
        missing = [knob.flag_since for knob in others if knob.dest not in names]
        # the framework writes all that it has
        note_releases(
            draft, at_least, min((one for one in missing if one > at_least), default=None)
        )
    else:
        draft.problem(
            None, "the arguments end before their last line", "the whole log from its start"
        )
    return is_whole


def _take(draft: Draft, knob: Knob, name: str, text: str, line: int) -> None:
    older = {old.name for old in knob.older}
    if knob.kind == "bool" and text in ("True", "False"):
        draft.put(knob.id, (text == "True") != (knob.dest_is_opposite and name not in older), line)
    elif text == "None":
        if name not in older or knob.id not in draft.by_knob:
            draft.put(knob.id, None, line)
    else:
        take(draft, knob, name, text, line)


def note_releases(draft: Draft, at_least: Release, before: Release | None) -> None:
    """Write a range of releases into the versions of a draft."""
    if at_least > FIRST:
        draft.versions["core_at_least"] = spelled(at_least)
    if before is not None:
        draft.versions["core_before"] = spelled(before)


def spelled(core: Release) -> str:
    """A release as text."""
    if core == MAIN:
        return "main"
    return ".".join(str(part) for part in core)

"""The arguments that Megatron-LM prints at the start of its log, one a line behind dots."""

from collections.abc import Iterable
from typing import Final

from traces.patterns import compiled
from traces.settings.bridge import take
from traces.settings.draft import Draft
from traces.settings.knobs import FIRST, MAIN, Knob, Release, by_dest, knobs

HEADER: Final = compiled(r"-{8,} arguments -{8,}")
END: Final = compiled(r"-{8,} end of arguments -{8,}")
_ENTRY: Final = compiled(r"(?:^|\s)([A-Za-z_]\w{0,100}) \.+ (.*?)\s*$")
"""`  num_layers ..... 61`, behind a rank or a time where the launcher puts one (_print_args)."""


def has_arguments(text: str) -> bool:
    """Whether a text holds the block."""
    return HEADER.search(text) is not None


def take_arguments(draft: Draft, lines: Iterable[str]) -> bool:
    """Take the last block of a log's lines. Whether it was read to its end."""
    printed = list[tuple[int, str, str]]()
    is_inside = is_whole = False
    for number, line in enumerate(lines, 1):
        if HEADER.search(line):
            printed, is_inside, is_whole = [], True, False
        elif is_inside and END.search(line):
            is_inside, is_whole = False, True
        elif is_inside and (entry := _ENTRY.search(line[:2000])):
            printed.append((number, entry[1], entry[2]))
    draft.framework = "megatron_lm"
    for number, name, text in printed:
        for knob in by_dest().get(name, ()):
            _take_argument(draft, knob, name, text, number)
    if is_whole:
        names = {name for _, name, _ in printed}
        used, missing = [], []
        for knob in knobs().values():
            if knob.dest in names:
                used.append(max(knob.flag_since, knob.renamed))
            elif not names.isdisjoint(knob.older):
                used.append(knob.flag_since)
            elif knob.until is None:  # one that left tells nothing: the release may be newer
                missing.append(knob.flag_since)
        note_releases(draft, used, missing)
    else:
        draft.problem(
            None, "the arguments end before their last line", "the whole log from its start"
        )
    return is_whole


def _take_argument(draft: Draft, knob: Knob, name: str, text: str, line: int) -> None:
    if knob.kind == "bool" and text in ("True", "False"):
        is_opposite = knob.dest_is_opposite and name not in knob.older
        draft.put(knob.id, (text == "True") != is_opposite, line)
    elif text == "None":
        if name not in knob.older or knob.id not in draft.by_knob:
            draft.put(knob.id, None, line)
    else:
        take(draft, knob, name, text, line)


def note_releases(draft: Draft, used: Iterable[Release], missing: Iterable[Release]) -> None:
    """Write a range of releases into the versions of a draft.

    `used`: those with which came what is there; `missing`: what is not, as the framework writes all
    that it has.
    """
    at_least = max((FIRST, *used))
    if at_least > FIRST:
        draft.versions["core_at_least"] = spelled(at_least)
    if later := sorted(missed for missed in missing if missed > at_least):
        draft.versions["core_before"] = spelled(later[0])


def spelled(core: Release) -> str:
    """A release as text."""
    if core == MAIN:
        return "main"
    return ".".join(map(str, core))

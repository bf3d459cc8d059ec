"""The lines of a change in an earlier result, read back: its document has no other form of it."""

import shlex
from collections.abc import Sequence
from typing import Final

from traces.patterns import compiled
from traces.settings.bridge import is_override, take_override, take_variable
from traces.settings.command import BINDERS, flags_of, take_flag
from traces.settings.draft import Draft
from traces.settings.harness import take_harness
from traces.settings.knobs import MAIN, Knob, by_flag, knobs
from traces.settings.settings import Framework, Value, Values
from traces.settings.shell import Word

LEFT_OUT: Final = compiled(r"\((?:leave|left) out ([^()]+)\)")
_VARIABLE: Final = compiled(r"([A-Z][A-Z0-9_]*)=(.*)")


def change_of(lines: Sequence[str], framework: Framework) -> Values:
    """What flags, overrides, flags of Bridge's scripts, `NAME=value` and a launcher set.

    `(leave out --flag)` sets what the flag sets to its off value: the opposite of a switch, else
    null.
    """
    changes = dict[str, Value]()
    for line in lines:
        draft = Draft("")
        _take_line(draft, line.strip(), framework)
        if not draft.problems:
            changes |= {knob: setting.value for knob, setting in draft.by_knob.items()}
    return changes


def _take_line(draft: Draft, line: str, framework: Framework) -> None:
    """Take a line of one of the forms we know; any other leaves the draft empty."""
    if left_out := LEFT_OUT.fullmatch(line):
        for name in compiled(r"[\w-]+").findall(left_out[1]):
            if name in BINDERS:
                draft.put("launcher.numa_binding", False, None)
            elif named := knobs().get(f"env.{name}"):
                draft.put(named.id, None, None)
            for knob, is_off in by_flag().get(name, ()):
                draft.put(knob.id, _off_value(knob, is_off), None)
        return
    try:
        words = tuple(Word(word, 0) for word in shlex.split(line))
        first = words[0].text
    except (ValueError, IndexError):  # an open quote, or no word
        return
    if first in BINDERS:
        draft.put("launcher.numa_binding", True, None)
    elif variable := _VARIABLE.fullmatch(line):
        take_variable(draft, variable[1], variable[2].strip("'\""), None)
    elif is_override(first):
        take_override(draft, line, None)
    elif first.startswith("-") and framework == "megatron_bridge":
        take_harness(draft, words)
    elif first.startswith("-"):
        for flag in flags_of(words):
            take_flag(draft, flag)


def _off_value(knob: Knob, is_off: bool) -> Value:
    """What a knob is where its flag is left out."""
    if knob.kind == "bool":
        return is_off
    (default,) = knob.default_in(MAIN) or (None,)
    if isinstance(default, tuple):
        return default
    return None

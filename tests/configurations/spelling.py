"""Lines of a change read by the readers of configurations, to compare with what they were made of."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from traces.settings.bridge import is_override, take, take_override
from traces.settings.command import flags_of, take_flag
from traces.settings.draft import Draft
from traces.settings.harness import take_harness
from traces.settings.knobs import knobs
from traces.settings.settings import Value
from traces.settings.shell import Word
from traces.settings.spelling import is_open


def read_back(lines: Iterable[str], harness: bool = False) -> dict[str, Value]:
    """Knobs that flags, overrides and variables set; what is for people, or left to fill in, sets none."""
    found: dict[str, Value] = {}
    for line in lines:
        if line.startswith(("(", "numactl", "ncu ", "sudo ")) or is_open(
            line.replace("=", " ").split()[-1].strip('"')
        ):
            continue
        found |= _read(line, harness)
    return found


def _read(line: str, harness: bool) -> dict[str, Value]:
    draft = Draft("")
    name, _, value = line.partition("=")
    words = tuple(Word(word, 0) for word in shlex.split(line))
    if f"env.{name}" in knobs():
        take(draft, knobs()[f"env.{name}"], name, value, None)
    elif is_override(words[0].text):
        take_override(draft, line, None)
    elif harness:
        take_harness(draft, words)
    else:
        for flag in flags_of(words):
            take_flag(draft, flag)
    assert draft.by_knob or harness, f"nothing reads {line}"
    assert draft.problems == [], line
    return {knob: one.value for knob, one in draft.by_knob.items()}

"""Changes of knobs as lines that can be pasted, and such lines read back."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from traces.settings.assign import take
from traces.settings.bridge import is_override, take_override
from traces.settings.command import flags_of, take_flag
from traces.settings.configuration import Draft
from traces.settings.harness import take_harness
from traces.settings.knobs import Knob, Release, by_flag, knobs, release
from traces.settings.launch import BINDERS
from traces.settings.settings import Framework, Value
from traces.settings.shell import Word

NUMA: Final = "numactl --cpunodebind=N --membind=N COMMAND"
"""N: the NUMA node of the rank's GPU (Megatron-Bridge, docs/performance-guide.md)."""

_LEFT_OUT: Final = re.compile(r"\((?:leave|left) out ([^()]+)\)")
_VARIABLE: Final = re.compile(r"([A-Z][A-Z0-9_]*)=(.*)")
_BARE: Final = re.compile(r"[\w.,:/=@%+-]+")


@dataclass(frozen=True, slots=True)
class Changed:
    """What lines change: knob to value; and the lines that we do not know."""

    knobs: Mapping[str, Value]
    unknown: tuple[str, ...]


def change_of(lines: Sequence[str], framework: Framework) -> Changed:
    """Read lines as a fix prints them: flags, overrides, flags of Bridge's scripts, `NAME=value`, a launcher.

    `(leave out --flag)` sets what the flag sets to its off value: the opposite of a switch, else null.
    """
    found: dict[str, Value] = {}
    unknown: list[str] = []
    for line in lines:
        draft = Draft("")
        is_known = _take_line(draft, line.strip(), framework)
        if draft.problems or not is_known:
            unknown.append(line)
        else:
            found |= {knob: setting.value for knob, setting in draft.by_knob.items()}
    return Changed(found, tuple(unknown))


def _take_line(draft: Draft, line: str, framework: Framework) -> bool:
    """Take a line into a draft. Whether it is one of the forms we know; problems are in the draft."""
    if left_out := _LEFT_OUT.fullmatch(line):
        _leave_out(draft, left_out[1])
        return bool(draft.by_knob)
    try:
        words = shlex.split(line)
    except ValueError:
        return False
    if not words:
        return False
    if words[0] in BINDERS:
        draft.put("launcher.numa_binding", True, None)
    elif variable := _VARIABLE.fullmatch(line):
        if (knob := knobs().get(f"env.{variable[1]}")) is None:
            return False
        take(draft, knob, knob.id, variable[2].strip("'\""), None)
    elif is_override(words[0]):
        take_override(draft, line, None, None)
    elif words[0].startswith("-"):
        _take_flags(draft, tuple(Word(word, 0) for word in words), framework)
    else:
        return False
    return True


def _take_flags(draft: Draft, words: tuple[Word, ...], framework: Framework) -> None:
    if framework == "megatron_bridge":
        take_harness(draft, words, None)
        return
    for flag in flags_of(words):
        take_flag(draft, flag, None)


def _leave_out(draft: Draft, names: str) -> None:
    for name in re.findall(r"[\w-]+", names):
        if name in BINDERS:
            draft.put("launcher.numa_binding", False, None)
        elif (variable := knobs().get(f"env.{name}")) is not None:
            draft.put(variable.id, None, None)
        for knob, is_off in by_flag().get(name, ()):
            draft.put(knob.id, _off_value(knob, is_off), None)


def _off_value(knob: Knob, is_off: bool) -> Value:
    """What a knob is where its flag is left out."""
    if knob.kind == "bool":
        return is_off
    last = knob.defaults[-1][1] if knob.defaults else None
    return last if isinstance(last, tuple) else None


def can_spell(knob_id: str, framework: Framework, core_version: str | None = None) -> bool:
    """Whether a framework, at a release of Megatron-Core, has a way to say the knob."""
    knob, core = knobs().get(knob_id), release(core_version)
    if knob is None or (core is not None and not knob.is_known_in(core)):
        return False
    if knob_id.startswith("env.") or knob_id == "launcher.numa_binding":
        return True
    if framework == "megatron_bridge":
        return bool(knob.bridge)
    has_flag = core is None or (
        knob.flag_since <= core and (knob.flag_until is None or core < knob.flag_until)
    )
    return bool(knob.flag or knob.off_flag) and has_flag


def spell(
    changes: Mapping[str, Value], framework: Framework, core_version: str | None = None
) -> tuple[str, ...]:
    """Lines that make the changes, in a framework's spelling at a release; the newest where it is None.

    Raises:
        ValueError: a knob that `can_spell` says cannot be.
    """
    core = release(core_version)
    lines: dict[str, None] = {}
    for knob_id, value in changes.items():
        if not can_spell(knob_id, framework, core_version):
            raise ValueError(f"{knob_id} has no spelling there")
        lines[_line(knobs()[knob_id], value, framework, core)] = None
    return tuple(lines)


def _line(knob: Knob, value: Value, framework: Framework, core: Release | None) -> str:
    if knob.id.startswith("env."):
        name = knob.id.removeprefix("env.")
        return f"(leave out {name})" if value is None else f"{name}={_word(value)}"
    if knob.id == "launcher.numa_binding":
        return NUMA if value else "(leave out numactl)"
    if framework == "megatron_bridge":
        group, _, newest = knob.bridge.rpartition(".")
        name = knob.name_in(core) if knob.older else newest
        return f"{group}.{name}={_override(value)}" if group else f"{newest}={_override(value)}"
    return _flag_line(knob, value, core)


def _flag_line(knob: Knob, value: Value, core: Release | None) -> str:
    flag = knob.flag
    if knob.older and knob.name_in(core) != knob.id.rpartition(".")[2]:
        flag = "--" + knob.name_in(core).replace("_", "-")
    if knob.kind == "bool":
        if value:
            return flag or f"(leave out {knob.off_flag})"
        return knob.off_flag or f"(leave out {flag})"
    if value is None or value == ():
        return f"(leave out {flag})"
    if isinstance(value, tuple) and knob.kind == "int|list":
        return f'{flag} "[{",".join(str(one) for one in value)}]"'
    words = [_word(one) for one in (value if isinstance(value, tuple) else (value,))]
    return f"{flag} {' '.join(words)}"


def _override(value: Value) -> str:
    if isinstance(value, tuple):
        return f"[{','.join(_override(one) for one in value)}]"
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else _word(value)


def _word(value: Value) -> str:
    text = str(value)
    return text if _BARE.fullmatch(text) else f'"{text}"'

"""A YAML or JSON that names Megatron-LM's arguments without groups, or lists its flags as keys."""

import re
from collections.abc import Collection
from typing import Final

from traces.settings.assign import take
from traces.settings.bridge import is_override, take_path
from traces.settings.command import flags_of, take_flag
from traces.settings.configuration import Draft
from traces.settings.derive import add_defaults, add_derived
from traces.settings.knobs import Release, by_dest, knobs
from traces.settings.names import lm_flags, nearest, shown
from traces.settings.shell import Word
from traces.settings.values import Raw
from traces.settings.yaml_nodes import Document, Entry

_BRACKETS: Final = re.compile(r"\[([^\]]+)\]")
FLAG_GROUPS: Final = frozenset({"MODEL_ARGS", "ARGS", "ENV_VARS", "arguments", "args"})
"""Megatron-LM, tests/functional_tests/test_cases/*/model_config.yaml: flags and variables as keys."""


def is_flat(keys: Collection[str]) -> bool:
    """Whether outermost keys are flags, or names of Megatron-LM's arguments."""
    plain = [key for key in keys if key in FLAG_GROUPS or key.startswith("--") or _is_argument(key)]
    return len(plain) > 0 and not any(is_override(f"{key}.x=1") for key in keys if not _is_argument(key))


def _is_argument(key: str) -> bool:
    return key in by_dest() or "--" + key.replace("_", "-") in lm_flags()


def take_flat(draft: Draft, document: Document, core: Release | None) -> None:
    """Take such a file. Only a whole set of arguments leaves the rest at Megatron-LM's defaults."""
    draft.framework = "megatron_lm"
    grouped = any(key in FLAG_GROUPS for key in document.outermost())
    for entry in document.entries(2):
        group, name = entry.path[0], entry.path[-1]
        if grouped and (group not in FLAG_GROUPS or len(entry.path) == 1):
            continue  # of the test, or of a later run of it
        if group == "ENV_VARS":
            if (knob := knobs().get(f"env.{name}")) is not None:
                take(draft, knob, name, entry.raw, entry.line)
        elif name.startswith("--"):
            _take_flag(draft, name, entry, core)
        elif "." in name:
            take_path(draft, name, entry.raw, entry.line, core)
        else:
            _take_argument(draft, name, entry, core)
    is_complete = "MODEL_ARGS" in document.outermost()
    if is_complete:
        add_defaults(draft, core)
    add_derived(draft, is_complete)


def _take_flag(draft: Draft, name: str, entry: Entry, core: Release | None) -> None:
    if entry.raw is False or entry.raw is None:
        return
    words = [] if entry.raw is True else _words(entry.raw)
    line = [Word(text, entry.line) for text in (name, *words)]
    for flag in flags_of(tuple(line)):
        take_flag(draft, flag, core)


def _words(raw: Raw) -> list[str]:
    """Words as the test runner's shell cuts them, also within an entry of a list or between brackets.

    Source: Megatron-LM, tests/functional_tests/shell_test_utils/_run_training.sh.
    """
    entries = raw if isinstance(raw, list) else [raw]
    texts = [
        found[1] if (found := _BRACKETS.fullmatch(str(entry).strip())) else str(entry) for entry in entries
    ]
    return [word for text in texts for word in text.split()]


def _take_argument(draft: Draft, name: str, entry: Entry, core: Release | None) -> None:
    rows = by_dest().get(name, ())
    for knob in rows:
        if knob.dest_is_opposite and isinstance(entry.raw, bool):
            draft.put(knob.id, not entry.raw, entry.line)
        else:
            take(draft, knob, name, entry.raw, entry.line)
    if rows or _is_argument(name):
        return
    if (known := knobs().get(name)) is not None:
        take(draft, known, name, entry.raw, entry.line)
    elif not draft.is_full:
        near = nearest(name, by_dest())
        draft.problem(entry.line, f"{shown(name, near)}: no argument of Megatron-LM that we know", near)

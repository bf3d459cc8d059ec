"""The line that makes a result again, as its document tells it."""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from diagnoser.about import given_from
from heuristics.config.options import OPTIONS, option_of

Value = str | int | bool | Path | tuple[str, ...] | None


def command_line(
    command: str,
    files: Sequence[Path],
    options: Mapping[str, Value],
    about: Mapping[str, object] | None = None,
    redact: bool = True,
) -> str:
    """A line for a shell: the command, its files, the options that were given, and what was said of the run.

    An option whose value is None or False was not given; one with several values is repeated. `redact`: files
    by their base names, and a text about the run that is no known word as its placeholder
    (`--container NAME`). Control characters become spaces.
    """
    from traces.spelling import printable

    words = ["moe-diag", command, *(path_words(path, redact) for path in files)]
    for option, value in options.items():
        for one in value if isinstance(value, tuple) else (value,):
            if one is None or one is False:
                continue
            words.append(option)
            if one is not True:
                words.append(path_words(one, redact) if isinstance(one, Path) else str(one))
    words += _about(about or {}, redact)
    if not redact:
        words.append("--no-redact")
    return shlex.join(printable(word, max(len(word), 3)) for word in words)


def path_words(path: Path, redact: bool = True) -> str:
    """A path as a document may name it: its base name, or whole; bytes that are no UTF-8 are replaced."""
    name = os.fsencode(path.name or "." if redact else path).decode("utf-8", "replace")
    return f"./{name}" if name.startswith("-") else name


def _about(about: Mapping[str, object], redact: bool) -> Iterator[str]:
    from reports.result.fill.shown import given

    shown = given(given_from(about), redact)
    for field in (field for field in OPTIONS if field in about):
        kind, placeholder = OPTIONS[field].kind, OPTIONS[field].takes
        if kind is bool:
            yield option_of(field) if about[field] else f"--no-{option_of(field)[2:]}"
            continue
        if kind is list:
            for one in shown.get(field, [placeholder]):
                yield from (option_of(field), str(one))
            continue
        yield option_of(field)
        if field == "guidance":  # its words are few, and no part of the section
            yield str(about[field])
        else:
            value = shown.get(field, placeholder)
            yield ",".join(value) if isinstance(value, list) else str(value)

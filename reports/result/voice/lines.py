"""Lines to type: settings as frameworks take them, of names of our tables and of values that they
take.
"""

import shlex
from functools import cache
from typing import Final

from heuristics.config.about import OPTIONS, option_of
from traces.patterns import compiled
from traces.settings.knobs import by_harness, flag_named, knobs
from traces.settings.line_parts import LOADS, is_layout

_FLAG: Final = compiled(r"(?P<name>--?[A-Za-z][\w-]{0,80})(?: (?P<values>.+))?")
_SET: Final = compiled(r"(?:--env )?(?P<name>[A-Za-z_][\w.]{0,100})=(?P<values>.*)")
_LEFT_OUT: Final = compiled(r"\(leave out (?P<name>[\w.-]{1,100})\)")
_THEN: Final = compiled(r", then \d{1,6}$")
"""Of a value to begin with, and the one after it."""
_BARE: Final = r"(?:-?[0-9]|[A-Za-z_.,:+])[A-Za-z0-9_.,:+-]{0,120}"
_LISTED: Final = compiled(rf"(?:{_BARE})?|\[(?:{_BARE})?\]")
_WORD: Final = compiled(r"[A-Za-z0-9_.,:=+%@/#*?()\[\] -]{0,200}")


def is_setting(line: str) -> bool:
    """Whether a line sets, or leaves out, what our tables know, and to a value that a setting may
    have.
    """
    if match := _LEFT_OUT.fullmatch(line):
        return match["name"] in _settings()
    of_shell = _SET.fullmatch(line)
    match = of_shell or _FLAG.fullmatch(line)
    if not match or match["name"] not in _settings():
        return False
    first, *more = _THEN.sub("", match["values"] or "").split(" ")
    if not more:
        return is_value(first)
    # of `NAME=value word` a shell would run the word
    return of_shell is None and all(
        word.isdecimal() or word in _listed() for word in (first, *more)
    )


def is_value(word: str) -> bool:
    """Whether it may be the value of a setting as it stands in a line: a number, a word, a list,
    stages.
    """
    if LOADS.search(word):
        return False
    inner = word[1:-1] if len(word) > 1 and word[0] == word[-1] == '"' else word
    return (
        word == "TP/2"
        or _LISTED.fullmatch(inner) is not None
        or (inner != word and is_layout(inner))
    )


def is_command(line: str) -> bool:
    """Whether a line is one of this program, of plain words and names of files."""
    try:
        words = shlex.split(line)
    except ValueError:  # an open quote
        return False
    is_plain = all(_WORD.fullmatch(word) or is_layout(word) for word in words)
    return (
        words[:1] == ["moe-diag"]
        and is_plain
        and not LOADS.search(line)
        and shlex.join(words) == line
    )


@cache
def _settings() -> frozenset[str]:
    """Every name by which a line may set something: flags, paths, variables, options of ours."""
    names = {*map(option_of, OPTIONS), *by_harness()}
    for knob in knobs().values():
        names |= {knob.id, knob.id.removeprefix("env."), knob.flag, knob.off, knob.bridge}
        for name in knob.older:
            names |= {name, flag_named(name), f"{knob.bridge.rpartition('.')[0]}.{name}"}
    return frozenset(names - {""})


@cache
def _listed() -> frozenset[str]:
    """The words that a setting may take several of."""
    words = set[str]()
    for knob in knobs().values():
        if "list" in knob.kind:
            words.update(knob.choices)
    return frozenset(words)

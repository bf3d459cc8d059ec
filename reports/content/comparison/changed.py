"""What differs between two runs beside their time, what can explain something first, by names for
people.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from heuristics.comparison.alike import TELLING_TABLES
from heuristics.result.compared import Change, Compared, ComparedChange
from reports.content.blocks import Blocks, Code, Items, Span, Term, Words, words
from reports.content.comparison.difference import named
from reports.content.names import VERSION, statement, version_of
from reports.measures import words_of
from traces.spelling import counted, percent, printable

_SHOWN: Final = 3
_WIDTH: Final = 40
_WHOLE: Final = 300
_UNSAID: Final = "not recorded"
_BLOCKS: Final = "comm_blocks"


def changed(compared: Compared, everything: bool) -> Blocks:
    """What changed, what can explain something first; a short page shows that alone."""
    shown = sorted(compared.changed, key=lambda one: not one.can_explain)
    if not everything:
        shown = [one for one in shown[:_SHOWN] if one.can_explain]
    more = len(compared.changed) - len(shown)
    if shown:
        yield listed_changes([*map(partial(_changed, everything), shown)], more)
        return
    none = "no setting, version or library that both sides record."
    if more:
        none = f"{counted(more, 'change')}, none of which explains a part that differs: --full"
    yield statement(none, "What changed")


def listed_changes(lines: Sequence[Words], more: int) -> Items:
    """Changes, and how many others there are."""
    if more:
        lines = [*lines, words(f"{counted(more, 'more change')}: --full")]
    return Items(tuple(lines), "What changed")


def width_of(everything: bool) -> int:
    """How many letters of a value are shown."""
    if everything:
        return _WHOLE
    return _WIDTH


def change(name: Words, one: Change, base: Span | Words, new: Span | Words) -> Words:
    """A change as a line."""
    if one.withheld:
        return words(name, ": differs, its texts are withheld")
    return words(name, ": ", base, " -> ", new)


def _changed(everything: bool, one: ComparedChange) -> Words:
    width = width_of(everything)
    base = _value(one.what, one.base, width) if one.said_base else _UNSAID
    new = _value(one.what, one.new, width) if one.said_new else _UNSAID
    if base == new:  # alike as shortened
        base, new = plainly(one.base, width), plainly(one.new, width)
    line = words(change(_name(one), one, base, new), f" ({one.source})")
    if not everything:
        return line
    if not one.can_explain:
        return words(line, "; explains no part that differs")
    return words(line, "; can explain ", named(one.can_explain))


def _name(one: ComparedChange) -> Words:
    """A knob is code; what the trace or the log shows has a name, or a key in words."""
    if name := words_of("traced").get(one.what):
        return words(name)
    if one.source in ("configuration", "given"):
        return words(Code(one.what))
    family, _, last = one.what.partition(".")
    if family == _BLOCKS:
        return words("most blocks of a kernel of ", Term(last))
    if family == VERSION:
        return words(version_of(last))
    if family == "detected":
        return words(Term(last))
    return words(one.what.replace(".", " ").replace("_", " "))


def _value(what: str, value: object, width: int) -> Span:
    """What a side has of a knob, a version, or a figure of the trace."""
    if isinstance(value, list | tuple) and (spelled := _LISTS.get(what)):
        return printable(spelled([*map(str, value)]), _WHOLE)
    if what == "steps.source" and (by := words_of("steps_by").get(f"{value}")):
        return by
    if what.endswith("_frac") and isinstance(value, int | float):
        return Code(percent(value))
    return plainly(value, width)


def plainly(value: object, width: int) -> Code:
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        text = ", ".join(value) or "none"
    elif isinstance(value, str):
        text = value
    else:
        text = json.dumps(value, ensure_ascii=False)
    return Code(printable(text, width))


def _tables(names: Sequence[str]) -> str:
    called = {**TELLING_TABLES, **words_of("recording_table")}
    return ", ".join(called.get(name, name) for name in names) or "nothing is missing"


def reasons(dropped: Sequence[str]) -> str:
    """Steps left out by what each reason begins with: `4 hiccups, 1 partial`."""
    kinds = Counter(reason.partition(":")[0] for reason in dropped)
    plural = {"hiccup": "hiccups"}
    found = (counted(count, kind, plural.get(kind, kind)) for kind, count in sorted(kinds.items()))
    return ", ".join(found) or "none"


_LISTS: Final[dict[str, Callable[[Sequence[str]], str]]] = {
    "recorder.missing_tables": _tables,
    "steps.dropped": reasons,
}

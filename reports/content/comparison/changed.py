"""What differs between two runs beside their time, what can explain something first, by names for
people.
"""

import json
from collections import Counter
from collections.abc import Sequence
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
    shown = sorted(compared.changed, key=lambda entry: not entry.can_explain)
    if not everything:
        shown = [entry for entry in shown[:_SHOWN] if entry.can_explain]
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


def change(name: Words, entry: Change, base: Span | Words, new: Span | Words) -> Words:
    """A change as a line."""
    if entry.withheld:
        return words(name, ": differs, its texts are withheld")
    return words(name, ": ", base, " -> ", new)


def _changed(everything: bool, entry: ComparedChange) -> Words:
    width = width_of(everything)
    base = _value(entry.what, entry.base, width) if entry.said_base else _UNSAID
    new = _value(entry.what, entry.new, width) if entry.said_new else _UNSAID
    if base == new:  # alike as shortened
        base, new = plainly(entry.base, width), plainly(entry.new, width)
    line = words(change(_name(entry), entry, base, new), f" ({entry.source})")
    if not everything:
        return line
    if not entry.can_explain:
        return words(line, "; explains no part that differs")
    return words(line, "; can explain ", named(entry.can_explain))


def _name(entry: ComparedChange) -> Words:
    """A knob is code; what the trace or the log shows has a name, or a key in words."""
    if name := words_of("traced").get(entry.what):
        return words(name)
    if entry.source in ("configuration", "given"):
        return words(Code(entry.what))
    family, _, last = entry.what.partition(".")
    if family == _BLOCKS:
        return words("most blocks of a kernel of ", Term(last))
    if family == VERSION:
        return words(version_of(last))
    if family == "detected":
        return words(Term(last))
    return words(entry.what.replace(".", " ").replace("_", " "))


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
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
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
    counts = (counted(count, kind, plural.get(kind, kind)) for kind, count in sorted(kinds.items()))
    return ", ".join(counts) or "none"


_LISTS: Final = {
    "recorder.missing_tables": _tables,
    "steps.dropped": reasons,
}

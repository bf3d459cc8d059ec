"""What differs between two runs: what can explain something, and what limits the comparison."""

import json
from collections.abc import Iterator
from typing import Final

from heuristics.result.compared import Compared, ComparedChange, Difference
from reports.content.blocks import Code, Items, Sentence, Span, Term, Words, words
from reports.content.comparison.rows import named
from reports.content.wording import sentence
from traces.spelling import counted, percent, printable

_CHANGED: Final = 3
_LIMITS: Final = 4
_WIDTH: Final = 40
_WHOLE: Final = 300
_GRAVE: Final = ("no", "with_differences", "yes")


def changed(compared: Compared, everything: bool) -> Iterator[Items | Sentence]:
    """What changed, what can explain something first; a short page shows that alone."""
    telling = [one for one in compared.changed if one.can_explain]
    others = [one for one in compared.changed if not one.can_explain]
    shown = (*telling, *others) if everything else telling[:_CHANGED]
    more = len(compared.changed) - len(shown)
    lines = [_changed(one, everything) for one in shown]
    if shown and more:
        lines.append(words(f"{counted(more, 'more change')}: --full"))
    if lines:
        yield Items(tuple(lines), "What changed")
    else:
        none = f"{counted(more, 'change')}, none of which explains a part that differs: --full"
        yield Sentence((none if more else "nothing that either side records.",), "What changed")


def _changed(one: ComparedChange, everything: bool) -> Words:
    line = words(_name(one), ": ", *_values(one, everything), f" ({one.source})")
    if not everything:
        return line
    rows = named(one.can_explain)
    return words(line, *(("; can explain ", rows) if rows else ("; explains no part that differs",)))


def _name(one: ComparedChange) -> Span:
    """A knob is code; what the trace or the log shows has a name, or a key in words."""
    if one.source in ("configuration", "given"):
        return Code(one.what)
    family, _, last = one.what.partition(".")
    return Term(last) if family == "detected" else one.what.replace(".", " ").replace("_", " ")


def _values(one: ComparedChange, everything: bool) -> Words:
    if one.withheld:
        return ("differs, its texts are withheld",)
    width = _WHOLE if everything else _WIDTH
    base = value_text(one.what, one.base) if one.said_base else None
    new = value_text(one.what, one.new) if one.said_new else None
    return words(_value(base, width), " -> ", _value(new, width))


def _value(text: str | None, width: int) -> Span:
    return "not recorded" if text is None else Code(printable(text, width))


def value_text(what: str, value: object) -> str:
    """What a side has of a knob, a version, or a figure of the trace."""
    if what.endswith("_frac") and isinstance(value, int | float):
        return percent(value)
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return ", ".join(value) or "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def limits(compared: Compared, everything: bool) -> Iterator[Items | Sentence]:
    """What limits or forbids the comparison, the gravest first; a short page names what limits it alone."""
    found = sorted(compared.comparable.differences, key=lambda one: _GRAVE.index(one.state))
    forbids = [one for one in found if one.state == "no"]
    others = [one for one in found if one.state != "no"]
    shown = found if everything else forbids[:_LIMITS]
    if shown:
        yield Items(
            tuple(map(_limit, shown)), "Why not comparable" if forbids else "Limits of this comparison"
        )
    if others and not everything:
        named = ", ".join(one.what for one in others)
        differ = "" if forbids else f" differ{'s' if len(others) == 1 else ''}"
        yield Sentence((f"{named}{differ}. Reasons: --full",), "Also differ" if forbids else "Limits")


def _limit(one: Difference) -> Words:
    values = "" if one.base == one.new else f": {one.base} -> {one.new}"
    return words(f"{one.what}{values}. {sentence(one.because)}")

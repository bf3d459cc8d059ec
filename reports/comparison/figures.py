"""How differences, counts and values are written, alike in text and markdown."""

from __future__ import annotations

import json
from typing import Any

from reports.words import milliseconds, percent, printable

_TEXT_WIDTH = 1000
_WORD_WIDTH = 60
_NAMES = 4


def harmless(value: Any) -> Any:
    """A document whose every text can do nothing to a terminal, and has no word too long for its lines."""
    if isinstance(value, dict):
        return {key: harmless(part) for key, part in value.items()}
    if isinstance(value, list):
        return [harmless(part) for part in value]
    if isinstance(value, str):
        return " ".join(printable(word, _WORD_WIDTH) for word in printable(value, _TEXT_WIDTH).split(" "))
    return value


def exact(ns: int) -> str:
    """A difference in ms with all six decimals, so that printed parts add up: `+4.120000`."""
    return f"+{milliseconds(ns)}" if ns > 0 else milliseconds(ns)


def signed(ns: int) -> str:
    """A difference in ms to the microsecond: `+4.120`."""
    return f"{ns / 1e6:+,.3f}" if ns else "0.000"


def unsigned(ns: int | None) -> str:
    """A duration in ms to the microsecond: `42.038`."""
    return "not told" if ns is None else f"{ns / 1e6:,.3f}"


def signed_percent(frac: float) -> str:
    """A relative difference: `+9.8 %`; one of under 0.1 % has no sign."""
    said = percent(abs(frac))
    return said if frac == 0 or said.startswith("<") else f"{'-' if frac < 0 else '+'}{said}"


def share(frac: float | None) -> str:
    """A row's part of all that moved: negative where the row got shorter, empty where not told."""
    return "" if frac is None else f"-{percent(-frac)}" if frac < 0 else percent(frac)


def added_share(rows: list[dict[str, Any]]) -> float | None:
    """The share of several rows, without the last digits that adding floats leaves; None where not told."""
    parts = [row["share_frac"] for row in rows]
    return None if None in parts else round(sum(parts), 9) or 0.0


def per_step(count: float) -> str:
    """A number of activities per step: `120`, `0.5`."""
    return "<0.01" if 0 < count < 0.005 else f"{count:,.2f}".rstrip("0").rstrip(".")


def grid(blocks: list[int] | None) -> str:
    """Blocks of a launch: `132 x 1 x 1`; empty where not told."""
    return " x ".join(map(str, blocks or ()))


def listed(names: list[str]) -> str:
    """The first names, and how many more there are."""
    more = len(names) - _NAMES
    return ", ".join(names[:_NAMES]) + (f" and {more} more" if more > 0 else "")


def value_words(what: str, value: Any, said: bool) -> str:
    """What one side says of a knob, a version, or a figure of the trace."""
    if not said:
        return "not said"
    if what.endswith("_frac") and isinstance(value, int | float):
        return percent(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def capital(sentence: str) -> str:
    """A sentence that ends with a full stop and begins with a capital, unless with the name of a knob."""
    first = sentence.partition(" ")[0]
    is_name = "_" in first or "." in first
    return stopped(sentence if is_name else sentence[:1].upper() + sentence[1:])


def stopped(sentence: str) -> str:
    """A sentence with one full stop, or the question mark that it has."""
    return sentence if sentence.endswith("?") else sentence.rstrip(".") + "."

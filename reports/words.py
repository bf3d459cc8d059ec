"""How numbers and foreign names are written, alike in every format for people."""

from __future__ import annotations

import unicodedata

from traces.steps.selection import seconds

__all__ = ["milliseconds", "percent", "printable", "seconds"]


def milliseconds(time_ns: int) -> str:
    """A duration in ms with all six decimals, so that printed parts add up: `3,408.380989`."""
    sign, rest = ("-", -time_ns) if time_ns < 0 else ("", time_ns)
    return f"{sign}{rest // 10**6:,}.{rest % 10**6:06d}"


def percent(frac: float) -> str:
    """A share with one decimal. A share that is not zero never reads 0.0 %, nor one below all 100.0 %."""
    if 0 < frac < 0.0005:
        return "<0.1 %"
    if 0.9995 <= frac < 1:
        return ">99.9 %"
    return f"{frac * 100:.1f} %"


def printable(name: str, width: int) -> str:
    """A foreign name made harmless: no cursor moves, line breaks or turned reading; cut in the middle."""
    clean = "".join(" " if unicodedata.category(char)[0] in "CZ" else char for char in name)
    if len(clean) <= width:
        return clean
    head = (width - 3) * 2 // 3
    return clean[:head] + "..." + clean[len(clean) - (width - 3 - head) :]

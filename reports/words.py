"""How foreign names are written, alike in every format for people, and shares where one decimal is kept."""

import unicodedata


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

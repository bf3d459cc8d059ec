"""The limit of a gate as it is typed."""

import re
from decimal import Decimal
from typing import Final

from traces.errors import UsageError

_PERCENT: Final = re.compile(r"\s*([0-9]{1,6}(?:\.[0-9]{1,6})?)\s*%\s*", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})?", re.ASCII)


def gate_frac(text: str) -> float:
    """A typed `3%` -> 0.03. The sign is part of it: 3 and 0.03 could be meant either way.

    Raises `UsageError` for anything else, with what to type.
    """
    if match := _PERCENT.fullmatch(text):
        return float(Decimal(match[1]) / 100)
    if _NUMBER.fullmatch(text):
        as_part = f"{100 * Decimal(text):f}".rstrip("0").rstrip(".")
        meant = f"{text}%" if Decimal(text) >= 1 else f"{as_part}% or --gate {text}%"
        raise UsageError(f"--gate {text} is given without its sign. Type --gate {meant}")
    raise UsageError(f"--gate {text!r} is no percentage. Type one such as --gate 3%")

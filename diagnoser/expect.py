"""What the user expects of a fix, as it is typed: `com-3=6ms`, `com-3=5%`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from traces.errors import UsageError

if TYPE_CHECKING:
    from heuristics.comparison.expected import Prediction

_EXPECTED: Final = re.compile(
    r"\s*(?P<fix>[A-Za-z]+-[0-9]+)\s*=\s*(?P<number>[0-9]{1,9}(?:\.[0-9]{1,6})?)\s*(?P<unit>us|ms|s|%)\s*",
    re.ASCII,
)
_NS: Final = {"us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


def predictions(texts: Iterable[str]) -> tuple[Prediction, ...]:
    """Predictions of a step's gain, one a fix. Raises `UsageError` with what to type."""
    from heuristics.comparison.expected import Prediction
    from heuristics.fixes.catalogue import CATALOGUE

    found: dict[str, Prediction] = {}
    for text in texts:
        match = _EXPECTED.fullmatch(text)
        if match is None:
            raise UsageError(
                f"--expect {text!r} is no fix with its gain. Type one such as --expect com-3=6ms"
            )
        fix, number = match["fix"].upper(), Decimal(match["number"])
        if fix not in CATALOGUE:
            near = get_close_matches(fix, CATALOGUE, n=1, cutoff=0.0)[0]
            raise UsageError(
                f"--expect {text}: there is no fix {fix}. The nearest is {near}: moe-diag explain {near}"
            )
        if fix in found:
            raise UsageError(f"--expect names {fix} twice. Give one gain a fix")
        is_part = match["unit"] == "%"
        found[fix] = Prediction(
            fix,
            None if is_part else round(number * _NS[match["unit"]]),
            float(number / 100) if is_part else None,
        )
    return tuple(found.values())

"""A suspect explains rows of its comparison, as much as these move, and its title goes their way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from heuristics.result.compared import Compared

_LATER: Final = re.compile(r"take[s]? longer|is slower|are slower|is later|costs the host more than")
_EARLIER: Final = re.compile(r"take[s]? less|is faster|are faster|is earlier")


def contradictions(compared: Compared) -> Iterator[str]:
    """A line for every suspect that its own rows contradict."""
    for suspect in compared.suspects:
        rows = [row for row in compared.attribution if row.row in suspect.rows]
        names, title, explains_ns = [row.row for row in rows], suspect.title, suspect.explains_ns
        if sorted(names) != sorted(suspect.rows) or "noise" in names or not names:
            yield f"{title}: its rows {suspect.rows} are none of the comparison"
        if abs(sum(row.delta_ns for row in rows)) < abs(explains_ns):
            yield f"{title}: what it explains is more than the sum of its rows"
        if _LATER.search(title) and explains_ns <= 0:
            yield f"{title}: longer, and {explains_ns} ns"
        if _EARLIER.search(title) and explains_ns >= 0:
            yield f"{title}: less, and {explains_ns} ns"

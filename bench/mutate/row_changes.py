"""Every small wrong row that a table could have: a row removed, a condition negated, a number doubled."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bench.mutate.mutant import Mutant

_HEADER = re.compile(r"^(\[\[?)([\w.\"-]+)\]\]?[ \t]*$", re.MULTILINE)
_INLINE = re.compile(r"^  \{.{1,2000}\},[ \t]*\n", re.MULTILINE)
_CONDITION = re.compile(r"\b(?:feature|needs|when|unless|active|forbidden|observed) = \"([^\"\n]{1,1000})\"")
_NUMBER = re.compile(r"^(\w+) = ([0-9][0-9_.]{0,30})[ \t]*$", re.MULTILINE)


def changes(file: str, source: str) -> Iterator[Mutant]:
    """The mutants of one table, in the order of kinds."""

    def mutant(start: int, end: int, text: str, kind: str) -> Mutant:
        return Mutant(file, source.count("\n", 0, start) + 1, start, end, text, kind)

    for start, end in _rows(source):
        yield mutant(start, end, "", "row")
    for found in _INLINE.finditer(source):
        yield mutant(found.start(), found.end(), "", "row")
    for found in _CONDITION.finditer(source):
        yield mutant(found.start(1), found.end(1), f"not ({found[1]})", "condition")
    for found in _NUMBER.finditer(source):
        twice = 2 * float(found[2].replace("_", ""))
        if twice:
            yield mutant(found.start(2), found.end(2), f"{twice:g}", "number")


def _rows(source: str) -> Iterator[tuple[int, int]]:
    """From each header to the next that is no part of it."""
    headers = list(_HEADER.finditer(source))
    for place, header in enumerate(headers):
        inner = f"{header[2]}."
        later = [one for one in headers[place + 1 :] if not one[2].startswith(inner)]
        yield header.start(), later[0].start() if later else len(source)

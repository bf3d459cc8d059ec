"""A mutant: one stretch of one file, and what stands there in its place."""

from __future__ import annotations

import difflib
import hashlib
from dataclasses import dataclass

from tests.places import ROOT


@dataclass(frozen=True)
class Mutant:
    """One change of one file: characters `start` to `end` of its text become `text`; `line` counts from 1."""

    file: str
    line: int
    start: int
    end: int
    text: str
    kind: str

    @property
    def key(self) -> str:
        """Eight hex digits that the same change of the same text has on every machine."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:8]

    def applied(self, source: str) -> str:
        """The text of the file with the change in it."""
        return source[: self.start] + self.text + source[self.end :]

    def patch(self) -> str:
        """The change as a unified diff with one line around it."""
        source = (ROOT / self.file).read_text(encoding="utf-8")
        before, after = source.splitlines(), self.applied(source).splitlines()
        names = f"a/{self.file}", f"b/{self.file}"
        return "\n".join(difflib.unified_diff(before, after, *names, n=1, lineterm=""))

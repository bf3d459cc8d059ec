"""The lines that we know: which texts stand in them, and which of them a line of a log is.

Those that several rules print, or none, stand in `known_lines.toml`; a message of one rule stands
in its row.
"""

from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from typing import Final

from traces.patterns import Pattern
from traces.texts import Texts
from traces.toml_tables import TableRow, read_keyed
from traces.training_log.log import Message

RAISED: Final = "Error: "
"""Stands before the message of every exception."""


class KnownLine(TableRow):
    """A line by its texts, of which one stands in it, and the files and versions that print it.

    `key`: a literal in each such line, searched for first. Groups of `says` match numbers or listed
    words.
    """

    texts: Texts
    source: str
    id: str
    key: str = RAISED
    says: Pattern | None = None


@cache
def shared_lines() -> tuple[KnownLine, ...]:
    """Those that are no single rule's, in the file's order."""
    return tuple(read_keyed("traces.training_log", "known_lines.toml", KnownLine).values())


class KnownLines:
    """Lines to look for. `by_id`: each by its id, in order."""

    def __init__(self, lines: Iterable[KnownLine]) -> None:
        self.by_id = {line.id: line for line in lines}
        self._by_key = defaultdict[str, list[tuple[str, KnownLine]]](list)
        for line in self.by_id.values():
            for text in line.texts:
                self._by_key[line.key].append((text, line))

    def words(self) -> tuple[bytes, ...]:
        return tuple(map(str.encode, self._by_key))

    def message(self, number: int, text: str) -> Message | None:
        """The line as the first known one; None where it is none."""
        for key, texts in self._by_key.items():
            if key not in text:
                continue
            tail = text[text.index(key) :] if key == RAISED else text
            for words, known in texts:
                if words in tail:
                    return Message(known.id, number, _named_groups(known, text))
        return None

    def is_raised(self, message: Message) -> bool:
        return self.by_id[message.id].key == RAISED


def _named_groups(known: KnownLine, text: str) -> dict[str, str]:
    match = known.says.search(text) if known.says else None
    if not match:
        return {}
    return {name: word for name, word in match.groupdict().items() if word}

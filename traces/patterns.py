"""Patterns of texts: the one home of regular expressions, for all packages.

They run on RE2 (github.com/google/re2), an automaton: a search costs what the text is long, whoever
wrote it. Python's own `re` tries again from every place and in every way, so that the name of a
kernel with 40 underscores took it 37 seconds (measured 2026-11-28). To find all places is as many
searches, of which none may look far beyond its end: `tests/whole/test_linear_patterns.py` holds
that.

The price is its grammar: no lookaround, no reference back to a group, no repeat above 1,000; `$` is
the end of the text alone; `\\w`, `\\d`, `\\s` and `\\b` know ASCII only, beside which `LETTERS` and
`BLANKS` are for what people write. Flags stand in the pattern: `(?i)`, `(?s)`, `(?m)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

import re2  # type: ignore[import-untyped]  # comes without types: what it gives is typed here

T = TypeVar("T")

LETTERS: Final = r"\pL\pM\pN"
"""Letters, their marks and digits of every script, to be put into a class."""
BLANKS: Final = r"\s\v\x1c-\x1f\x{85}\pZ"
"""Spaces of every script and ends of lines, to be put into a class."""


_MOST_DIGITS: Final = 18


def whole_number(text: str) -> int | None:
    """The number that a text of digits alone says; None where it is no such text, or 64 bits may
    not hold it.

    `str.isdigit` knows more digits than `int` does, and `int` refuses over 4,300 of them.
    """
    if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS:
        return int(text)
    return None


def numbers_in(text: str) -> tuple[int, ...]:
    """Every run of digits as a number, in order: the parts of a release, the entries of a list."""
    return tuple(map(int, compiled(r"\d+").findall(text)))


class WrongPattern(ValueError):
    """A text that is no pattern; the message says why."""


class Match:
    """Where a pattern was found. A group that took no part is None."""

    __slots__ = ("_match", "_names", "_text")

    def __init__(self, text: str, match: Any, names: dict[str, int]) -> None:
        self._text, self._match, self._names = text, match, names

    def __getitem__(self, group: int | str) -> str | Any:
        start, end = self.span(group)
        if start < 0:
            return None
        return self._text[start:end]

    def groups(self) -> tuple[str | Any, ...]:
        return tuple(self[place + 1] for place in range(self._match.re.groups))

    def groupdict(self) -> dict[str, str | Any]:
        return {name: self[place] for name, place in self._names.items()}

    def span(self, group: int | str = 0) -> tuple[int, int]:
        """Begin and end of a group in the text; -1 where it took no part."""
        return self._match.span(group if isinstance(group, int) else self._names[group])

    def start(self, group: int | str = 0) -> int:
        return self.span(group)[0]

    def end(self, group: int | str = 0) -> int:
        return self.span(group)[1]


class Pattern:
    """A compiled pattern, with the names that `re` gives what is asked of one.

    Raises `WrongPattern` where the text is none.
    """

    __slots__ = ("_engine", "_names", "text")

    def __init__(self, text: str) -> None:
        options = re2.Options()
        options.log_errors = (
            False  # an error is an exception of ours, and never a line of a library
        )
        self.text = text
        try:
            self._engine = re2.compile(_encodable(text), options)
        except re2.error as error:
            message = error.args[0] if error.args else ""
            raise WrongPattern(
                message.decode("utf-8", "replace") if isinstance(message, bytes) else message
            ) from None
        self._names = dict(sorted(self._engine.groupindex.items(), key=lambda group: group[1]))

    def __repr__(self) -> str:
        return f"Pattern({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __reduce__(self) -> tuple[type[Pattern], tuple[str]]:
        return Pattern, (self.text,)

    def search(self, text: str) -> Match | None:
        """The first place where it is found."""
        return self._as_match(text, self._engine.search(_spelled(text)))

    def match(self, text: str) -> Match | None:
        """Where the text begins with it."""
        return self._as_match(text, self._engine.match(_spelled(text)))

    def fullmatch(self, text: str) -> Match | None:
        """Where the whole text is it."""
        return self._as_match(text, self._engine.fullmatch(_spelled(text)))

    def finditer(self, text: str) -> Iterator[Match]:
        """Every place, none within another."""
        for match in self._engine.finditer(_spelled(text)):
            yield Match(text, match, self._names)

    def findall(self, text: str) -> list[str]:
        """The text of its only group at every place, or of all of it where it has none."""
        return [match[self._engine.groups] or "" for match in self.finditer(text)]

    def sub(self, new: str | Callable[[Match], str], text: str) -> str:
        """The text with something else at every place: a text as it stands, or what a function
        gives.
        """
        pieces, end = list[str](), 0
        for match in self.finditer(text):
            start, stop = match.span()
            pieces += (text[end:start], new if isinstance(new, str) else new(match))
            end = stop
        return "".join((*pieces, text[end:]))

    def split(self, text: str) -> list[str]:
        """What stands between the places, with the text of each group in between."""
        pieces, end = list[str](), 0
        for match in self.finditer(text):
            pieces += (text[end : match.start()], *(group or "" for group in match.groups()))
            end = match.end()
        return [*pieces, text[end:]]

    def _as_match(self, text: str, match: Any) -> Match | None:
        if match is None:
            return None
        return Match(text, match, self._names)


def _spelled(text: str) -> bytes | str:
    """A text as the engine takes it: where it is ASCII as bytes, so that it need not count
    characters.
    """
    if text.isascii():
        return text.encode()
    return _encodable(text)


def _encodable(text: str) -> str:
    """A text, as long as before, in which `?` stands for half a character, which has no spelling.

    The name of a file that is no UTF-8 has such, and JSON may.
    """
    return text.encode("utf-8", "replace").decode()


_COMPILED: Final[dict[str, Pattern]] = {}


def compiled(text: str) -> Pattern:
    """The pattern of the product, or of one of its tables, that a text is; the same for the same
    text.

    `tests/whole/test_linear_patterns.py` holds how long each one takes. Raises `WrongPattern`.
    """
    if text not in _COMPILED:
        _COMPILED[text] = Pattern(text)
    return _COMPILED[text]


_OF_BYTES: Final[dict[bytes, re.Pattern[bytes]]] = {}


def of_bytes(text: bytes) -> re.Pattern[bytes]:
    """A pattern of a large file's bytes, by Python's own `re`: only for what the same test finds as
    linear.

    `re` finds the last border of events in 8 MB from their end, in 9 us; RE2, which begins at the
    front, takes 23 ms, and 186 where a group is asked for (the largest trace of Kineto at hand,
    2026-11-28).
    """
    return _OF_BYTES.setdefault(text, re.compile(text))


Here = re.Match[str]
HerePattern = re.Pattern[str]
_AT_PLACES: Final[dict[str, HerePattern]] = {}


def at_places(text: str) -> HerePattern:
    """A pattern that a reader asks from place to place whether its text goes on so: by Python's own
    `re`.

    Of 300 kB that are cut into words, RE2 takes 20 s: each question has the price of a whole text.
    The same test has each of these read such texts from place to place.
    """
    return _AT_PLACES.setdefault(text, re.compile(text, re.ASCII))


def compiled_rows(*rows: tuple[T, str]) -> tuple[tuple[T, Pattern], ...]:
    """A table of what a text is, each with the pattern that it then has. Raises `WrongPattern`."""
    return tuple((meaning, compiled(text)) for meaning, text in rows)


def first_found(rows: Iterable[tuple[T, Pattern]], text: str) -> T | None:
    """What the first row says whose pattern is found in a text; None where none is."""
    for meaning, pattern in rows:
        if pattern.search(text):
            return meaning
    return None


def literal(text: str) -> str:
    """The pattern of a text that stands for itself."""
    return re2.escape(_encodable(text))


def unlike(word: str) -> str:
    """The pattern of what stands where a word does not: a part of its begin, and then another
    letter.
    """
    rest = unlike(word[1:]) if len(word) > 1 else ""
    if rest:
        return f"(?:[^{word[0]}]|$|{word[0]}{rest})"
    return f"(?:[^{word[0]}]|$)"


def starred(text: str) -> Pattern:
    """The pattern of a name in which `*` stands for anything, as the tables of settings and rows
    have it.
    """
    return compiled("(?s)" + ".*".join(map(literal, text.split("*"))))

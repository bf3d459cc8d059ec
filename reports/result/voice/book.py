"""The sentences that this release says, each with its gaps, and whether a text is one of them or several."""

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from typing import Final, NamedTuple

from reports.result.voice.lines import is_setting, is_value
from reports.result.voice.phrases import GAP, phrases
from reports.result.voice.terms import VALUES, fills, is_term, tokens
from traces.limits import Limit
from traces.patterns import compiled, literal
from traces.settings.line_parts import LOADS, UNSAFE, is_layout

LONGEST: Final = Limit(3_000, "characters", "ours: twice the longest sentence of any result that was seen")
MOST_PARTS: Final = Limit(60, "parts of one text", "ours: twice those of any result that was seen")
_WORD: Final = compiled(r"[A-Za-z]+")
_SMALL: Final = frozenset(
    "a an and as at by for from in is it no not of on or so the to with x".split()  # noqa: SIM905
)
"""Words that alone make no sentence of ours."""
_BETWEEN: Final = compiled(r"; |, (?:and |or |with |which |then )?|\. |: | (?:and|or|in|with|->|>=) ")
"""What joins sentences of ours, or names and values, to one text."""
_BRACKET: Final = " ("
_OPENS: Final = compiled(literal(_BRACKET))
_LOCAL_NODE: Final = compiled(r"\$\(\(SLURM_LOCALID/\d{1,3}\)\)")
"""Which CPUs are near a rank: the one thing that a shell is to compute in a line of ours."""
_UNKNOWN: Final = compiled(r" (?:not known|not set|another value)\b")


class Sentence(NamedTuple):
    """A sentence with gaps, as the pieces between them."""

    pieces: tuple[str, ...]

    def gaps(self, text: str) -> list[str] | None:
        """What a text has in the gaps, from left to right; None where it is not this sentence."""
        first, *middle, last = self.pieces
        start, end = len(first), len(text) - len(last)
        if end < start or not text.startswith(first) or not text.endswith(last):
            return None
        found = []
        for piece in middle:
            place = text.find(piece, start, end)
            if place < 0:
                return None
            found.append(text[start:place])
            start = place + len(piece)
        return [*found, text[start:end]]


class Book:
    """What is said, by the longest word of each sentence, so that few are tried for a text."""

    def __init__(self, said: Iterable[str]) -> None:
        self.whole: set[str] = {*VALUES}
        self.words: set[str] = {one.lower() for one in VALUES}
        self._by_word: dict[str, list[Sentence]] = {}
        for one in dict.fromkeys(said):
            pieces = tuple(one.split(GAP))
            words = [word for piece in pieces for word in _WORD.findall(piece)]
            self.words |= {word.lower() for piece in pieces for word in (*words, *tokens(piece))}
            if len(pieces) == 1:
                self.whole.add(one)
            elif telling := [word for word in words if word.lower() not in _SMALL]:
                self._by_word.setdefault(max(telling, key=len).lower(), []).append(Sentence(pieces))

    def says(self, text: str, names: Collection[str] = ()) -> bool:
        """Whether a text is of ours: a sentence, or several of them one after the other.

        `names`: of the files that the result is of.
        """
        if len(text) > LONGEST.value:
            return False
        if not text or self._is_one(text, names):
            return True
        ends = _borders(text)
        if len(ends) > MOST_PARTS.value:
            return False
        starts = [0]
        for end, after in ends:
            if any(self._is_one(text[start:end], names) for start in starts):
                starts.append(after)
        return starts[-1] == len(text)

    def types(self, line: str) -> bool:
        """Whether a line to type is of ours: settings, stages of a pipeline, or a line of our tables."""
        if is_setting(line) or is_layout(line):
            return True
        bare = _LOCAL_NODE.sub("0", line)
        is_safe = len(line) <= LONGEST.value and UNSAFE.search(bare) is None and LOADS.search(bare) is None
        return is_safe and (line in self.whole or self._is_said(bare, is_value))

    def _is_one(self, text: str, names: Collection[str]) -> bool:
        def may_fill(gap: str) -> bool:
            return fills(gap, self.words, names)

        if text.startswith(_BRACKET) and text.endswith(")"):
            return may_fill(text)
        for form in _forms(text):
            if form in self.whole or is_setting(form) or self._is_said(form, may_fill):
                return True
        name, _, said = text.partition(" ")
        if is_term(name, self.words, names) and (said in self.whole or self._is_said(said, may_fill)):
            return True  # what is said of a name: `--no-such-flag takes a whole number`
        return self._are_terms(text, names)

    def _is_said(self, text: str, may_fill: Callable[[str], bool]) -> bool:
        for word in {found.lower() for found in _WORD.findall(text)}:
            for sentence in self._by_word.get(word, ()):
                gaps = sentence.gaps(text)
                if gaps is not None and all(map(may_fill, gaps)):
                    return True
        return False

    def _are_terms(self, text: str, names: Collection[str]) -> bool:
        """Names and figures alone, or what a sentence or a name is followed by: `several experts on`."""
        rest = _UNKNOWN.sub(" null", text)
        while rest and rest not in self.whole and not is_setting(rest):
            rest, _, last = rest.rpartition(" ")
            if not (is_term(last, self.words, names) or last in self.whole):
                return False
        return True


def _borders(text: str) -> list[tuple[int, int]]:
    """Where a part of a text may end, and where the next begins."""
    found = [one.span() for one in _BETWEEN.finditer(text)]
    found += [(one.start(), one.start()) for one in _OPENS.finditer(text) if one.start()]
    return [*sorted(found), (len(text), len(text))]


def _forms(text: str) -> Iterator[str]:
    """A text as it stands, and as it begins in the middle of a sentence or ends one."""
    yield text
    yield text[:-1] if text.endswith(".") else f"{text}."
    if text:
        yield text[0].lower() + text[1:]
        yield text[0].upper() + text[1:]


@cache
def book() -> Book:
    """All that this release says."""
    return Book(phrases())

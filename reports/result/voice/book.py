"""The sentences that this release says, each with its gaps, and whether a text is one of them or
several.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from typing import Final, NamedTuple

from reports.result.voice.lines import is_setting, is_value
from reports.result.voice.phrases import GAP, phrases
from reports.result.voice.terms import VALUES, fills, is_term, tokens
from traces.limits import Limit
from traces.patterns import compiled, literal
from traces.settings.line_parts import LOADS, UNSAFE, is_layout

LONGEST: Final = Limit(
    3_000, "characters", "ours: twice the longest sentence of any result that was seen"
)
MOST_PARTS: Final = Limit(60, "parts of one text", "ours: twice those of any result that was seen")
MOST_TRIES: Final = Limit(
    40_000, "parts of texts", "ours: ten times those of any result that was seen"
)
_WORD: Final = compiled(r"[A-Za-z]+")
_SMALL: Final = frozenset(
    "a an and as at by for from in is it no not of on or so the to with x".split()  # noqa: SIM905
)
"""Words that alone make no sentence of ours."""
_BETWEEN: Final = compiled(
    r"; |, (?:and |or |with |which |then )?|\. |: | (?:and|or|in|with|->|>=) "
)
"""What joins sentences of ours, or names and values, to one text."""
_PROSE: Final = compiled(r"[a-z]{3,}")
_UNIT: Final = compiled(r"(\d) (%|(?:ns|us|ms|KiB|MB|MiB|GB|GiB)\b)")
_FEW: Final = 3
"""As many words in a row say nothing that a sentence of ours does not."""
_DEEPEST: Final = 2
_LONGEST_NAME: Final = 2
_AROUND: Final = " ,;:."
_BRACKET: Final = " ("
_OPENS: Final = compiled(literal(_BRACKET))
_LOCAL_NODE: Final = compiled(r"\$\(\(SLURM_LOCALID/\d{1,3}\)\)")
"""Which CPUs are near a rank: the one thing that a shell is to compute in a line of ours."""
_UNKNOWN: Final = compiled(r" (?:not known|not set|another value)\b")


class GappedSentence(NamedTuple):
    """A sentence with gaps, as the pieces between them."""

    pieces: tuple[str, ...]

    def gaps(self, text: str) -> list[str] | None:
        """What a text has in the gaps, from left to right; None where it is not this sentence."""
        first, *middle, last = self.pieces
        start, end = len(first), len(text) - len(last)
        if end < start or not text.startswith(first) or not text.endswith(last):
            return None
        filled = []
        for piece in middle:
            place = text.find(piece, start, end)
            if place < 0:
                return None
            filled.append(text[start:place])
            start = place + len(piece)
        return [*filled, text[start:end]]


class Book:
    """What is said, by the longest word of each sentence, so that few are tried for a text."""

    def __init__(self, sentences: Iterable[str]) -> None:
        self.whole = {*VALUES}
        self.words = {*map(str.lower, VALUES)}
        self._by_word = defaultdict[str, list[GappedSentence]](list)
        for sentence in dict.fromkeys(sentences):
            pieces, bare = tuple(sentence.split(GAP)), sentence.replace(GAP, " ")
            words = _WORD.findall(bare)
            self.words.update(map(str.lower, (*words, *tokens(bare))))
            if len(pieces) == 1:
                self.whole.add(sentence)
            elif telling := [word for word in words if word.lower() not in _SMALL]:
                self._by_word[max(telling, key=len).lower()].append(GappedSentence(pieces))

    def types(self, line: str) -> bool:
        """Whether a line to type is of ours: settings, stages of a pipeline, or a line of our
        tables.
        """
        if is_setting(line) or is_layout(line):
            return True
        bare = _LOCAL_NODE.sub("0", line)
        is_safe = (
            len(line) <= LONGEST.value
            and UNSAFE.search(bare) is None
            and LOADS.search(bare) is None
        )
        return is_safe and (line in self.whole or self.fits(bare, is_value))

    def fits(self, text: str, may_fill: Callable[[str], bool]) -> bool:
        """Whether a text is one of the sentences with gaps, and what stands in each may stand
        there.
        """
        for word in dict.fromkeys(map(str.lower, _WORD.findall(text))):
            for sentence in self._by_word.get(word, ()):
                gaps = sentence.gaps(text)
                if gaps is not None and all(map(may_fill, gaps)):
                    return True
        return False


class Reading:
    """The texts of a result held against the book.

    What stands in a gap of a sentence is a few words, or a text of ours again.

    `names`: of the files that the result is of.
    """

    def __init__(self, book: Book, names: Collection[str]) -> None:
        self._book, self._names = book, names
        self._tried = self._depth = 0

    @property
    def is_over(self) -> bool:
        """Whether more was tried than any result of ours asks for: every other text is then none of
        ours.
        """
        return self._tried >= MOST_TRIES.value

    def says(self, text: str) -> bool:
        """Whether a text is of ours: a sentence, or several of them one after the other."""
        if len(text) > LONGEST.value:
            return False
        if not text or self._is_one(text):
            return True
        ends = _borders(text)
        if len(ends) > MOST_PARTS.value:
            return False
        starts = [0]
        for end, after in ends:
            if any(self._is_one(text[start:end]) for start in starts):
                starts.append(after)
        return starts[-1] == len(text)

    def _may_fill(self, gap: str) -> bool:
        if not fills(gap, self._book.words, self._names):
            return False
        if gap in self._names or _prose(gap) <= _FEW:
            return True
        if self._depth == _DEEPEST:
            return False
        self._depth += 1
        is_ours = self.says(gap.strip(_AROUND))
        self._depth -= 1
        return is_ours

    def _is_one(self, text: str) -> bool:
        if self.is_over:
            return False
        self._tried += 1
        if text.startswith(_BRACKET) and text.endswith(")"):
            return self._may_fill(text[len(_BRACKET) : -1])
        book = self._book
        for form in _forms(text):
            if form in book.whole or is_setting(form) or book.fits(form, self._may_fill):
                return True
        return self._is_said_of_a_name(text) or self._are_terms(text)

    def _is_said_of_a_name(self, text: str) -> bool:
        """`--no-such-flag takes a whole number`, `Transformer Engine beside recompute of
        moe_act`.
        """
        blank = -1
        for _ in range(_LONGEST_NAME):
            blank = text.find(" ", blank + 1)
            if blank < 0:
                break
            name, claim = text[:blank], text[blank + 1 :]
            is_name = name in self._book.whole or is_term(name, self._book.words, self._names)
            if is_name and (claim in self._book.whole or self._book.fits(claim, self._may_fill)):
                return True
        return False

    def _are_terms(self, text: str) -> bool:
        """Names and figures alone, or what a sentence or a name is followed by: `several experts
        on`.
        """
        left, words = _UNIT.sub(lambda match: match[1] + match[2], _UNKNOWN.sub(" null", text)), 0
        while left and left not in self._book.whole and not is_setting(left):
            left, _, last = left.rpartition(" ")
            is_named = is_term(last, self._book.words, self._names)
            words += not is_named
            if not is_named and (last not in self._book.whole or words > _FEW):
                return False
        return True


def _borders(text: str) -> list[tuple[int, int]]:
    """Where a part of a text may end, and where the next begins."""
    ends = [mark.span() for mark in _BETWEEN.finditer(text)]
    ends += [(mark.start(), mark.start()) for mark in _OPENS.finditer(text) if mark.start()]
    return [*sorted(ends), (len(text), len(text))]


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


def _prose(text: str) -> int:
    """How many words of a text are neither names nor figures nor flags."""
    count = 0
    for shown in text.split():
        for word in tokens(shown) if not shown.startswith("-") else ():
            if word not in ("and", "or") and _PROSE.fullmatch(word.strip(_AROUND)):
                count += 1
    return count

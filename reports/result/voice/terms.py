"""What fills the gaps of our sentences: figures, settings, and words that other sentences of ours
have.
"""

from collections.abc import Collection
from string import ascii_lowercase
from typing import Final

from reports.result.voice.lines import is_setting
from traces.patterns import compiled
from traces.settings.line_parts import LOADS

VALUES: Final = frozenset(
    (  # noqa: SIM905
        "on|off|in|not known|not set|none|null|true|false|ns|count|bytes|ms"
        "|Float|Half|Double|Int|Long|Byte|Bool|Char|Short"
    ).split("|")
)
"""Words that stand for a value, or for its unit."""
_TOKEN: Final = compiled(r"[^ ,;()\"'<>*{}%]+")
_MARKS: Final = compiled(r"[\w .,:;()\"'/%+<>=*?~#{}\[\]-]*")
"""What may stand in a gap: nothing that makes a shell run something, and nothing that is not
seen."""
_FIGURE: Final = compiled(r"[+~<>=-]{0,2}[A-Z]{0,4}\d[\dx.,:/%+-]{0,60}[A-Za-z%]{0,8}\d{0,4}")
"""`-0.28`, `<0.1`, `16384/8/4096`, `2.9.0+cu128`, `TP2`, `30B`"""
_PIECE: Final = compiled(r"[A-Za-z]+|\d{1,6}|[._:+#/-]")
"""What names of settings, functions and models are made of; `...` stands in them for what is
withheld."""
_LONGEST_NAME: Final = 120
_SHORTEST_SLIP: Final = 5
_LONGEST_SLIP: Final = 24
_PLACEHOLDER: Final = compiled(r"[A-Z]{3,12}")
_AROUND: Final = ".:?*[]{}<>=+~%#"


def tokens(text: str) -> list[str]:
    """What a text is made of between blanks and marks."""
    return _TOKEN.findall(text)


def fills(text: str, words: Collection[str], names: Collection[str]) -> bool:
    """Whether a text may stand where a sentence has a gap.

    `words`: those of our sentences, in small letters; `names`: of the files that the result is of.
    """
    if text in names:
        return True
    if not _MARKS.fullmatch(text) or LOADS.search(text) or "://" in text:
        return False
    return all(_is_known(token, words, names) for token in tokens(text))


def is_term(word: str, words: Collection[str], names: Collection[str]) -> bool:
    """Whether a word is a figure, a setting, a file, or is built as settings are called."""
    if LOADS.search(word) or "://" in word:
        return False
    return is_figure(word) or is_setting(word) or _is_place(word, names) or _is_name(word, words)


def _is_name(word: str, words: Collection[str]) -> bool:
    """Whether it is made of several words of ours, as `moe_router_dtype`, `--no-such-flag`,
    `torch.compile`.

    A slip of the pen in a long one is how names of a user's file are told.
    """
    pieces = _PIECE.findall(word)
    if len(pieces) < 2 or len(word) > _LONGEST_NAME or "".join(pieces) != word or word[0] == "/":
        return False
    for piece in map(str.lower, filter(str.isalpha, pieces)):
        if piece not in words and not _is_slip(piece, words):
            return False
    return True


def _is_slip(piece: str, words: Collection[str]) -> bool:
    """Whether it is a word of ours with one letter too many or another one."""
    if not _SHORTEST_SLIP <= len(piece) <= _LONGEST_SLIP:
        return False
    for place in range(len(piece)):
        before, after = piece[:place], piece[place + 1 :]
        if any(before + letter + after in words for letter in ("", *ascii_lowercase)):
            return True
    return False


def is_figure(word: str) -> bool:
    """Whether it is a number, with its unit or what it counts."""
    return _FIGURE.fullmatch(word) is not None


def _is_place(word: str, names: Collection[str]) -> bool:
    file, mark, line = word.rpartition(":")
    return word in names or (bool(mark) and line.isdecimal() and file in names)


def _is_known(token: str, words: Collection[str], names: Collection[str]) -> bool:
    word = token.strip(_AROUND)
    if not word.strip("-") or word.lower() in words or is_figure(token.rstrip(_AROUND)):
        return True
    name, mark, value = word.partition("=")
    if mark:
        is_plain = is_figure(value) or bool(_PLACEHOLDER.fullmatch(value))
        return is_setting(word) or (is_plain and (name.lower() in words or _is_name(name, words)))
    return is_term(word, words, names)

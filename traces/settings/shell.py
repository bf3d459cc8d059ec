"""What commands a shell script would start, with which words and environment, as far as its text
tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, dropwhile
from typing import Final

from traces.frozen import frozen
from traces.limits import Limit
from traces.patterns import compiled
from traces.settings.expressions import sum_of
from traces.settings.settings import NotAConfiguration
from traces.settings.shell_words import Lexer, Token, WordPiece

UNKNOWN: Final = "\0"
"""Stands in a word for what only a running shell could tell."""

MOST_CHARACTERS: Final = Limit(
    4e6, "characters", "ours: a script's words with all variables put in, many times over"
)
DEEPEST: Final = Limit(8, "nested texts", "ours: bash -c in bash -c, or ${A:-${B:-...}}")


@frozen
class Word:
    """A word of a command. Not `sure`: a condition of the script decides whether it is there."""

    text: str
    line: int
    sure: bool = True

    @property
    def is_told(self) -> bool:
        """Whether its whole text is known, and there for sure."""
        return self.sure and UNKNOWN not in self.text

    @property
    def is_flag(self) -> bool:
        """Whether it is a flag; `-1` and `--` are none."""
        text = self.text
        return text.startswith("-") and not text[1:2].isdigit() and text.strip("-") != ""

    @property
    def file(self) -> str:
        """The last part of a path."""
        return self.text.rpartition("/")[2]

    @property
    def name(self) -> str:
        """What stands before its first `=`."""
        return self.text.partition("=")[0]

    @property
    def value(self) -> Word | None:
        """What stands behind its first `=`, as a word; None where it has none."""
        _, equals, text = self.text.partition("=")
        if equals:
            return replace(self, text=text)
        return None


def files(words: Iterable[Word]) -> set[str]:
    """Their last parts: programs that they start are among them."""
    return {word.file for word in words}


def texts(words: Iterable[Word]) -> list[str]:
    """Their texts, in order."""
    return [word.text for word in words]


Words = tuple[Word, ...]
"""In order, as a command has them."""
Pieces = Words
"""A text in pieces, each with its line."""


Variables = dict[str, Word]
"""By name."""


@frozen
class Command:
    """A command, its words with variables put in, and what stands before it as `A=B`.

    `around`: words of the command that starts it, as in `srun ... bash -c COMMAND`.
    """

    words: Words
    environment: Variables
    around: Words = ()


@dataclass(slots=True)
class Script:
    """All commands of a script in order, what it assigns and exports, and its `#SBATCH` words."""

    commands: list[Command] = field(default_factory=list)
    assigned: Variables = field(default_factory=dict)
    exported: Variables = field(default_factory=dict)
    directives: list[Word] = field(default_factory=list)


_OPENING: Final = frozenset({"if", "case"})
_CLOSING: Final = frozenset({"fi", "esac"})
_SKIPPED: Final = frozenset(
    {"then", "else", "do", "{", "}", "!", "time", "exec", "done", "while", "until"}
)


def read_script(text: str) -> Script:
    """Follow a script from its first line to its last.

    Raises:
        NotAConfiguration: its variables grow without bound.
    """
    reader = _Reader()
    reader.follow(text, 1)
    for name, pieces in reader.texts.items():
        reader.script.assigned[name] = _joined(pieces)
    return reader.script


class _Reader:
    """Follows a script: keeps its variables, and the conditions it is in."""

    def __init__(self) -> None:
        self.script = Script()
        self.texts = dict[str, Pieces]()
        self.arrays = dict[str, Words]()
        self.to_export = set[str]()
        self.conditions = 0
        self.depth = 0
        self.after_test = False
        self.around: Words = ()
        self.left = MOST_CHARACTERS.whole

    def follow(self, text: str, line: int) -> None:
        self.depth += 1
        statement = []
        for token in Lexer(text, line).tokens():
            if token.comment.startswith("#SBATCH"):
                for word in token.comment.removeprefix("#SBATCH").partition(" #")[0].split():
                    self.script.directives.append(Word(word, token.line))
            elif not token.operator:
                statement.append(token)
            elif token.operator not in ("#", "<>"):
                self._statement(statement)
                is_test = bool(statement) and statement[0].plain in ("[", "[[", "test")
                self.after_test = token.operator in ("&&", "||") and (self.after_test or is_test)
                statement = []
        self._statement(statement)
        self.depth -= 1

    def _statement(self, tokens: list[Token]) -> None:
        while tokens and (word := tokens[0].plain) in _OPENING | _CLOSING | _SKIPPED | {
            "elif",
            "for",
        }:
            self.conditions += (word in _OPENING) - (word in _CLOSING)
            self.conditions = max(self.conditions, 0)
            if word == "for" and len(tokens) > 1:
                self.texts[tokens[1].plain] = (Word(UNKNOWN, tokens[1].line),)
            if word in ("for", "case"):
                return
            tokens = tokens[1:]
        if not tokens:
            return
        if tokens[0].plain in ("export", "declare", "local", "readonly", "typeset"):
            self._declare(tokens[0].plain, tokens[1:])
            return
        words = [*dropwhile(_is_assignment, tokens)]
        environment = {}
        for token in tokens[: len(tokens) - len(words)]:
            if words:
                environment[token.assigns[0]] = _joined(self._value(token), token.line)
            else:
                self._keep(token)
        if words:
            self._command(words, environment)

    def _value(self, token: Token) -> Pieces:
        """What stands behind `NAME=`."""
        first, *parts = token.parts
        return self._pieces([replace(first, text=token.assigns[2]), *parts])

    def _keep(self, token: Token) -> None:
        name, adds, _ = token.assigns
        kept, other = self.texts, self.arrays
        if token.entries is not None:
            kept, other = other, kept
        before = kept.get(name, ())
        after = self._value(token) if token.entries is None else self._words(token.entries)
        if adds:
            after = before + after
        if self.conditions or self.after_test:
            after = _perhaps(before, after, token.entries is None)
        other.pop(name, None)
        kept[name] = after
        self._export(name)

    def _declare(self, how: str, tokens: list[Token]) -> None:
        exports = how == "export"
        for token in tokens:
            name, word = token.assigns[0], token.plain
            exports = exports or (word.startswith("-") and "x" in word)
            if exports:
                self.to_export |= {name, word}
            if name:
                self._keep(token)
            self._export(word)

    def _export(self, name: str) -> None:
        if name in self.to_export and name in self.texts:
            pieces = self.texts[name]
            if pieces:  # none where a condition may have emptied it
                self.script.exported[name] = _joined(pieces, pieces[0].line)

    def _command(self, tokens: list[Token], before: Variables) -> None:
        words = self._words(tokens)
        nested = _nested(words)
        if nested and self.depth < DEEPEST.value:
            outside, self.around = self.around, self.around + words
            first = len(self.script.commands)
            self.follow(nested.text, nested.line)
            self.around = outside
            for place, command in enumerate(self.script.commands[first:], first):
                # which of its words a condition decides is not kept in a quoted text
                if not nested.sure:
                    self.script.commands[place] = replace(command, words=_unsure(command.words))
        elif words:
            self.script.commands.append(Command(words, before, self.around))

    def _words(self, tokens: Iterable[Token]) -> Words:
        return tuple(chain.from_iterable(map(self._cut, tokens)))

    def _cut(self, token: Token) -> Iterator[Word]:
        """A token's words: unquoted variables are cut at blanks, arrays at their entries."""
        current = list[Word]()
        is_word = False
        is_bare = _is_bare(token.parts)
        for part in token.parts:
            if part.kind == "all" and part.quoted:
                entries = self._entries(part)
                for index, entry in enumerate(entries):
                    if index:
                        yield _joined(current, token.line)
                        current = []
                    current.append(entry)
                is_word = is_word or bool(entries)
                continue
            for piece in self._part(part):
                if part.quoted:
                    current.append(piece)
                    is_word = is_word or not is_bare
                    continue
                for text in compiled(r"(\s+)").split(piece.text):
                    if text.strip():
                        current.append(Word(text, piece.line, piece.sure))
                        is_word = True
                    elif text and current:
                        yield _joined(current, token.line)
                        current, is_word = [], False
        if is_word:
            yield _joined(current, token.line)

    def _entries(self, part: WordPiece) -> Words:
        if part.text in self.arrays:
            return self._counted(self.arrays[part.text])
        if pieces := self._part(part):
            return (_joined(pieces, part.line),)
        return ()

    def _pieces(self, parts: Iterable[WordPiece]) -> Pieces:
        return tuple(chain.from_iterable(map(self._part, parts)))

    def _part(self, part: WordPiece) -> Pieces:
        if part.kind == "text":
            return self._counted((Word(part.text, part.line),))
        if part.kind == "sum":
            result = sum_of(part.text, self._number)
            return (Word(UNKNOWN if result is None else str(result), part.line),)
        if part.kind == "arguments":
            return ()
        if part.text in self.texts:
            return self._counted(self.texts[part.text])
        entries = self.arrays.get(part.text, ())
        if part.kind == "name" and entries:
            return self._counted(entries[:1])
        if part.kind != "name" and part.text in self.arrays:
            apart = list[Word]()
            for entry in entries:
                apart += (entry, Word(" ", part.line))
            return self._counted(tuple(apart[:-1]))
        if part.instead is not None and self.depth < DEEPEST.value:
            return self._instead(part.instead, part.line)
        return (Word(UNKNOWN, part.line),)

    def _instead(self, text: str, line: int) -> Pieces:
        """What `${NAME:-text}` is where the script does not set NAME."""
        self.depth += 1
        pieces: Pieces = ()
        for token in Lexer('"' + text.strip('"') + '"', line).tokens():
            pieces += self._pieces(token.parts)
        self.depth -= 1
        return pieces

    def _number(self, name: str) -> int | None:
        whole = _joined(self.texts.get(name, ()))
        if whole.sure and compiled(r"\s*\d{1,15}\s*").fullmatch(whole.text):
            return int(whole.text)
        return None

    def _counted(self, pieces: Pieces) -> Pieces:
        self.left -= len(pieces) + sum(map(len, texts(pieces)))
        if self.left < 0:
            raise NotAConfiguration(
                "the script's variables grow without bound: give the command line itself"
            )
        return pieces


def _joined(pieces: Sequence[Word], line: int = 0) -> Word:
    """Pieces as one word, on the line of the first that is not blank."""
    sure = True
    for piece in reversed(pieces):
        sure = sure and piece.sure
        if piece.text.strip():
            line = piece.line
    return Word("".join(texts(pieces)), line, sure)


def _unsure(words: Iterable[Word]) -> Words:
    return tuple(replace(word, sure=False) for word in words)


def _is_bare(parts: Sequence[WordPiece]) -> bool:
    """Whether nothing but lists makes a word, which is none where they have no entries."""
    has_list = False
    for part in parts:
        if part.kind in ("all", "arguments"):
            has_list = True
        elif part.text:
            return False
    return has_list


def _is_assignment(token: Token) -> bool:
    return bool(token.assigns[0]) and not token.parts[0].quoted and token.parts[0].kind == "text"


def _perhaps(before: Words, after: Words, is_text: bool) -> Words:
    """What a variable is behind a condition that may have set it: what both say, then what is
    unsure.
    """
    if is_text:
        before, after = (
            tuple(piece for piece in pieces if piece.text) for pieces in (before, after)
        )
    count = len(before)
    if texts(before) == texts(after[:count]):
        return before + _unsure(after[count:])
    return (Word(UNKNOWN, (after or before)[0].line),)


def _nested(words: Words) -> Word | None:
    """The script in `bash -c SCRIPT` or `eval SCRIPT`."""
    if words and words[0].text == "eval":
        return Word(" ".join(texts(words[1:])), words[0].line)
    for first, second, script in zip(words, words[1:], words[2:], strict=False):
        if first.file in ("bash", "sh") and compiled(r"-[a-z]*c").fullmatch(second.text):
            return script
    return None

"""A shell script cut into words: quotes, comments, continued lines, `$NAME`, arrays and
here-documents.

Nothing is run but whole-number arithmetic: what only a shell could tell (`$(...)`) stays an unknown
part of its word.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

from traces.frozen import frozen
from traces.patterns import Here, HerePattern, at_places, compiled

PartKind = Literal["text", "name", "all", "joined", "sum", "unknown", "arguments"]


@frozen
class WordPiece:
    """A piece of a word: its text, or the name of a variable, or a sum.

    `all`: the array's entries, each a word; `joined`: in one; `arguments`: what the script itself
    is given. `instead`: what the variable is where it is not set; None: unknown. A `quoted` part is
    never cut apart.
    """

    kind: PartKind
    text: str
    line: int
    quoted: bool
    instead: str | None = None


@dataclass(slots=True)
class Token:
    """A word as written, or an operator such as `;`. `entries`: of `NAME=( ... )`."""

    line: int
    parts: list[WordPiece] = field(default_factory=list)
    operator: str = ""
    entries: list[Token] | None = None
    comment: str = ""

    @property
    def plain(self) -> str:
        """Its text where it is nothing but unquoted text; else empty."""
        text = ""
        for part in self.parts:
            if part.kind != "text" or part.quoted:
                return ""
            text += part.text
        return text

    @property
    def assigns(self) -> tuple[str, str, str]:
        """NAME, `+` and what stands behind `=` where it begins so, quoted or not; else empty
        texts.
        """
        match = _ASSIGNED.fullmatch(self.parts[0].text)
        if match:
            return match[1], match[2], match[3]
        return "", "", ""


_ARRAY: Final = compiled(r"[A-Za-z_]\w*\+?=")
_ASSIGNED: Final = compiled(r"(?s)([A-Za-z_]\w*)(\+?)=(.*)")
_BRACED: Final = compiled(r"(?s)([A-Za-z_]\w*)(\[[@*]\])?(?::?[-=](.*))?")
_OPERATOR: Final = at_places(r"&&|\|\||;;|\|&|[;|&()\n]")
_COMMENT: Final = at_places(r"#[^\n]*")
_BLANK: Final = at_places(r"(?:\\\r?\n|[ \t\r])+")
_CONTINUED: Final = at_places(r"\\\n")
_LINE: Final = at_places(r"[^\n]*\n|[^\n]+")
_NAME: Final = r"([A-Za-z_]\w*)"
_HEREDOC: Final = at_places(rf"<<-?\s*(?:'{_NAME}'?|\"{_NAME}\"?|\\{_NAME}\\?|{_NAME})")
_REDIRECTED: Final = at_places(r"[<>&]+(?:\\\r?\n|[ \t\r])*")
_TEXT: Final = at_places(r"(?s)[^\s\\'\"$`#;|&()<>]+|.")
_SINGLE: Final = at_places(r"'([^']*)'?")
_QUOTED_TEXT: Final = at_places(r"[^\\\"$`]+")
_ESCAPED: Final = at_places(r"(?s)\\(.?)")
_BACKTICKS: Final = at_places(r"`[^`]*`?")
_VARIABLE: Final = at_places(r"\$([A-Za-z_]\w*|[@*]|[0-9#?$!-])")


class Lexer:
    """Cuts a text into tokens. `line`: number of its first line."""

    def __init__(self, text: str, line: int) -> None:
        self.text, self.at, self.line = text, 0, line
        self.heredocs = list[str]()
        self.in_array = False

    def tokens(self, until: str = "") -> Iterator[Token]:
        """Words and operators; up to a closing parenthesis where `until` is one."""
        while self.at < len(self.text):
            line = self.line
            if self._eat(_BLANK):
                continue
            if comment := self._eat(_COMMENT):
                yield Token(line, operator="#", comment=comment[0])
            elif operator := self._eat(_OPERATOR):
                if operator[0] == until:
                    return
                yield Token(line, operator=operator[0])
                if operator[0] == "\n":
                    self._skip_heredocs()
            elif self.text[self.at] in "<>":
                self._redirection()
                yield Token(self.line, operator="<>")
            else:
                word = self._word()
                # the 2 of `2>log` names a stream, and is no word
                is_stream = word.plain.isdigit() and self.text[self.at : self.at + 1] in ("<", ">")
                if not is_stream:
                    yield word

    def _eat(self, pattern: HerePattern) -> Here | None:
        """Match a pattern at this place, and go on behind it."""
        match = pattern.match(self.text, self.at)
        if match:
            self._to(match.end())
        return match

    def _to(self, end: int) -> None:
        self.line += self.text.count("\n", self.at, end)
        self.at = end

    def _skip_heredocs(self) -> None:
        for end in self.heredocs:
            while (line := self._eat(_LINE)) and line[0].strip() != end:
                pass
        self.heredocs = []

    def _redirection(self) -> None:
        if here := self._eat(_HEREDOC):
            self.heredocs.append(next(filter(None, here.groups())))
            return
        self._eat(_REDIRECTED)
        if self.at < len(self.text) and self.text[self.at] not in "\n;|&()#":
            self._word()

    def _word(self) -> Token:
        token = Token(self.line)
        while self.at < len(self.text):
            if self._eat(_CONTINUED):
                continue
            char = self.text[self.at]
            if char == "(" and not self.in_array and _ARRAY.fullmatch(token.plain):
                self.at += 1
                self.in_array = True
                token.entries = [*self.tokens(until=")")]
                self.in_array = False
                break
            if char in " \t\r\n;|&()<>":
                break
            token.parts += self._parts(quoted=False)
        return token

    def _parts(self, quoted: bool) -> Iterator[WordPiece]:
        """The next parts of a word; `quoted`: between double quotes."""
        line, char = self.line, self.text[self.at]
        if char == "$":
            yield self._dollar(quoted)
        elif self._eat(_BACKTICKS):
            yield WordPiece("unknown", "", line, quoted)
        elif escaped := self._eat(_ESCAPED):
            text = escaped[1]
            # between double quotes a backslash stays before all other characters
            if quoted and text not in ("", *'"\\$`\n'):
                text = escaped[0]
            yield WordPiece("text", "" if text == "\n" else text, self.line, True)
        elif char == '"':
            self.at += 1
            yield WordPiece("text", "", line, True)
            while self.at < len(self.text) and self.text[self.at] != '"':
                yield from self._parts(quoted=True)
            self.at += 1
        elif quoted and (text_run := self._eat(_QUOTED_TEXT)):
            yield from _quoted_text(text_run[0], line)
        elif not quoted and (single := self._eat(_SINGLE)):
            yield from _quoted_text(single[1], line)
        elif text_run := self._eat(_TEXT):
            yield WordPiece("text", text_run[0], line, False)

    def _dollar(self, quoted: bool) -> WordPiece:
        """A variable, a sum, or what only a running shell could tell."""
        line, opening = self.line, self.text[self.at + 1 : self.at + 2]
        if opening in ("(", "{"):
            end = self._closing(opening)
            inside = self.text[self.at + 2 : end]
            self._to(min(end + 1, len(self.text)))
            if opening == "{":
                return _braced(inside, line, quoted)
            if inside.startswith("("):
                return WordPiece("sum", inside[1:-1], line, quoted)
            return WordPiece("unknown", "", line, quoted)
        if not (match := self._eat(_VARIABLE)):
            self.at += 1
            return WordPiece("text", "$", line, quoted)
        return _braced(match[1], line, quoted)

    def _closing(self, opening: str) -> int:
        closing, depth = {"(": ")", "{": "}"}[opening], 0
        for at in range(self.at + 1, len(self.text)):
            depth += (self.text[at] == opening) - (self.text[at] == closing)
            if depth == 0:
                return at
        return len(self.text)


def _quoted_text(text: str, line: int) -> Iterator[WordPiece]:
    """Quoted text by lines, so that words cut out of it later know theirs."""
    for index, part in enumerate(text.split("\n")):
        yield WordPiece("text", f"\n{part}" if index else part, line + index, True)


def _braced(inside: str, line: int, quoted: bool) -> WordPiece:
    """A variable by what stands in its braces; one without braces is alike."""
    if inside in ("@", "*"):
        return WordPiece("arguments", "", line, quoted)
    match = _BRACED.fullmatch(inside)
    if not match:
        return WordPiece("unknown", "", line, quoted)
    kind: PartKind = "name"
    if match[2]:
        kind = "joined" if match[2] == "[*]" else "all"
    return WordPiece(kind, match[1], line, quoted, match[3])

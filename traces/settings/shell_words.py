"""A shell script cut into words: quotes, comments, continued lines, `$NAME`, arrays and here-documents.

Nothing is run but whole-number arithmetic: what only a shell could tell (`$(...)`) stays an unknown
part of its word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

PartKind = Literal["text", "name", "all", "joined", "sum", "unknown", "arguments"]


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a word: its text, or the name of a variable, or a sum.

    `all`: the array's entries, each a word; `joined`: in one; `arguments`: what the script itself is given.
    `instead`: what the variable is where it is not set; None: unknown. A `quoted` part is never cut apart.
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
    parts: list[Part] = field(default_factory=list)
    operator: str = ""
    entries: list[Token] | None = None
    comment: str = ""

    @property
    def plain(self) -> str:
        """Its text where it is nothing but unquoted text; else empty."""
        is_plain = all(part.kind == "text" and not part.quoted for part in self.parts)
        return "".join(part.text for part in self.parts) if is_plain else ""


_OPERATORS: Final = ("&&", "||", ";;", "|&", ";", "|", "&", "(", ")", "\n")
_ARRAY: Final = re.compile(r"[A-Za-z_]\w*\+?=")
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_BRACED: Final = re.compile(r"([A-Za-z_]\w*)(\[[@*]\])?(?::?[-=](.*))?", re.DOTALL)
_HEREDOC: Final = re.compile(r"<<-?\s*(['\"\\]?)([A-Za-z_]\w*)\1?")
_TEXT: Final = re.compile(r"[^\s\\'\"$`#;|&()<>]+")
_QUOTED_TEXT: Final = re.compile(r"[^\\\"$`\n]+")


class Lexer:
    """Cuts a text into tokens. `line`: number of its first line."""

    def __init__(self, text: str, line: int = 1) -> None:
        self.text, self.at, self.line = text, 0, line
        self.heredocs: list[str] = []
        self.in_array = False

    def tokens(self, until: str = "") -> Iterator[Token]:
        """Words and operators; up to a closing parenthesis where `until` is one."""
        while self.at < len(self.text):
            if self._skip_blank():
                continue
            if self.text[self.at] == "#":
                yield Token(self.line, operator="#", comment=self._comment())
                continue
            operator = next((one for one in _OPERATORS if self.text.startswith(one, self.at)), "")
            if operator and operator == until:
                self.at += len(operator)
                return
            if operator:
                yield Token(self.line, operator=operator)
                self._pass(operator)
            elif self.text[self.at] in "<>":
                self._redirection()
                yield Token(self.line, operator="<>")
            else:
                word = self._word()
                is_stream = word.plain.isdigit() and self.text[self.at : self.at + 1] in ("<", ">")
                if not is_stream:
                    yield word

    def _skip_blank(self) -> bool:
        start = self.at
        while self.at < len(self.text):
            if self.text.startswith(("\\\n", "\\\r\n"), self.at):
                self.at = self.text.index("\n", self.at) + 1
                self.line += 1
            elif self.text[self.at] in " \t\r":
                self.at += 1
            else:
                break
        return self.at > start

    def _comment(self) -> str:
        end = self.text.find("\n", self.at)
        found = self.text[self.at : end if end >= 0 else len(self.text)]
        self.at += len(found)
        return found

    def _pass(self, operator: str) -> None:
        self.at += len(operator)
        if operator == "\n":
            self.line += 1
            self._skip_heredocs()

    def _skip_heredocs(self) -> None:
        for end in self.heredocs:
            while self.at < len(self.text):
                stop = self.text.find("\n", self.at)
                stop = stop if stop >= 0 else len(self.text)
                found = self.text[self.at : stop].strip()
                self.at, self.line = min(stop + 1, len(self.text)), self.line + 1
                if found == end:
                    break
        self.heredocs = []

    def _redirection(self) -> None:
        if here := _HEREDOC.match(self.text, self.at):
            self.heredocs.append(here[2])
            self.at = here.end()
            return
        while self.at < len(self.text) and self.text[self.at] in "<>&":
            self.at += 1
        self._skip_blank()
        if self.at < len(self.text) and self.text[self.at] not in "\n;|&()#":
            self._word()

    def _word(self) -> Token:
        token = Token(self.line)
        while self.at < len(self.text):
            char = self.text[self.at]
            if self.text.startswith("\\\n", self.at):
                self.at, self.line = self.at + 2, self.line + 1
                continue
            if char in " \t\r\n;|&)<>":
                break
            if char == "(":
                if self.in_array or not _ARRAY.fullmatch(token.plain):
                    break
                token.entries = self._array()
                break
            self._part(token.parts)
        return token

    def _array(self) -> list[Token]:
        self.at += 1
        self.in_array = True
        found = [one for one in self.tokens(until=")") if not one.operator]
        self.in_array = False
        return found

    def _part(self, parts: list[Part]) -> None:
        char = self.text[self.at]
        if char == "'":
            self._single(parts)
        elif char == '"':
            self._double(parts)
        elif char == "$":
            self._dollar(parts, quoted=False)
        elif char == "`":
            self._backtick(parts, quoted=False)
        elif char == "\\":
            parts.append(Part("text", self.text[self.at + 1 : self.at + 2], self.line, True))
            self.at += 2
        else:
            found = _TEXT.match(self.text, self.at)
            text = found[0] if found else char
            parts.append(Part("text", text, self.line, False))
            self.at += len(text)

    def _single(self, parts: list[Part]) -> None:
        end = self.text.find("'", self.at + 1)
        end = end if end >= 0 else len(self.text)
        self._quoted_text(parts, self.text[self.at + 1 : end])
        self.at = end + 1

    def _quoted_text(self, parts: list[Part], text: str) -> None:
        """Quoted text by lines, so that words cut out of it later know theirs."""
        for index, part in enumerate(text.split("\n")):
            if index:
                parts.append(Part("text", "\n", self.line, True))
                self.line += 1
            parts.append(Part("text", part, self.line, True))

    def _double(self, parts: list[Part]) -> None:
        self.at += 1
        parts.append(Part("text", "", self.line, True))
        while self.at < len(self.text) and self.text[self.at] != '"':
            char = self.text[self.at]
            if char == "\\":
                self._escape(parts)
            elif char == "$":
                self._dollar(parts, quoted=True)
            elif char == "`":
                self._backtick(parts, quoted=True)
            else:
                found = _QUOTED_TEXT.match(self.text, self.at)
                text = found[0] if found else char
                self.at += len(text)
                self._quoted_text(parts, text)
        self.at += 1

    def _escape(self, parts: list[Part]) -> None:
        after = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if after == "\n":
            self.line += 1
            parts.append(Part("text", "", self.line, True))
        else:
            parts.append(Part("text", after if after in '"\\$`' else "\\" + after, self.line, True))

    def _backtick(self, parts: list[Part], quoted: bool) -> None:
        end = self.text.find("`", self.at + 1)
        end = end if end >= 0 else len(self.text)
        parts.append(Part("unknown", "", self.line, quoted))
        self._to(end + 1)

    def _to(self, end: int) -> None:
        self.line += self.text.count("\n", self.at, end)
        self.at = end

    def _dollar(self, parts: list[Part], quoted: bool) -> None:
        rest = self.text[self.at + 1 : self.at + 3]
        if rest == "((" or rest[:1] in ("(", "{"):
            self._bracketed(parts, quoted, rest)
        elif name := _NAME.match(self.text, self.at + 1):
            parts.append(Part("name", name[0], self.line, quoted))
            self.at = name.end()
        elif rest[:1] in ("@", "*"):
            parts.append(Part("arguments", "", self.line, quoted))
            self.at += 2
        elif rest[:1] and rest[:1] in "0123456789#?$!-":
            parts.append(Part("unknown", "", self.line, quoted))
            self.at += 2
        else:
            parts.append(Part("text", "$", self.line, quoted))
            self.at += 1

    def _bracketed(self, parts: list[Part], quoted: bool, rest: str) -> None:
        opening = rest[0]
        end = self._closing(opening, {"(": ")", "{": "}"}[opening])
        inside = self.text[self.at + 2 : end]
        if rest == "((" and inside.endswith(")"):
            parts.append(Part("sum", inside[1:-1], self.line, quoted))
        elif opening == "{":
            parts.append(self._braced(inside, quoted))
        else:
            parts.append(Part("unknown", "", self.line, quoted))
        self._to(min(end + 1, len(self.text)))

    def _braced(self, inside: str, quoted: bool) -> Part:
        if inside in ("@", "*"):
            return Part("arguments", "", self.line, quoted)
        found = _BRACED.fullmatch(inside)
        if found is None:
            return Part("unknown", "", self.line, quoted)
        kind: PartKind = "name" if not found[2] else "joined" if quoted and found[2] == "[*]" else "all"
        return Part(kind, found[1], self.line, quoted, found[3])

    def _closing(self, opening: str, closing: str) -> int:
        depth = 0
        for at in range(self.at + 1, len(self.text)):
            depth += (self.text[at] == opening) - (self.text[at] == closing)
            if depth == 0:
                return at
        return len(self.text)

"""Styled lines of a terminal: words and tones as rich's texts, and those as one string."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from reports.content.blocks import Code, Hue, Term, Tone, View, Words
from reports.content.names import name_of
from traces.spelling import printable

if TYPE_CHECKING:
    from rich.text import Text

STYLES: Final[Mapping[Tone, str]] = {
    Tone.PLAIN: "",
    Tone.GOOD: "bold green",
    Tone.NOTICE: "bold magenta",
    Tone.BAD: "bold red",
    Tone.MUTED: "dim",
}
"""The terminal's own colours, but for yellow, white and the bright ones: these are lost on white."""
HUES: Final[Mapping[Hue, str]] = {
    Hue.COMPUTE: "green",
    Hue.COMMUNICATION: "blue",
    Hue.COPY: "cyan",
    Hue.IDLE: "",
    Hue.HOST: "red",
    Hue.MEMORY: "magenta",
    Hue.OTHER: "bright_black",
}


FIXED: Final = "\N{NO-BREAK SPACE}"
"""A space at which no line ends."""
_WORD: Final = re.compile(r"[^ ]+(?: (?:%|ms|us|s|GB)(?![\w]))?[^ ]* *")
"""A word, or a number with its unit, and the spaces behind it."""
_ARGUMENT: Final = re.compile(r"""(?:'[^']*'|"[^"]*"|\$\(\([^)]*\)\)|[^\s'"])+""")
"""A word of a command; what is quoted or computed stays whole."""
_ON: Final = " \\"
"""The command goes on in the next line."""
_ASIDE: Final = ("(", "#")
"""How a line begins that is no command."""
_LEAST: Final = 10
"""Columns that a text has at least, however far it is indented."""
_ENDLESS: Final = 10**6
"""Columns of the terminal that never wraps what was wrapped here."""


def text_of(said: Words, view: View, style: str = "") -> Text:
    """Words as one line; foreign characters that move the cursor are gone."""
    from rich.text import Text

    line = Text(style=style)
    for span in said:
        if isinstance(span, Code):
            line.append(printable(span.text, len(span.text)), "cyan")
        elif isinstance(span, Term):
            name = name_of(span.key) + (f" [{span.key}]" if view.keys else "")
            line.append(printable(name, len(name)))
        else:
            line.append(printable(span, len(span)))
    return line


def plain(text: str, style: str = "") -> Text:
    """One string as a line."""
    from rich.text import Text

    return Text(printable(text, len(text)), style=style)


def wrapped(line: Text, width: int, first: str = "", hanging: str | None = None) -> list[Text]:
    """Lines no wider than `width` but for words that are; `hanging` indents those after the first."""
    rest = " " * len(first) if hanging is None else hanging
    if not width:
        return [plain(first) + line]
    room = max(_LEAST, width - max(len(first), len(rest)))
    folded = line.divide(_breaks(line.plain, room))
    for one in folded:
        one.rstrip()
        one.plain = one.plain.replace(FIXED, " ")
    return [plain(rest if place else first) + one for place, one in enumerate(folded)]


def continued(line: str, width: int, indent: str) -> list[Text]:
    """A command in lines that a shell reads as one: a backslash ends each but the last.

    It breaks between words, never within quotes. What is in parentheses is for people: it is wrapped.
    """
    if not width or len(indent) + len(line) <= width:
        return [plain(indent + line, "cyan")]
    if line.startswith(_ASIDE):
        return wrapped(plain(line, "cyan"), width, indent)
    room, rows = max(_LEAST, width - len(indent) - len(_ON)), [""]
    for word in _ARGUMENT.findall(line):
        if rows[-1] and len(rows[-1]) + 1 + len(word) > room:
            rows.append(f"  {word}")
        else:
            rows[-1] += f" {word}" if rows[-1] else word
    return [*(plain(indent + row + _ON, "cyan") for row in rows[:-1]), plain(indent + rows[-1], "cyan")]


def _breaks(text: str, room: int) -> list[int]:
    """Where lines after the first begin; a word is never broken."""
    from rich.cells import cell_len

    breaks, used = [], 0
    for word in _WORD.finditer(text):
        size = cell_len(word[0].rstrip())
        if used and used + size > room:
            breaks.append(word.start())
            used = 0
        used += cell_len(word[0])
    return breaks


def printed(lines: Iterable[Text], view: View) -> str:
    """All lines as one string that ends in a line break: with colours, or plain."""
    if not view.colour:
        return "".join(line.plain.rstrip() + "\n" for line in lines)
    from rich.color import ColorSystem
    from rich.console import Console

    console, written = Console(width=_ENDLESS, color_system="standard", force_terminal=True), []
    for line in lines:
        line.rstrip()
        for segment in line.render(console, end="\n"):
            style = segment.style
            written.append(
                style.render(segment.text, color_system=ColorSystem.STANDARD) if style else segment.text
            )
    return "".join(written)

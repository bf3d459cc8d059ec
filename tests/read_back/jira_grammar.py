"""Atlassian's wiki markup read strictly, to check what we write; it shares nothing with what writes it.

After "Text Formatting Notation Help" (jira.atlassian.com/secure/WikiRendererHelpAction.jspa?section=all):
`h1. ` to `h6. ` begin a heading; `||a||b||` is a row of headings and `|a|b|` one of cells; `* `, `# ` and
their repetitions are lists; {noformat}, {code} and {panel} stand in pairs; *strong*, _emphasis_,
??citation??, -deleted-, +inserted+, ^super^, ~sub~ and {{monospaced}} are effects; [x] is a link or a
mention, !x! an image, (x) and :) pictures, -- a dash, a bare address a link; a backslash makes the special
character after it a plain one. Keys of issues become links. That an effect opens only where no word stands
before it and closes only where none follows, and that entities stay what they are, is how pandoc's reader
and writer of this markup work (github.com/tarleb/jira-wiki-markup).

Only what our tickets may hold passes: headings, lists, tables, pairs, strong and monospaced words.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

ESCAPABLE: Final = frozenset("*_?-+^~{}[]|!()#:;@")
HIDDEN: Final = "\0"
"""Stands for a character that was escaped, so that it is no mark."""
PAIRS: Final = ("{noformat}", "{code}", "{panel}")
FORBIDDEN: Final = {
    "a link or a mention": re.compile(r"[\[\]]"),
    "an image": re.compile("!"),
    "a macro": re.compile(r"[{}]"),
    "superscript or subscript": re.compile(r"[\^~]"),
    "a cell": re.compile(r"\|"),
    "a citation": re.compile(r"\?\?"),
    "a dash": re.compile("--"),
    "an effect": re.compile(r"(?<![\w\0])([_+-])(?=[^\s])(?:.*?[^\s])?\1(?![\w\0])"),
    "a picture": re.compile(r"\((?:[xyni/!?+*-]|\*[rgby]|on|off|flag|flagoff)\)|(?<!\w)[:;]-?[()DPp](?!\w)"),
    "an address": re.compile(r"\w://|mailto:"),
    "the key of an issue": re.compile(r"\b[A-Z][A-Z0-9_]+-[0-9]"),
    "a block": re.compile(r"^(?:[*#-]+ |h[1-6]\.|bq\.|\{|----)"),
}


class Broken(ValueError):
    """The markup says something that no ticket of ours means."""


@dataclass(frozen=True)
class Part:
    """One line or row that was read: `mark` is h2, *, #*, ||, |, {noformat} or nothing for a paragraph."""

    mark: str
    cells: tuple[str, ...]


def read(text: str) -> list[Part]:
    """Every part in its order, as a reader sees its words. Raises Broken with the line."""
    parts: list[Part] = []
    inside = ""
    width = 0
    for line in text.splitlines():
        if inside:
            if line == inside:
                inside = ""
            elif any(pair in line for pair in PAIRS):
                raise Broken(f"{inside} is left by: {line}")
            else:
                parts.append(Part("{noformat}", (line,)))
            continue
        if line in PAIRS:
            inside, width = line, 0
            continue
        if not line:
            width = 0
            continue
        part, width = _part(line, width, parts[-1].mark if parts else "")
        parts.append(part)
    if inside:
        raise Broken(f"{inside} is not closed")
    return parts


def _part(line: str, width: int, last: str) -> tuple[Part, int]:
    """One line, and how many cells a row after it has; 0 where no table goes on."""
    if heading := re.fullmatch(r"(h[1-6])\. (\S.*)", line):
        return Part(heading[1], (words(heading[2]),)), 0
    if listed := re.fullmatch(r"([*#]+) (\S.*)", line):
        if len(listed[1]) > 1 and len(last) < len(listed[1]) - 1:
            raise Broken(f"nothing stands above: {line}")
        return Part(listed[1], (words(listed[2]),)), 0
    if line.startswith("|"):
        return _row(line, width)
    return Part("", (words(line),)), 0


def _row(line: str, width: int) -> tuple[Part, int]:
    mark = "||" if line.startswith("||") else "|"
    if mark == "|" and not width:
        raise Broken(f"a row without headings: {line}")
    if not line.endswith(mark) or len(line) < 2 * len(mark):
        raise Broken(f"a row that does not end: {line}")
    cells = re.split(r"(?<!\\)\|\|" if mark == "||" else r"(?<!\\)\|", line)[1:-1]
    if any(not cell for cell in cells):
        raise Broken(f"an empty cell, which begins a heading: {line}")
    if width and len(cells) != width:
        raise Broken(f"{len(cells)} cells under {width}: {line}")
    return Part(mark, tuple(words(cell) if cell.strip() else "" for cell in cells)), len(cells)


def words(line: str) -> str:
    """What a reader sees of a line or a cell."""
    return "".join(text for _, text in spans(line))


def spans(line: str) -> list[tuple[str, str]]:
    """Stretches of a line with their effect: `strong`, `monospaced` or nothing."""
    plain, seen = _unescaped(line.strip())
    found: list[tuple[str, str]] = []
    for kind, start, end in _effects(plain):
        for what, pattern in FORBIDDEN.items():
            if hit := pattern.search(plain[start:end]):
                raise Broken(f"{what}, {hit[0]!r}, in: {line}")
        found.append((kind, "".join(seen[start:end])))
    return found


def _unescaped(line: str) -> tuple[str, list[str]]:
    """The line with escaped characters hidden, and what a reader sees in each place of it."""
    plain, seen, place = "", list[str](), 0
    while place < len(line):
        char = line[place]
        entity = re.compile(r"&(?:#\d+|\w+);").match(line, place)
        if entity:
            plain, place = plain + HIDDEN, entity.end()
            seen.append(html.unescape(entity[0]))
        elif char == "\\":
            if line[place + 1 : place + 2] not in ESCAPABLE:
                raise Broken(f"a backslash that escapes nothing in: {line}")
            seen.append(line[place + 1])
            plain, place = plain + HIDDEN, place + 2
        else:
            seen.append(char)
            plain, place = plain + char, place + 1
    return plain, seen


def _effects(plain: str) -> Iterator[tuple[str, int, int]]:
    """Strong and monospaced stretches and what lies between them; a mark that opens must close."""
    marks = re.compile(r"(?<![\w\0*])\*(?!\s)([^*]+)(?<!\s)\*(?![\w\0])|\{\{(?!\s)([^{}]+)(?<!\s)\}\}(?!\w)")
    last = 0
    for hit in marks.finditer(plain):
        yield "", last, hit.start()
        kind = 1 if hit[1] is not None else 2
        yield ("strong", "monospaced")[kind - 1], hit.start(kind), hit.end(kind)
        last = hit.end()
    if "*" in plain[last:] or any("*" in plain[start:end] for start, end in _between(marks, plain)):
        raise Broken(f"a star that is no effect in: {plain}")
    yield "", last, len(plain)


def _between(marks: re.Pattern[str], plain: str) -> Iterator[tuple[int, int]]:
    last = 0
    for hit in marks.finditer(plain):
        yield last, hit.start()
        last = hit.end()

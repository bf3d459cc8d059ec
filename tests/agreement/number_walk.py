"""Whether every number of a text is one of the document's: the walk, for any format that has text.

First the document's own sentences and names are taken out of the text, however they were wrapped or cut: the
numbers in them are the document's. Then phrases of our own that hold a number (`PHRASES`, each with a
reason). Each number that is left must be a figure of the document, rounded as it is printed and in the unit
that stands behind it; without a unit, in any. A word that mixes letters and digits must be one of the
document's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import diagnoser
from tests.agreement.document_figures import Figures, figures_of

Document = dict[str, Any]

PHRASES: Final[Mapping[str, str]] = {
    r"exit code 1\b": "what a gate that trips ends with",
    r"\b95 % interval\b": "the level of every interval of a row: its key is ci95_ns",
    r">99 %": "a share below all never reads 100 %",
    r"<0\.1 %": "a share that is not zero never reads 0.0 %",
    r"<0\.001\b": "a time that is not zero never reads 0",
    r"\b[Kk]ernels under 10 us\b": "the name of short_kernel_frac",
    r"\b(?:32,767|65,536) characters\b": "what a ticket takes",
    r"\b[\d,]+ other steps? (?:is|are) left out\b": "what a page has no room for",
    r"\bPCIe 4 x16 gives at most 32, PCIe 5 x16 at most 64\b": "what a measure is to be held against",
    r"\bat most 50 us from its return\b": "the cold start of a call, in its definition",
    r"\bBF16\b|\bFP8\b|\bFP16\b|\bFP32\b|\bTF32\b": "names of precisions",
}
"""Texts of our own that hold a number, and why it is no figure."""

NUMBER: Final = re.compile(
    r"(?<![\w.])(?P<number>[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?)"
    r"(?:(?P<unit> ?%| ?(?:ms|ns|us|GB/s|GB|MB|kB|GiB|MiB|(?:model )?TFLOP/s|tokens/s)\b|s\b)|(?![\w%]))"
)
WORD: Final = re.compile(r"[\w.+:/<>-]*\d[\w.+:/<>-]*")
_HEAD: Final = 12
"""Letters at the beginning of a text by which it is known when it was cut in the middle."""
_CUT: Final = 40
"""Shorter texts are nowhere cut in the middle."""


@dataclass(frozen=True)
class Walk:
    """The walk over the texts of one document."""

    document: Document

    @cached_property
    def figures(self) -> Figures:
        """The document's, and the version of what writes now."""
        found = figures_of(self.document)
        found.texts.add(diagnoser.__version__)
        return found

    @cached_property
    def _sentences(self) -> list[str]:
        """The document's texts that hold a digit, the longest first, each as it may be found in a text."""
        return sorted((_joined(one) for one in self.figures.texts if re.search(r"\d", one)), key=len)[::-1]

    def strangers(self, text: str) -> list[str]:
        """Numbers of a text that are none of the document's, each with what stands around it."""
        return [f"{number} in: {around}" for number, around in self._strangers(text)]

    def _strangers(self, text: str) -> Iterator[tuple[str, str]]:
        left = self._without_sentences(_joined(text))
        for phrase in PHRASES:
            left = re.sub(phrase, " ", left)
        for match in NUMBER.finditer(left):
            if not self.figures.has(match["number"], (match["unit"] or "").strip()):
                yield match["number"] + (match["unit"] or ""), _around(left, match)
        without = NUMBER.sub(lambda match: " " * len(match[0]), left)
        for match in WORD.finditer(without):
            if not self._is_known(match[0]):
                yield match[0], _around(left, match)

    def _without_sentences(self, text: str) -> str:
        for one in self._sentences:
            bare = one.rstrip(".")
            if bare[1:] in text:
                first = f"[{re.escape(bare[0].lower() + bare[0].upper())}]" if bare[0].isalpha() else ""
                said = first + re.escape(bare[1:] if first else bare)
                text = re.sub(rf"(?<![\w.,]){said}(?!\w|[.,]\d)", " \u00a7 ", text)
            if len(one) > _CUT and one[:_HEAD] in text:
                text = _cut(one).sub(" \u00a7 ", text)
        return text

    def _is_known(self, word: str) -> bool:
        known = word.strip(".:-")
        return known in self._words or (
            word.endswith("...") and any(one.startswith(known) for one in self._words)
        )

    @cached_property
    def _words(self) -> set[str]:
        """Words of the document's keys and texts, and their parts."""
        words = {word.strip(".:-") for text in self.figures.texts for word in WORD.findall(text)}
        return words | {part for word in words for part in re.split(r"[._:/<>]", word) if not part.isdigit()}


def _joined(text: str) -> str:
    """With what cannot be printed as spaces, and every stretch of spaces as one."""
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())


def _cut(text: str) -> re.Pattern[str]:
    """The text with anything of it left out and three dots in its place; it is never longer than the text."""
    before, after = min(600, len(text)), min(300, len(text))
    head, tail = re.escape(text[:_HEAD]), re.escape(text[-6:])
    return re.compile(rf"{head}[^\u00a7]{{0,{before}}}?\.\.\.[^\u00a7]{{0,{after}}}?{tail}")


def _around(text: str, match: re.Match[str]) -> str:
    return text[max(0, match.start() - 40) : match.end() + 25]

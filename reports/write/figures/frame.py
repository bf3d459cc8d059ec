"""What every sheet has: the inputs, the one sentence with what it rests on, and what to type
next.
"""

from collections.abc import Iterable
from itertools import chain
from typing import Final

from reports.content.blocks import Block, Command, Headline, Items, Sentence, Tone
from reports.content.names import capital, plain
from reports.content.page import Page
from reports.write.figures.canvas import BODY, HUGE, LARGE, LINE, SMALL, Area
from reports.write.figures.lettering import cut, fitted, harmless, inches, wrapped
from reports.write.palette import HAIR, INK, SOFT, TONES

_LINES: Final = 2
"""Of the one sentence, and of what stands under it."""

_NUMBER: Final = 30.0
"""Points of the one number that leads a sheet."""
_BESIDE: Final = 0.25
"""Inches between it and what stands beside it."""
APART: Final = 0.15
"""Inches between the parts of a sheet."""
_LABELS: Final = 1.85
"""Inches of the labels in front of sentences."""
_NARROW: Final = 7.0
"""Inches of a column below which a label stands above its sentence."""


def draw_frame(area: Area, page: Page, version: str) -> float:
    """What stands above and below the rest of a sheet; the inches that the upper part takes."""
    title = fitted(plain(page.title), area.width * 0.5, BODY, bold=True)
    area.strong(0, 0.08, title)
    left, facts = inches(title, BODY, bold=True) + 0.25, harmless(plain(page.facts))
    below = inches(facts, BODY) > area.width - left
    if below:
        left = 0.0
    area.text(left, 0.08 + below * LINE, fitted(facts, area.width - left, BODY), BODY, color=SOFT)
    top, bottom = 0.4 + below * LINE, area.height - 0.03
    for headline in page.of_kind(Headline):
        top = _headline(area, headline, top)
    area.across(top, 0.01).axes().axhline(0.005, color=HAIR, linewidth=1)
    maker = harmless(f"moe-diag {version}")
    area.note(area.width, bottom, maker, ha="right")
    for block in page.of_kind(Command):
        command_text = harmless(f"{block.said}  ")
        area.note(0, bottom, command_text)
        left = inches(command_text, SMALL)
        room = area.width - left - inches(maker, SMALL) - 0.3
        area.strong(left, bottom, fitted(block.line, room, SMALL, bold=True), SMALL)
    return top + APART


def _headline(area: Area, block: Headline, top: float) -> float:
    """The one number, the same in its unit, and beside both what is said; without a number that
    alone.
    """
    tone, statement = TONES[block.tone][0], capital(plain(block.said))
    area.strong(0, top, block.label, color=tone)
    top += 0.34
    if block.figure:
        left, top = 0.0, top + 0.26
        for words, size, colour in ((block.figure, _NUMBER, tone), (block.amount, HUGE, INK)):
            area.strong(left, top, words, size, color=colour, va="baseline")
            left += inches(words, size, bold=True) + _BESIDE
        for place, line in enumerate(
            reversed(cut(wrapped(statement, area.width - left, LARGE), _LINES))
        ):
            area.text(left, top - place * 0.24, line, LARGE, va="baseline")
        top += 0.3
    else:
        size = HUGE
        if len(wrapped(statement, area.width, size, bold=True)) > 1:
            size *= 0.8
        for line in cut(wrapped(statement, area.width, size, bold=True), _LINES):
            area.strong(0, top, line, size)
            top += 0.36
    for line in cut(wrapped(" ".join(map(plain, block.under)), area.width, BODY), _LINES):
        area.text(0, top, line, BODY, color=SOFT)
        top += LINE
    return top


def draw_sentences(area: Area, blocks: Iterable[Block]) -> float:
    """Each with its label before it, or above it where a column is narrow; the inches that they
    take.
    """
    stacked = area.width < _NARROW
    left, top = 0.0 if stacked else _LABELS, 0.08
    for block in blocks:
        if isinstance(block, Sentence):
            label, texts, colour = block.label, [plain(block.said)], INK
            if block.tone is Tone.MUTED:
                colour = TONES[block.tone][0]
        elif isinstance(block, Items):
            label, texts, colour = block.title, [*map(plain, block.items)], SOFT
        else:
            continue
        lines = chain.from_iterable(wrapped(text, area.width - left, BODY) for text in texts)
        if label and top + stacked * LINE < area.height:
            area.strong(0, top, fitted(label, _LABELS - 0.1, BODY, bold=True))
            top += stacked * LINE
        for line in lines:
            if top > area.height:
                return top
            area.text(left, top, line, BODY, color=colour)
            top += LINE
        top += 0.08
    return top

"""Blocks and words as HTML: one macro a block, all text escaped, terms linked to the page's glossary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from reports.content.blocks import (
    Bar,
    Block,
    Code,
    CodeBlock,
    Command,
    Fold,
    Headline,
    Items,
    Page,
    Part,
    Plan,
    Quantity,
    Sentence,
    Table,
    Term,
    View,
    Words,
)
from reports.content.names import name_of
from reports.measures import Measure, measures
from reports.write.html.environment import environment, harmless
from reports.write.html.looks import length
from traces.spelling import percent

if TYPE_CHECKING:
    from markupsafe import Markup

_MACROS: Final[dict[type, str]] = {
    Headline: "headline",
    Sentence: "sentence",
    Items: "items",
    Table: "table",
    Bar: "bar",
    CodeBlock: "code_block",
    Plan: "plan",
    Command: "command",
    Fold: "fold",
    Part: "part",
}
_NOTHING: Final[Mapping[str, tuple[Words, ...]]] = {}
_LABELLED: Final = 0.11
"""Narrower pieces of a bar have no room for their share; each stands in the legend."""
_LETTER: Final = 0.0145
"""Of a bar's width, that a letter takes where the bar is narrowest."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A piece of a bar where it lies, in percent; `label` is empty where none fits."""

    name: str
    share: str
    amount: str
    hue: str
    left: str
    width: str
    label: str


class Marks:
    """The blocks of one page; `glossary` grows by the terms they use, in the order of their first use."""

    def __init__(self, view: View, more_of: Mapping[str, tuple[Words, ...]] = _NOTHING) -> None:
        """`more_of`: what is folded in the card of a step, by its id."""
        self._keys = view.keys
        self._terms: dict[str, Measure] = {}
        names = {
            "said": self.said,
            "show": self.show,
            "pieces": pieces,
            "is_quantity": is_quantity,
            "more_of": more_of.get,
        }
        self._macros = environment().get_template("blocks.html.j2").make_module(names)

    @property
    def glossary(self) -> tuple[Measure, ...]:
        """What the page's terms mean."""
        return tuple(self._terms.values())

    def show(self, block: Block) -> Markup:
        """One block."""
        macro = getattr(self._macros, _MACROS[type(block)])
        shown: Markup = macro(block)
        return shown

    def said(self, words: Words) -> Markup:
        """Words with their code and terms."""
        from markupsafe import Markup

        return Markup("").join(self._span(one) for one in words)

    def _span(self, span: str | Code | Term) -> Markup:
        from markupsafe import Markup, escape

        if isinstance(span, Term):
            return self._term(span.key)
        if isinstance(span, Code):
            return Markup("<code>{}</code>").format(harmless(span.text))
        return escape(harmless(span))

    def _term(self, key: str) -> Markup:
        """Its name, linked to the glossary; only the first of a page is a stop of the Tab key."""
        from markupsafe import Markup, escape

        measure = measures().get(key) or measures().get(key.rpartition(".")[2])
        if measure is None:
            return escape(harmless(name_of(key)))
        name = measure.name
        tab = Markup(' tabindex="-1"') if name in self._terms else ""
        self._terms[name] = measure
        also = Markup(" <code>{}</code>").format(key) if self._keys else ""
        link = Markup('<a class="term" href="#word-{0}" data-term="{0}"{1}>{2}</a>{3}')
        return link.format(name, tab, measure.title, also)


def pieces(bar: Bar) -> list[Drawn]:
    """The pieces of a bar side by side."""
    ends = list(accumulate((one.share for one in bar.pieces), initial=0.0))
    drawn = []
    for one, left in zip(bar.pieces, ends, strict=False):
        share = percent(one.share)
        full = f"{one.name} {share}"
        fits = len(full) * _LETTER < one.share
        label = full if fits else share if one.share > _LABELLED else ""
        place = (length(left), length(one.share))
        drawn.append(Drawn(one.name, share, one.amount, one.hue.value, *place, label))
    return drawn


def is_quantity(cell: object) -> bool:
    """Whether a cell of a table is a number rather than words."""
    return isinstance(cell, Quantity)


def shared(marks: Marks, page: Page) -> dict[str, object]:
    """What every template reads."""
    return {"page": page, "show": marks.show, "words": marks.said, "glossary": lambda: marks.glossary}

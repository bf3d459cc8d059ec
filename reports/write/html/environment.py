"""A page of one file: its templates, style and script inlined, and the policy that allows no other.

Every block is one macro, all text is escaped, terms are linked to the page's glossary.
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import accumulate
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from reports.content.blocks import Bar, Block, Code, Piece, Quantity, Several, Term, Words
from reports.content.names import name_of, when
from reports.content.page import Page, View
from reports.measures import Measure, measures
from reports.rows import each
from reports.write.html.timeline import length
from traces.spelling import percent, printable

_WIDTH: Final = 4_000
"""Longest text shown, in characters: sentences of ours are shorter."""

STYLES: Final = ("page.css", "blocks.css", "analysis.css")
SCRIPTS: Final = ("page.js", "plan.js")
TIMELINE_SCRIPTS: Final = (*SCRIPTS, "pair.js", "timeline_draw.js", "timeline.js")
"""Files of this folder that go into a page of blocks, and into one with timelines."""

Content = Mapping[str, object]


def assemble(template: str, content: Content, scripts: Sequence[str], styles: Sequence[str]) -> str:
    """The finished page: `template` of `templates/`, with the named scripts and styles of this
    folder.

    The template extends `base.html.j2`. The page may load nothing at all, and run and look only as
    these files say: its policy holds their hashes, so no inline handler, `style` attribute or other
    script takes effect.
    """
    style = "\n".join(map(_asset, styles))
    script = "\n".join(map(_asset, scripts))
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    page = environment().get_template(template)
    text = page.render(content, policy=Markup(policy), style=Markup(style), script=Markup(script))
    return text.rstrip() + "\n"


def embedded(data: object) -> str:
    """Data as JSON that cannot end the `<script type="application/json">` around it; ASCII only."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


def harmless(value: object) -> object:
    """Every text that a template prints, before it is escaped: no control characters, no turned
    reading.

    A number stays beside its percent sign.
    """
    if isinstance(value, str) and not isinstance(value, Markup):
        return printable(value, _WIDTH).replace(" %", "\u00a0%")
    return value


@cache
def environment() -> Environment:
    made = Environment(
        loader=PackageLoader("reports.write.html"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"embedded": embedded, "length_of": length, "percent": percent}
    made.tests["quantity"] = lambda cell: isinstance(cell, Quantity)
    made.globals["pieces"] = pieces
    return made


def _asset(name: str) -> str:
    text = files("reports.write.html").joinpath(name).read_text(encoding="utf-8").strip()
    if "</s" in text.lower():
        raise ValueError(f"{name} would end its own element in the page")
    return text


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


_LABELLED: Final = 0.11
"""Narrower pieces of a bar have no room for their share; each stands in the legend."""
_LETTER: Final = 0.0145
"""Of a bar's width, that a letter takes where the bar is narrowest."""


class PageMarks:
    """The blocks of one page; `terms` grows by the terms they use, in the order of their first
    use.
    """

    def __init__(self, view: View, more_of: Mapping[str, Several] = {}) -> None:
        """`more_of`: what is folded in the card of a step, by its id."""
        self.keys = view.keys
        self.terms = dict[str, Measure]()
        names = {"said": self.said, "show": self.show, "more_of": more_of.get}
        self._macros = environment().get_template("blocks.html.j2").make_module(names)

    def show(self, block: Block, *more: Markup) -> Markup:
        """By the macro that has the name of its type; `more`: what stands within it."""
        shown: Markup = getattr(self._macros, type(block).__name__)(block, *more)
        return shown

    def said(self, words: Words) -> Markup:
        return Markup("").join(map(self._span, words))

    def _span(self, span: str | Code | Term) -> Markup:
        if isinstance(span, Term):
            return self._term(span.key)
        if isinstance(span, Code) and span.whole:
            code = Markup('<code title="{}">{}</code>')
            return code.format(harmless(span.whole), harmless(span.text))
        if isinstance(span, Code):
            return Markup("<code>{}</code>").format(harmless(span.text))
        return escape(harmless(span))

    def _term(self, key: str) -> Markup:
        """Its name, linked to the glossary; only the first of a page is a stop of the Tab key."""
        measure = measures().get(key) or measures().get(key.rpartition(".")[2])
        if not measure:
            return escape(harmless(name_of(key)))
        tab = Markup(when(measure.name in self.terms, ' tabindex="-1"'))
        self.terms[measure.name] = measure
        link = Markup('<a class="term" href="#word-{0}" data-term="{0}"{1}>{2}</a>')
        term = link.format(measure.name, tab, measure.title)
        if self.keys:
            return term + Markup(" <code>{}</code>").format(key)
        return term


def pieces(bar: Bar) -> list[tuple[Piece, str, str]]:
    """Each piece, where it begins, and its label, which is empty where none fits."""
    ends, drawn = accumulate(each(bar.pieces, "share"), initial=0.0), []
    for piece, left in zip(bar.pieces, ends, strict=False):
        label = f"{piece.name} {percent(piece.share)}"
        if len(label) * _LETTER >= piece.share:
            label = when(piece.share > _LABELLED, percent(piece.share))
        drawn.append((piece, length(left), label))
    return drawn


def shared(marks: PageMarks, page: Page) -> dict[str, object]:
    return {
        "page": page,
        "show": marks.show,
        "words": marks.said,
        "glossary": marks.terms.values,
        "keys": marks.keys,
    }

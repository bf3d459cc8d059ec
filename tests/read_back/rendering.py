"""A document in any format, as `moe-diag report` writes it."""

from __future__ import annotations

from typing import Final, get_args

from reports.content.page import Asked, Detail
from reports.formats import FORMATS, FigureForm, ResultKind
from reports.result.codec import Document
from reports.result.read import typed

_OF: Final = {kind: tuple(name for name, one in FORMATS.items() if kind in one.kinds) for kind in ResultKind}
PICTURES: Final[tuple[str, ...]] = get_args(FigureForm)
ANALYSIS: Final = _OF[ResultKind.ANALYSIS]
COMPARISON: Final = _OF[ResultKind.COMPARISON]


def rendered(document: Document, form: str, detail: Detail = Detail.FIRST) -> str | bytes:
    """A document, read as one from a file, in a format."""
    return FORMATS[form].write(typed(document), Asked(detail))


def text(document: Document, form: str, detail: Detail = Detail.FIRST) -> str:
    """The same where the format is a text."""
    said = rendered(document, form, detail)
    assert isinstance(said, str)
    return said

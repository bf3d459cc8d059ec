"""A document in any format, as `moe-diag report` writes it."""

from __future__ import annotations

from typing import Final, get_args

from reports.content.blocks import Detail
from reports.formats import FORMS, WRITERS, Asked, FigureForm, Kind, kind_of
from reports.result.codec import Document
from reports.result.read import typed

PICTURES: Final[tuple[str, ...]] = get_args(FigureForm)
ANALYSIS: Final = FORMS[Kind.ANALYSIS]
COMPARISON: Final = FORMS[Kind.COMPARISON]


def rendered(document: Document, form: str, detail: Detail = Detail.FIRST) -> str | bytes:
    """A document, read as one from a file, in a format."""
    return WRITERS[form](typed(document), Asked(detail))


def text(document: Document, form: str, detail: Detail = Detail.FIRST) -> str:
    """The same where the format is a text."""
    said = rendered(document, form, detail)
    assert isinstance(said, str)
    return said


def forms_of(document: Document) -> tuple[str, ...]:
    """The formats that a document has."""
    return FORMS[kind_of(typed(document))]

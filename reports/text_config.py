"""What a configuration says beside a diagnosis, as plain text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reports.config_sentences import (
    answer_sentences,
    broken_sentences,
    finding_sentences,
    legal_sentence,
    number_sentences,
    problem_sentences,
)
from reports.document import Document
from reports.layout import INDENT, titled, wrap

_SHOWN: Final = 6


def config_lines(document: Document, everything: bool) -> Iterator[str]:
    """Nothing where no configuration was given: legality, contradictions, numbers."""
    if document.get("configuration") is None:  # results of earlier versions have none
        return
    yield ""
    yield from titled("Config", legal_sentence(document))
    for said in (*answer_sentences(document["configuration"]["checked"]), *number_sentences(document)):
        yield from wrap(said)
    listed = [
        *finding_sentences(document),
        *broken_sentences(document, everything),
        *problem_sentences(document),
    ]
    shown = listed if everything else listed[:_SHOWN]
    for said in shown:
        yield from wrap(f"- {said}", INDENT, INDENT + "  ")
    if len(listed) > len(shown):
        yield from wrap(f"- {len(listed) - len(shown)} more: with --all.")

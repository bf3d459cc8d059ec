"""What a configuration says beside a diagnosis, as plain text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from reports.config_numbers import number_sentences
from reports.config_sentences import answer_sentences, legal_sentence, mend_first_sentence, mend_sentences
from reports.document import Document
from reports.layout import INDENT, titled, wrap

_SHOWN: Final = 8


def config_lines(document: Document, everything: bool) -> Iterator[str]:
    """Nothing where no configuration was given: legality, what contradicts, numbers."""
    if document.get("configuration") is None:  # results of earlier versions have none
        return
    yield ""
    yield from titled("Config", legal_sentence(document))
    for said in answer_sentences(document["configuration"]["checked"]):
        yield from wrap(f"{said}.")
    listed = mend_sentences(document, everything)
    shown = listed if everything else listed[:_SHOWN]
    yield from items(shown)
    if len(listed) > len(shown):
        yield from items([f"{len(listed) - len(shown)} more: with --all."])
    if document["traces"] and (first := mend_first_sentence(document)):
        yield from items([first])
    yield from _numbers([*number_sentences(document, everything)])


def items(listed: Sequence[str]) -> Iterator[str]:
    """Sentences as a list in the text's column."""
    for said in listed:
        yield from wrap(f"- {said}", INDENT, INDENT + "  ")


def _numbers(said: Sequence[str]) -> Iterator[str]:
    if said:
        yield ""
    for place, one in enumerate(said):
        if place == 0:
            yield from titled("Numbers", one)
        elif one.startswith("- "):
            yield from items([one.removeprefix("- ")])
        else:
            yield from wrap(one)

"""What a configuration says beside a diagnosis, as GitHub markdown: legal or not, findings, numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from reports.config_numbers import number_sentences
from reports.config_sentences import (
    answer_sentences,
    experiment_sentences,
    legal_sentence,
    mend_first_sentence,
    mend_sentences,
)
from reports.document import Document
from reports.markdown_marks import code, folded, plain, table

_SHOWN: Final = 8
_ORDER: Final = ("violated", "unknown", "met", "not_applicable")


def config_lines(document: Document, everything: bool) -> Iterator[str]:
    """Nothing where no configuration was given."""
    if document.get("configuration") is None:  # results of earlier versions have none
        return
    yield from ("", "## Configuration", "", f"**{plain(legal_sentence(document))}**", "")
    yield from (f"- {plain(said)}" for said in answer_sentences(document["configuration"]["checked"]))
    if first := mend_first_sentence(document):
        yield f"- {plain(first)}"
    listed = mend_sentences(document, everything)
    shown = listed if everything else listed[:_SHOWN]
    yield from (f"- {plain(said)}" for said in shown)
    if len(listed) > len(shown):
        yield f"- {len(listed) - len(shown)} more: with {code('--all')}."
    yield from _numbers(document, everything)
    yield from folded(
        "The plan as experiments", [f"- {plain(one)}" for one in experiment_sentences(document)]
    )
    yield from folded("Rules of the workflow", _rules(document["workflow"], everything))
    yield from folded("Rules of these versions that could not be told", _undecided(document))


def _numbers(document: Document, everything: bool) -> Iterator[str]:
    said = [*number_sentences(document, everything)]
    if said:
        yield ""
    for one in said:
        inner = one.startswith("- ")
        yield f"{'  ' if inner else ''}- {plain(one.removeprefix('- '))}"


def _rules(steps: list[dict[str, Any]], everything: bool) -> Iterator[str]:
    """What is violated first; rules about what the run does not have where everything is asked for."""
    rows = [
        [
            plain(one["state"].replace("_", " ")),
            plain(one["title"]),
            plain(one["because"]),
            plain("; ".join(part for part in (one["advice"], one["fix"], one["tells"]) if part)),
        ]
        for state in (_ORDER if everything else _ORDER[:-1])
        for one in steps
        if one["state"] == state
    ]
    if rows:
        yield from table(["State", "Rule", "Because", "What to do, or to give"], rows)


def _undecided(document: Document) -> Iterator[str]:
    for one in document["rules"]["undecided"]:
        yield f"- {plain(one['text'])} To tell: {', '.join(map(code, one['asks']))}"

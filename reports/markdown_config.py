"""What a configuration says, in a ticket: legal or not, findings, numbers, the rules of the workflow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from reports.config_numbers import number_sentences
from reports.config_sentences import (
    answer_sentences,
    experiment_sentences,
    legal_sentence,
    mend_sentences,
)
from reports.document import Document
from reports.markdown_blocks import (
    Block,
    Code,
    Fold,
    Item,
    Line,
    Phrase,
    Strong,
    folded,
    items,
    joined,
    table,
)

_SHOWN: Final = 3
_ORDER: Final = ("violated", "unknown", "met", "not_applicable")


def config_blocks(document: Document, everything: bool) -> Iterator[Block]:
    """Legal or not, and what to mend; numbers, the plan and rules folded."""
    yield from legal_blocks(document, everything, _SHOWN)
    yield from config_folds(document, everything)


def legal_blocks(document: Document, everything: bool, shown: int) -> Iterator[Block]:
    """The verdict on a configuration, who was asked, and the first `shown` of what to mend."""
    yield Line((Strong(legal_sentence(document)),))
    listed = mend_sentences(document, everything)
    first = listed if everything else listed[:shown]
    yield from items([*first, *answer_sentences(document["configuration"]["checked"])])
    yield from folded("More to mend", items(listed[len(first) :]))


def config_folds(document: Document, everything: bool) -> Iterator[Fold]:
    """Folded: numbers, the plan as experiments, rules and what could not be told of them."""
    yield from folded("Throughput and memory", items(_numbers(document, everything)))
    yield from folded("The plan as experiments", items(experiment_sentences(document)))
    yield from folded("Rules of the workflow", _rules(document["workflow"], everything))
    undecided = items(_undecided(document))
    yield from folded("Rules of these versions that could not be told", undecided)


def _numbers(document: Document, everything: bool) -> Iterator[Item]:
    """Sentences, each with those that begin with a dash under it."""
    words, under = "", list[Phrase]()
    for one in number_sentences(document, everything):
        if one.startswith("- "):
            under.append(one.removeprefix("- "))
            continue
        if words:
            yield Item(words, tuple(under))
        words, under = one, []
    if words:
        yield Item(words, tuple(under))


def _rules(steps: list[dict[str, Any]], everything: bool) -> Iterator[Block]:
    """What is violated first; rules about what the run does not have where everything is asked for."""
    rows = [
        [
            one["state"].replace("_", " "),
            one["title"],
            one["because"],
            "; ".join(part for part in (one["advice"], one["fix"], one["tells"]) if part),
        ]
        for state in (_ORDER if everything else _ORDER[:-1])
        for one in steps
        if one["state"] == state
    ]
    yield from table(["State", "Rule", "Because", "What to do, or to give"], rows)


def _undecided(document: Document) -> Iterator[Phrase]:
    for one in document["rules"]["undecided"]:
        yield (f"{one['text']} To tell: ", *joined(map(Code, one["asks"]), ", "))

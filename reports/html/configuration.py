"""What the run's configuration says beside the diagnosis, where one was given."""

from __future__ import annotations

from typing import Any, Final

from reports.config_numbers import number_sentences
from reports.config_sentences import (
    answer_sentences,
    experiment_sentences,
    legal_sentence,
    mend_sentences,
)
from reports.html.section import Section, Table

_ORDER: Final = ("violated", "unknown", "met", "not_applicable")
Document = dict[str, Any]


def configuration(document: Document, everything: bool) -> Section:
    """Legal or not, what contradicts, numbers, and the workflow rule by rule."""
    title = "The configuration"
    if document.get("configuration") is None:  # results of earlier versions have none
        return Section("configuration", title)
    numbers = (said.removeprefix("- ") for said in number_sentences(document, everything))
    plan = experiment_sentences(document)
    rules, undecided = _rules(document), _undecided(document)
    legal = legal_sentence(document)
    return Section(
        "configuration",
        title,
        said=(
            f"{legal[:1].upper()}{legal[1:]}",
            *(f"{said}." for said in answer_sentences(document["configuration"]["checked"])),
        ),
        listed=(*mend_sentences(document, everything), *numbers, *plan),
        folded=tuple(table for table in (rules, undecided) if table.rows),
    )


def _rules(document: Document) -> Table:
    rows = tuple(
        (
            one["title"],
            one["state"].replace("_", " "),
            one["because"],
            "; ".join(part for part in (one["advice"], one["fix"], one["tells"]) if part),
        )
        for state in _ORDER
        for one in document["workflow"]
        if one["state"] == state
    )
    return Table("Rules of the workflow", ("Rule", "State", "Because", "What to do, or to give"), rows)


def _undecided(document: Document) -> Table:
    rows = tuple((one["text"], ", ".join(one["asks"])) for one in document["rules"]["undecided"])
    return Table("Rules of these versions that could not be told", ("Rule", "What would tell"), rows)

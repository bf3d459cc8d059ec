"""A configuration judged without a trace, as plain text: is it legal, the workflow rule by rule, the plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reports.config_sentences import experiment_sentences, step_sentences, untold_sentences
from reports.document import Document
from reports.layout import INDENT, titled, wrap
from reports.sentences import choice_sentences, verdict_sentences, wall_sentence
from reports.text_config import config_lines
from reports.text_verdict import plan_lines
from reports.words import percent, printable, wall_words

_PHASES: Final = {
    "fit": "Fit",
    "scale": "Scale",
    "folding": "Folding",
    "prerequisites": "Needs",
    "profile": "Profile",
}


def render_check(document: Document, everything: bool = False) -> str:
    """The whole report, ending in a line break; `everything`: rules that are met as well."""
    lines = [
        f"moe-diag {document['tool']['version']}",
        *wrap(f"{printable(document['about'], 60)}: a configuration, judged without a trace", "  "),
        *config_lines(document, everything),
        *_workflow(document, everything),
        *_choices(document),
        *_walls(document),
        "",
        *_next(document, everything),
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _workflow(document: Document, everything: bool) -> Iterator[str]:
    states = [one["state"] for one in document["workflow"]]
    counted = ", ".join(
        f"{states.count(state)} {state.replace('_', ' ')}"
        for state in ("violated", "unknown", "met", "not_applicable")
        if state in states
    )
    yield ""
    yield from titled("Workflow", f"{len(states)} rules: {counted}.")
    last = ""
    for phase, said in step_sentences(document, everything):
        title = _PHASES[phase] if phase != last else ""
        last = phase
        for place, line in enumerate(wrap(f"- {said}", INDENT, INDENT + "  ")):
            yield f"{title:<9}{line[len(INDENT) :]}" if place == 0 else line
    if not everything:
        for said in untold_sentences(document):
            yield from wrap(f"- {said}.", INDENT, INDENT + "  ")
        yield from wrap("Every rule with its reason: with --all.")


def _choices(document: Document) -> Iterator[str]:
    said = [*choice_sentences(document, everything=True)]
    if said:
        yield ""
        yield from titled("Choose", f"- {said[0]}")
        for one in said[1:]:
            yield from wrap(f"- {one}", INDENT, INDENT + "  ")


def _walls(document: Document) -> Iterator[str]:
    if not document["judged"]:
        return
    yield ""
    yield from titled("Verdict", wall_sentence(document))
    for said in verdict_sentences(document):
        yield from wrap(said)
    for wall in document["walls"]:
        share = "not told" if wall["cost_frac"] is None else f"at most {percent(wall['cost_frac'])}"
        why = f": {wall['missing'][0]}" if wall["missing"] else ""
        yield from wrap(f"{wall_words(wall['id'])}: {wall['outcome']}, {share}{why}")


def _next(document: Document, everything: bool) -> Iterator[str]:
    parts = [*plan_lines(document, everything)]
    parts += [["- " + said] for said in experiment_sentences(document)]
    for index, (first, *rest) in enumerate(parts):
        yield from titled("Next" if index == 0 else "", first)
        for line in rest:
            yield from wrap(line, INDENT + "   ", INDENT + "     ")

"""A configuration judged without a trace, as plain text: is it legal, the workflow rule by rule, the plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from reports.config_sentences import (
    experiment_sentences,
    mend_first_sentence,
    no_plan_sentence,
    step_sentences,
    untold_sentence,
)
from reports.document import Document
from reports.layout import INDENT, titled, wrap
from reports.redaction import redaction_sentence
from reports.sentences import choice_sentences, wall_sentence
from reports.text_config import config_lines, items
from reports.text_verdict import plan_lines
from reports.words import percent, printable, wall_words

_PHASES: Final = {
    "fit": "Fit",
    "scale": "Scale",
    "folding": "Folding",
    "prerequisites": "Needs",
    "profile": "Profile",
}
_TELLS: Final = 4
_NAME: Final = 22


def render_check(document: Document, everything: bool = False) -> str:
    """The whole report, ending in a line break; `everything`: rules that are met as well."""
    lines = [
        f"moe-diag {document['tool']['version']}",
        *wrap(f"{printable(document['about'], 60)}: a configuration, judged without a trace", "  "),
        *_warnings(document),
        *config_lines(document, everything),
        *_workflow(document, everything),
        *_choices(document),
        *_walls(document),
        "",
        *_next(document, everything),
        "",
        *wrap(redaction_sentence(document), ""),
    ]
    return "\n".join(printable(line, len(line)).rstrip() for line in lines) + "\n"


def _warnings(document: Document) -> Iterator[str]:
    for warning in document["warnings"]:
        yield from wrap(f"Warning: {printable(warning, 400)}", "  ")


def _workflow(document: Document, everything: bool) -> Iterator[str]:
    states = [one["state"] for one in document["workflow"]]
    counted = ", ".join(
        f"{states.count(state)} {state.replace('_', ' ')}"
        for state in ("violated", "unknown", "met", "not_applicable")
        if state in states
    )
    violated = [*step_sentences(document, violated=True)]
    yield ""
    yield from titled("Workflow", f"{len(states)} rules: {counted}.{' Violated:' if violated else ''}")
    yield from _by_phase(violated)
    if everything:
        others = [*step_sentences(document, violated=False)]
        yield from ("", *wrap("The others:"), *_by_phase(others))
        return
    if untold := untold_sentence(document, _TELLS):
        yield from wrap(untold)
    yield from wrap("Every rule with its reason: with --all.")


def _by_phase(steps: list[tuple[str, str]]) -> Iterator[str]:
    """Rules as a list, each phase named in the margin of its first."""
    last = ""
    for phase, said in steps:
        first, *rest = items([said])
        title = _PHASES[phase] if phase != last else ""
        yield f"{title:<{len(INDENT)}}{first.removeprefix(INDENT)}"
        yield from rest
        last = phase


def _choices(document: Document) -> Iterator[str]:
    said = [*choice_sentences(document, everything=True)]
    if said:
        yield ""
        yield from titled("Choose", f"- {said[0]}")
        yield from items(said[1:])


def _walls(document: Document) -> Iterator[str]:
    if not document["judged"]:
        return
    yield ""
    yield from titled("Verdict", wall_sentence(document))
    for said in _about_verdict(document["verdict"]):
        yield from wrap(said)
    for wall in sorted(document["walls"], key=lambda one: -(one["cost_frac"] or 0)):
        name = f"{wall_words(wall['id']):<{_NAME}}"
        if wall["cost_frac"] is None:
            said = "finding, its cost not told" if wall["outcome"] == "finding" else "not told"
            told = f"{name}{said}: {'; '.join(wall['missing'])}"
        else:
            told = f"{name}at most {percent(wall['cost_frac'])}, {wall['outcome']}"
        yield from wrap(told, INDENT, INDENT + " " * _NAME)


def _about_verdict(verdict: dict[str, Any]) -> Iterator[str]:
    """How sure it is, what it is tied with, what bounds the run; nothing was replayed, so nothing is next."""
    if verdict["tied_with"]:
        tied = " and ".join(map(wall_words, verdict["tied_with"]))
        yield f"Tied with {tied}: their costs cannot be told apart."
    if verdict["confidence"]:
        why = "; ".join(verdict["confidence_because"]) or "nothing speaks against it"
        yield f"Confidence {verdict['confidence']}: {why}."
    if verdict["largest_bucket"] is None:
        return  # nothing says the budget of a step
    bound = f"Bound by {wall_words(verdict['bound'])}" if verdict["bound"] else "What bounds it is not told"
    yield f"{bound}: {verdict['because'][-1]}."


def _next(document: Document, everything: bool) -> Iterator[str]:
    parts = [["- " + said] for said in [mend_first_sentence(document)] if said]
    plan = [*plan_lines(document, everything)]
    parts += plan or [[f"- No change is planned: {no_plan_sentence(document)}"]]
    parts += [["- " + said] for said in experiment_sentences(document)]
    for index, (first, *rest) in enumerate(parts):
        yield from titled("Next" if index == 0 else "", first)
        for line in rest:
            yield from wrap(line, INDENT + "   ", INDENT + "     ")

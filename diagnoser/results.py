"""What is asked of the results of a command: formats, their place, a ticket. Planned before any work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from traces.errors import UsageError

if TYPE_CHECKING:
    from diagnoser.output import Target
    from diagnoser.ticket import Ticket
    from reports.document import Document

Kind = Literal["analysis", "comparison", "configuration"]
"""Of a document."""

_ENDINGS: Final[Mapping[Kind, str]] = {
    "analysis": "_moe-diag",
    "comparison": "_compared",
    "configuration": "_moe-diag",
}


@dataclass(frozen=True, slots=True)
class Output:
    """Names of formats, where their files go, whether everything is shown, and a ticket's folder.

    `page`: how a ticket's page is marked up, `markdown` or `jira`.
    """

    forms: Sequence[str]
    place: str = "-"
    force: bool = False
    everything: bool = False
    ticket: Path | None = None
    page: str = "markdown"


@dataclass(frozen=True, slots=True)
class Plan:
    """Where every result goes; nothing is in the way."""

    kind: Kind
    targets: Sequence[Target]
    ticket: Ticket | None


def output_of(
    forms: Sequence[str] | None,
    place: str,
    force: bool = False,
    everything: bool = False,
    flavor: str | None = None,
    ticket: Path | None = None,
) -> Output:
    """What the options ask for. Without a format it is as the file's name ends, else text; none for a ticket.

    Raises `UsageError` for a flavor of what is no markdown.
    """
    names = [str(one) for one in forms or _named(place, ticket)]
    page = "jira" if flavor == "jira" else "markdown"
    if flavor and not {"markdown", "jira"} & set(names) and ticket is None:
        raise UsageError(f"--flavor is of markdown. Type the same line with -f markdown --flavor {flavor}")
    return Output(
        [page if one == "markdown" else one for one in names], place, force, everything, ticket, page
    )


def _named(place: str, ticket: Path | None) -> list[str]:
    from reports.emit import FRAMEWORKS
    from reports.render import EXTENSIONS

    if place in ("-", "."):
        return [] if ticket and place == "-" else ["text"]
    fits = [
        form
        for form, extension in EXTENSIONS.items()
        if place.endswith(f".{extension}") and form not in FRAMEWORKS
    ]
    return [max(fits, key=lambda form: len(EXTENSIONS[form]))] if fits else ["text"]


def plan_results(
    kind: Kind, output: Output, runs: Sequence[Path], beside: Sequence[Path | None] = ()
) -> Plan:
    """Where everything goes. `runs`: what the results are of, the one that names them first.

    `beside`: other inputs, which are never replaced either. Raises `UsageError` for a format that these
    results do not have, and what `plan_targets` and `plan_ticket` raise.
    """
    from diagnoser.output import base_name, plan_targets
    from reports.render import BINARY, EXTENSIONS

    known = renderers(kind)
    for form in output.forms:
        if form not in known:
            there = ", ".join(sorted({*known} - {"bridge", "megatron-lm"}))
            raise UsageError(f"a judged configuration has no {form}. Give one of {there}.")
    inputs = [*runs, *(path for path in beside if path)]
    ending = _ENDINGS[kind]
    targets = plan_targets(output.forms, output.place, inputs, EXTENSIONS, output.force, ending, BINARY)
    if output.ticket is None:
        return Plan(kind, targets, None)
    if kind == "configuration":
        raise UsageError("a ticket is of a trace or of two. Give what moe-diag analyze or compare made.")
    from diagnoser.ticket import plan_ticket

    base = base_name(runs[0]) + (ending if kind == "comparison" else "")
    return Plan(kind, targets, plan_ticket(output.ticket, base, output.page, output.force))


def renderers(kind: Kind) -> Mapping[str, Callable[[Document, bool], str | bytes]]:
    """Every format of such a document."""
    if kind == "comparison":
        from reports.comparison.render import COMPARISON_FIGURES, COMPARISON_RENDERERS

        return {**COMPARISON_RENDERERS, **COMPARISON_FIGURES}
    from reports.render import CHECK_RENDERERS, FIGURES, RENDERERS

    return CHECK_RENDERERS if kind == "configuration" else {**RENDERERS, **FIGURES}


def write_results(document: Document, plan: Plan, output: Output) -> None:
    """Render and write everything. A ticket says where it is, where nothing else goes to stdout."""
    from diagnoser.output import Target, write

    known = renderers(plan.kind)
    if plan.ticket:
        from diagnoser.ticket import PAGES, ticket_words, write_ticket

        def render(form: str) -> str | bytes:
            return known[form](document, output.everything and form not in PAGES)

        write_ticket(plan.ticket, document, render)
    for target in plan.targets:
        write(target, known[target.form](document, output.everything), output.force)
    if plan.ticket and all(target.path for target in plan.targets):
        write(Target("text", None), ticket_words(plan.ticket), force=False)

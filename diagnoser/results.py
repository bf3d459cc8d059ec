"""What is asked of the results of a command: formats, their place, a ticket. Planned before any work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from diagnoser.output import Target, base_name, plan_targets, write
from diagnoser.screen import screen
from reports.content.blocks import Detail, View
from reports.frameworks import FRAMEWORKS
from reports.write.formats import BINARY, EXTENSIONS, FORMS, WRITERS, Asked, Kind, Whole
from traces.errors import UsageError

if TYPE_CHECKING:
    from diagnoser.ticket import Ticket

_ENDINGS: Final[Mapping[Kind, str]] = {
    Kind.ANALYSIS: "_moe-diag",
    Kind.COMPARISON: "_compared",
    Kind.CONFIGURATION: "_moe-diag",
}


@dataclass(frozen=True, slots=True)
class Output:
    """Names of formats, where their files go, how much is shown, and a ticket's folder.

    `keys`: each name with its key; `brief`: JSON in short; `page`: how a ticket's page is marked up,
    `markdown` or `jira`.
    """

    forms: Sequence[str]
    place: str = "-"
    force: bool = False
    detail: Detail = Detail.FIRST
    keys: bool = False
    ticket: Path | None = None
    page: str = "markdown"
    brief: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """Where every result goes; nothing is in the way."""

    kind: Kind
    targets: Sequence[Target]
    ticket: Ticket | None


def output_of(
    forms: Sequence[str] | None,
    place: str,
    *,
    force: bool = False,
    full: bool = False,
    keys: bool = False,
    flavor: str | None = None,
    ticket: Path | None = None,
    brief: bool = False,
) -> Output:
    """What the options ask for. Without a format it is as the file's name ends, else text; none for a ticket.

    Raises `UsageError` for a flavor of what is no markdown, and for what is to be brief and is no JSON.
    """
    names = [str(one) for one in forms or _named(place, ticket)]
    page = "jira" if flavor == "jira" else "markdown"
    if flavor and not {"markdown", "jira"} & set(names) and ticket is None:
        raise UsageError(f"--flavor is of markdown. Type the same line with -f markdown --flavor {flavor}")
    if brief and "json" not in names:
        raise UsageError("--brief is of json. Type the same line with -f json --brief")
    marked = [page if one == "markdown" else one for one in names]
    return Output(marked, place, force, Detail.FULL if full else Detail.FIRST, keys, ticket, page, brief)


def _named(place: str, ticket: Path | None) -> list[str]:
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
    for form in output.forms:
        if form not in FORMS[kind]:
            there = ", ".join(sorted({*FORMS[kind]} - {"jira", *FRAMEWORKS}))
            raise UsageError(f"a judged configuration has no {form}. Give one of {there}.")
    if output.brief and kind is Kind.COMPARISON:
        raise UsageError("--brief is of one run, not of two. Type the same line without it")
    inputs = [*runs, *(path for path in beside if path)]
    ending = _ENDINGS[kind]
    targets = plan_targets(output.forms, output.place, inputs, EXTENSIONS, output.force, ending, BINARY)
    if output.ticket is None:
        return Plan(kind, targets, None)
    if kind is Kind.CONFIGURATION:
        raise UsageError("a ticket is of a trace or of two. Give what moe-diag analyze or compare made.")
    from diagnoser.ticket import plan_ticket

    base = base_name(runs[0]) + (ending if kind is Kind.COMPARISON else "")
    return Plan(kind, targets, plan_ticket(output.ticket, base, output.page, output.force))


def write_results(result: Whole, plan: Plan, output: Output) -> None:
    """Render and write everything. A ticket says where it is, where nothing else goes to stdout."""
    if plan.ticket:
        from diagnoser.ticket import ticket_words, write_ticket

        write_ticket(plan.ticket, result, lambda form: WRITERS[form](result, Asked()))
    for target in plan.targets:
        view = replace(screen() if target.path is None else View(), keys=output.keys)
        write(target, WRITERS[target.form](result, Asked(output.detail, view, output.brief)), output.force)
    if plan.ticket and all(target.path for target in plan.targets):
        write(Target("text", None), ticket_words(plan.ticket), force=False)

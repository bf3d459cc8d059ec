"""What is asked of the results of a command: formats, their place, a ticket. Planned before any
work.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from diagnoser.options import Flavor
from diagnoser.output import Target, base_name, plan_targets, say, screen, show, write
from reports.content.blocks import Headline
from reports.content.page import Asked, Detail, Head, View
from reports.formats import FORMATS, FRAMEWORKS, ResultKind, form_of_file, named, page_of
from reports.measures import words_of
from reports.redaction import public
from reports.result.fill.told import has_withheld
from reports.result.read import read_kept
from reports.rows import each
from traces.errors import OutputNotWritable, UsageError
from traces.frozen import frozen
from traces.limits import MESSAGE
from traces.spelling import counted, one_line

if TYPE_CHECKING:
    from diagnoser.output.ticket import Ticket
    from reports.formats import Whole


@frozen
class Output:
    """In which formats a result is written, where, how much of it is shown, and a ticket's folder.

    Raises `UsageError` for a flavor of what is no markdown, for a title or a note of what has no
    page or that is too long, for what is to be brief and is no JSON or to be opened and is no page
    in a file, and for a patch beside a format, or for no framework that there is.
    """

    form: Sequence[str] | None = None
    flavor: Flavor | None = None
    output: str = "-"
    open: bool = False
    ticket: Path | None = None
    title: str | None = None
    note: list[str] | None = None
    force_overwrite: bool = False
    full: bool = False
    brief: bool = False
    keys: bool = False
    emit_config: str | None = None

    def __post_init__(self) -> None:
        if self.emit_config is not None:
            if self.emit_config not in FRAMEWORKS:
                known = " or ".join(FRAMEWORKS)
                raise UsageError(f"--emit-config {self.emit_config!r} is not known. Give {known}.")
            if self.form:
                raise UsageError(
                    "--emit-config prints a patch instead of a report. Leave out -f, or run twice."
                )
        if self.flavor and not {"markdown", "jira"} & {*self.forms} and not self.ticket:
            raise UsageError(
                f"--flavor is of markdown. Type the same line with -f markdown --flavor "
                f"{self.flavor}"
            )
        is_headed = self.ticket is not None or any(FORMATS[form].headed for form in self.forms)
        if (self.title or self.note) and not is_headed:
            name = "--title" if self.title else "--note"
            raise UsageError(
                f"{name} is of pages and tickets. Type the same line with -f markdown or --ticket "
                f"DIR"
            )
        if sum(map(len, (self.title or "", *(self.note or ())))) > MESSAGE.value:
            raise UsageError(
                f"--title and --note may have {MESSAGE.whole:,} characters in all. Shorten them."
            )
        if self.open and ("html" not in self.forms or self.output == "-"):
            raise UsageError(
                "--open is of a page in a file. Type the same line with -o page.html --open"
            )
        if self.brief and "json" not in self.forms:
            raise UsageError("--brief is of json. Type the same line with -f json --brief")

    @property
    def page(self) -> str:
        """How a page is marked up: `markdown`, or `jira`."""
        if self.flavor == "jira":
            return "jira"
        return "markdown"

    @property
    def forms(self) -> list[str]:
        """Names of formats: as asked for, else as the file's name ends, else text; none for a
        ticket.
        """
        if self.emit_config:
            return [self.emit_config]
        forms = [*map(str, self.form or ())]
        if not forms and not (self.ticket and self.output == "-"):
            forms = [form_of_file(self.output)]
        return [self.page if form == "markdown" else form for form in forms]


@frozen
class OutputPlan:
    """Where every result goes, as `output` asks; nothing is in the way."""

    output: Output
    targets: Sequence[Target]
    ticket: Ticket | None


def plan_results(
    kind: ResultKind, output: Output, runs: Sequence[Path], beside: Sequence[Path | None] = ()
) -> OutputPlan:
    """Where everything goes. `runs`: what the results are of, the one that names them first.

    `beside`: other inputs, which are never replaced either. Raises `UsageError` for a format that
    these results do not have, and what `plan_targets` and `plan_ticket` raise.
    """
    for form in output.forms:
        if kind not in FORMATS[form].kinds:
            forms = ", ".join(sorted(named(kind)))
            raise UsageError(f"{words_of('kind')[kind]} has no {form}. Give one of {forms}.")
    if output.brief and kind in (ResultKind.COMPARISON, ResultKind.FILES, ResultKind.LAYOUTS):
        what = "a list of layouts" if kind is ResultKind.LAYOUTS else "two"
        raise UsageError(f"--brief is of one run, not of {what}. Type the same line without it")
    inputs = [*runs, *filter(None, beside)]
    ending = words_of("ending").get(kind, "_moe-diag")
    targets = plan_targets(output.forms, output.output, inputs, output.force_overwrite, ending)
    if not output.ticket:
        return OutputPlan(output, targets, None)
    if kind in (ResultKind.CONFIGURATION, ResultKind.FILES, ResultKind.LAYOUTS, ResultKind.RUN):
        raise UsageError(
            "a ticket is of a trace or of two. Give what moe-diag analyze or compare made."
        )
    from diagnoser.output.ticket import plan_ticket

    base = base_name(runs[0]) + (ending if kind is ResultKind.COMPARISON else "")
    return OutputPlan(
        output, targets, plan_ticket(output.ticket, base, output.page, output.force_overwrite)
    )


def write_results(result: Whole, plan: OutputPlan) -> None:
    """Render and write everything. A ticket says where it is, where nothing else goes to stdout."""
    output, head = plan.output, _head(plan.output, result.redacted)
    if ticket := plan.ticket:
        from diagnoser.output.ticket import write_ticket
        from heuristics.result.result import Merged

        assert not isinstance(result, Merged), "has no ticket"

        write_ticket(
            ticket,
            result,
            lambda form: FORMATS[form].write(result, Asked(head=ticket.head(form, head))),
        )
    detail = Detail.FULL if output.full else Detail.FIRST
    for target in plan.targets:
        view = replace(screen() if target.path is None else View(), keys=output.keys)
        write(
            target,
            FORMATS[target.form].write(result, Asked(detail, view, output.brief, head)),
            output.force_overwrite,
        )
        if output.open and target.form == "html" and target.path:
            import webbrowser

            if not webbrowser.open(target.path.resolve().as_uri()):
                say(f"no browser could be started here. Open {target.path} in one.")
    _tell(result, plan)
    if result.redacted and has_withheld(result):
        say(
            "parts of file names are withheld, as they may be a host's or a person's; --no-redact "
            "shows all."
        )
    if plan.ticket and all(each(plan.targets, "path")):
        lines = f"Ticket in {plan.ticket.folder}:", *plan.ticket.names
        show("\n  ".join(lines) + "\n")


def _tell(result: Whole, plan: OutputPlan) -> None:
    """Which files were written, and the answer in them: on stdout unless that is data."""
    files = [*filter(None, each(plan.targets, "path"))]
    if not files:
        return
    from reports.content.names import plain

    label = statement = ""
    for headline in page_of(result, Detail.FIRST).of_kind(Headline)[:1]:
        label, statement = headline.label, plain(headline.whole)
    between = ": " if statement[:1].isupper() and statement.endswith(".") else " "
    # not the path: what a terminal shows is pasted into tickets
    answer = between.join(filter(None, (label, statement)))
    line = f"Wrote {', '.join(each(files, 'name'))}: {answer}"
    if len(files) == len(plan.targets) and all(map(Path.is_file, files)):
        with suppress(OutputNotWritable):  # nobody listens, and the files are there
            show(f"{one_line(line)}\n")
    else:
        say(line)


def _head(output: Output, redact: bool) -> Head:
    """What a user wrote for the head of every page; how much of it is withheld is said once."""
    title, withheld = public(" ".join((output.title or "").split()), redact)
    note = []
    for line in "\n".join(output.note or ()).splitlines():
        text, count = public(line.strip(), redact)
        withheld += count
        note += [text] if text else []
    if withheld:
        what = counted(withheld, "path, address or secret", "paths, addresses or secrets")
        how = "; --no-redact shows all but secrets" if redact else ""
        say(f"{what} of --title and --note withheld{how}.")
    return Head(title, tuple(note))


def saved_result(path: Path, redact: bool) -> Whole:
    """An earlier result.

    Raises `TraceNotFound` for what cannot be read, `NotAResult` for what is no result of ours or of
    a newer schema, `UsageError` for one that is not redacted where `redact` asks for it.
    """
    result = read_kept(path)
    if redact and not result.redacted:
        raise UsageError(
            f"{path} was made with --no-redact and holds paths. Give --no-redact to show them, or "
            "make the result again without it."
        )
    return result

"""`moe-diag report`: an earlier result in any format."""

from typing import Final

from diagnoser.bounds import with_bounds
from diagnoser.options import (
    Brief,
    Force,
    Forms,
    Full,
    Keys,
    MarkdownFlavor,
    OutputPlace,
    Redact,
    ResultFile,
    TicketFolder,
)
from diagnoser.results import output_of, plan_results, write_results
from traces.errors import NotAResult

_DAMAGE: Final = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError)
"""What a renderer runs into where a file keeps the contract's shape, but not its sense."""


@with_bounds
def report(
    result: ResultFile,
    form: Forms = None,
    flavor: MarkdownFlavor = None,
    output: OutputPlace = "-",
    ticket: TicketFolder = None,
    force_overwrite: Force = False,
    full: Full = False,
    brief: Brief = False,
    keys: Keys = False,
    redact: Redact = True,
) -> int:
    """Write an earlier result in any other format.

    Needs no trace and measures nothing: what the JSON says is what is shown. The same result gives the same
    bytes.

    \b
    moe-diag analyze run.nsys-rep -o run.json         the one to keep
    moe-diag report run.json                          the text
    moe-diag report run.json -o run.html              one page, opens anywhere
    moe-diag report run.json -f markdown --flavor jira
    moe-diag report run.json -f png -f pdf -o .       pictures, beside it
    moe-diag report run.json -o run.perfetto.json     for ui.perfetto.dev
    moe-diag report run.json --ticket perf-1234       all a ticket needs

    A configuration that was judged without a trace has text, markdown, html and json. What was made with
    --no-redact holds paths, and is rendered with --no-redact only.

    Exit code 0: rendered; 2: usage; 3: the file is no result of ours, or of a newer moe-diag.
    """
    from diagnoser.saved import saved_result

    wanted = output_of(
        form, output, force=force_overwrite, full=full, keys=keys, flavor=flavor, ticket=ticket, brief=brief
    )
    saved = saved_result(result, redact)
    plan = plan_results(saved.kind, wanted, [result])
    try:
        write_results(saved.result, plan, wanted)
    except _DAMAGE as error:
        lacks = f"it does not hold what this format shows ({type(error).__name__})"
        raise NotAResult(f"{result}: {lacks}. Make the result again") from error
    return 0
